import { describe, expect, it } from "vitest";
import { ROUTES } from "../../contract/index.ts";
import { UsageError } from "../kit/flags.ts";
import { CATCH_UPS, OVERLAPS } from "../../core/jobs/model.ts";
import { readScheduleFlags } from "./flags.ts";

const step = (...args: readonly string[]) => {
  const found = readScheduleFlags(args);
  return found === "help" ? found : found.step;
};

const wrong = (...args: readonly string[]): string => {
  try {
    readScheduleFlags(args);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
  }
  throw new Error(`${JSON.stringify(args)} was taken`);
};

const CRON = ["--cron", "0 3 * * *"];
const takes = (fields: object): boolean =>
  ROUTES.putSchedule.body.check({ cron: "0 3 * * *", spec: { kind: "a" }, ...fields }).ok;

describe("tenure schedule", () => {
  it("knows what the servers know", () => {
    for (const overlap of OVERLAPS) expect(takes({ overlap })).toBe(true);
    for (const catchUp of CATCH_UPS) expect(takes({ catch_up: catchUp })).toBe(true);
    expect(takes({ overlap: "none" })).toBe(false);
  });

  it("takes a name, and none to list", () => {
    expect(step("list")).toEqual({ verb: "list" });
    expect(step("show", "a")).toEqual({ verb: "show", name: "a" });
    expect(step("delete", "a")).toEqual({ verb: "delete", name: "a" });
    expect(step("--help")).toBe("help");
  });

  it("puts what was given, and leaves the rest to the servers", () => {
    expect(step("put", "a", ...CRON, "--kind", "backup")).toEqual({
      verb: "put",
      name: "a",
      request: { cron: "0 3 * * *", spec: { kind: "backup" } },
      payloadFile: null,
    });
    const times = [...CRON, "--time-zone", "Europe/Berlin", "--overlap", "allow", "--catch-up", "none", "--paused"];
    const job = ["--kind", "backup", "--payload", '{"aB":1}', "--queue", "q", "--label", "z=a", "--timeout", "10m"];
    expect(step("put", "a", ...times, ...job, "--concurrency", "k=2", "--attempts", "5")).toMatchObject({
      request: {
        timeZone: "Europe/Berlin",
        overlap: "allow",
        catchUp: "none",
        paused: true,
        spec: {
          payload: { aB: 1 },
          queue: "q",
          labels: { z: "a" },
          timeoutMs: 600_000,
          concurrency: { key: "k", limit: 2 },
          attemptsMax: 5,
        },
      },
    });
    expect(step("put", "a", ...CRON, "--kind", "backup", "--payload-file", "-")).toMatchObject({ payloadFile: "-" });
    expect(step("put", "a", ...CRON, "--env", "A=1", "--", "make", "-j")).toMatchObject({
      request: { spec: { kind: "exec", payload: { command: ["make", "-j"], env: { A: "1" } } } },
    });
    expect(step("put", "a", "--file", "s.json")).toEqual({ verb: "put-file", name: "a", file: "s.json" });
  });

  it("says what is wrong before anything is asked", () => {
    expect(wrong()).toBe("say what to do: list, show, put, delete");
    expect(wrong("delet", "a")).toBe('there is no "delet"; did you mean delete?');
    expect(wrong("list", "a")).toBe('list takes no "a"');
    expect(wrong("show")).toBe("show needs a name: tenure schedule show NAME");
    expect(wrong("delete", "a", "b")).toBe("delete takes one name, not 2");
    expect(wrong("delete", "a", ...CRON)).toBe("--cron belongs to put, not to delete");
    expect(wrong("list", "--paused")).toBe("--paused belongs to put, not to list");
    expect(wrong("put", ...CRON, "--kind", "k")).toBe("put needs a name: tenure schedule put NAME");
    expect(wrong("put", "a b", ...CRON)).toMatch(/^put takes a name of letters, .*, not "a b"$/);
    const cron = 'put needs a cron: tenure schedule put a --cron "0 3 * * *" --kind KIND, or --file FILE';
    expect(wrong("put", "a", "--kind", "k")).toBe(cron);
    expect(wrong("put", "a", "--kind", "k", "--cron", " ")).toBe(cron);
    expect(wrong("put", "a", ...CRON)).toBe("put needs a kind: --kind KIND, or a command behind --");
    expect(wrong("put", "a", ...CRON, "--kind", "a b")).toMatch(/^--kind takes a name of letters, /);
    expect(wrong("put", "a", ...CRON, "--kind", "k", "--cwd", "/")).toBe("--cwd belongs to a command behind --");
    expect(wrong("put", "a", ...CRON, "--kind", "exec")).toBe("the kind exec needs a command behind --");
    expect(wrong("put", "a", ...CRON, "--kind", "k", "--time-zone", "")).toBe("--time-zone must not be empty");
    expect(wrong("put", "a", ...CRON, "--kind", "k", "--overlap", "no")).toBe(
      '--overlap takes allow or skip, not "no"',
    );
    expect(wrong("put", "a", ...CRON, "--kind", "k", "--catch-up", "no")).toBe(
      '--catch-up takes none or last or all, not "no"',
    );
    expect(wrong("put", "a", ...CRON, "--kind", "k", "--not-before", "1m")).toMatch(/^there is no --not-before/);
    expect(wrong("put", "a", ...CRON, "--file", "f")).toBe("--file says all of it: leave out --cron");
    expect(wrong("put", "a", "--file", "f", "--", "make")).toBe("--file says all of it: leave out what is behind --");
    expect(wrong("put", "a", "--file", "")).toBe("--file must not be empty");
  });
});
