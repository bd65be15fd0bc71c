import { describe, expect, test } from "vitest";
import { checkOptions } from "./elector-options.ts";
import { HandClock } from "../loops/test-clock.ts";
import { HandSeat, TIMING } from "./test-seat.ts";

const backend = {
  kind: "hand",
  host: "host-1",
  timing: TIMING,
  seat: (claim: never) => new HandSeat(new HandClock(), claim),
};

function check(options: object) {
  return checkOptions(
    { scope: "payer", backend, ...options },
    () => "uuid",
    () => undefined,
  );
}

describe("options of an elector", () => {
  test("have defaults, and what was given is copied", () => {
    const metadata = { url: "http://a" };
    const checked = check({ metadata });
    expect(checked).toMatchObject({ identity: "payer-host-1-uuid", enabled: true, metadata });
    expect(checked.metadata).not.toBe(metadata);
  });

  const longest = "ü".repeat(128);
  test("a scope may have 256 bytes and not one more", () => {
    expect(check({ scope: longest }).scope).toBe(longest);
    expect(() => check({ scope: `${longest}.` })).toThrow(/scope must have at most 256 bytes, and has 257/);
  });

  const wrong: readonly (readonly [string, object, RegExp])[] = [
    ["an empty scope", { scope: "" }, /scope must not be empty/],
    ["a scope that is no text", { scope: 7 }, /scope must be a text/],
    ["half a character", { scope: "a\ud800" }, /scope must be well-formed/],
    ["a NUL", { scope: "a\0b" }, /without NUL/],
    ["no backend", { backend: "postgres://x" }, /backend must be a backend/],
    ["an empty identity", { identity: "" }, /identity must not be empty/],
    ["a long identity", { identity: "i".repeat(513) }, /identity must have at most 512 bytes/],
    ["metadata that is no object", { metadata: null }, /metadata must be an object/],
    ["metadata that is no text", { metadata: { port: 80 } }, /metadata.port must be a text/],
    ["much metadata", { metadata: { a: "x".repeat(2_100), b: "y".repeat(2_100) } }, /at most 4096 bytes as JSON/],
    ["enabled as a text", { enabled: "false" }, /enabled must be true or false/],
  ];

  test.each(wrong)("%s is refused as CONFIG_INVALID, by name", (_what, options, message) => {
    expect(() => check(options)).toThrow(message);
    expect(() => check(options)).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
  });
});

describe("an elector without a logger", () => {
  const UNREACHABLE = "could not acquire the scope: refused";

  test("warns of the process, once for each kind of trouble, with its code", () => {
    const warned: unknown[] = [];
    const warn = (...args: unknown[]): void => void warned.push(args);
    const { logger } = checkOptions({ scope: "payer", backend }, () => "uuid", warn);
    logger.info({}, "campaigning");
    for (let times = 0; times < 3; times++) {
      logger.warn({ code: "BACKEND_UNAVAILABLE" }, `${UNREACHABLE} ${times}`);
      logger.error({}, "onTransition failed; leadership is not affected");
    }
    const advice = "(Said once for this elector: createElector({ logger }) is given everything.)";
    expect(warned).toEqual([
      [`scope "payer": ${UNREACHABLE} 0 ${advice}`, "BACKEND_UNAVAILABLE"],
      [`scope "payer": onTransition failed; leadership is not affected ${advice}`, undefined],
    ]);
  });

  test("warns of nothing where there is a logger, or time is the test's", () => {
    const warn = (): never => {
      throw new Error("was warned");
    };
    const heard: string[] = [];
    const say = (_fields: unknown, message: string): void => void heard.push(message);
    const given = { scope: "payer", backend, logger: { info: say, warn: say, error: say } };
    checkOptions(given, () => "uuid", warn).logger.warn({}, UNREACHABLE);
    expect(heard).toEqual([UNREACHABLE]);
    const virtual = { ...backend, clock: new HandClock() };
    checkOptions({ scope: "payer", backend: virtual }, () => "uuid", warn).logger.warn({}, UNREACHABLE);
  });
});
