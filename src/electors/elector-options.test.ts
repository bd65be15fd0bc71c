import { describe, expect, test } from "vitest";
import { checkOptions } from "./elector-options.ts";
import { HandClock, HandSeat, TIMING } from "./test-seat.ts";

const backend = {
  kind: "hand",
  host: "host-1",
  timing: TIMING,
  seat: (claim: never) => new HandSeat(new HandClock(), claim),
};

function check(options: object) {
  return checkOptions({ scope: "payer", backend, ...options }, () => "uuid");
}

describe("options of an elector", () => {
  test("have defaults, and what was given is copied", () => {
    const metadata = { url: "http://a" };
    const checked = check({ metadata });
    expect(checked).toMatchObject({ identity: "payer-host-1-uuid", enabled: true, metadata });
    expect(checked.metadata).not.toBe(metadata);
    expect(() => checked.logger.warn({}, "nobody hears it")).not.toThrow();
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
