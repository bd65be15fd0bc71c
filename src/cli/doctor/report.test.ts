import { describe, expect, it } from "vitest";
import { exitCode, judged, ok, problem, reportObject, reportText, unknown, warning } from "./report.ts";

const GOOD = ok("version", "18");
const ODD = warning("clock", "slow", { means: "odd", advice: "look" });
const BAD = problem("rights", "none", { means: "refused", sql: ["grant a;", "grant b;"] });
const DARK = unknown("locks", "denied");

describe("the exit code", () => {
  it("is 1 for a problem; warnings and what is unknown count only if strict", () => {
    expect(exitCode([GOOD, BAD], false)).toBe(1);
    expect([exitCode([GOOD, ODD, DARK], false), exitCode([GOOD, ODD], true), exitCode([GOOD, DARK], true)]).toEqual([
      0, 1, 1,
    ]);
    expect(exitCode([GOOD], true)).toBe(0);
  });
});

describe("the report", () => {
  it("has a row for each check, then what to do, the worst first", () => {
    expect(reportText("postgres at db", [GOOD, ODD, BAD])).toBe(`postgres at db

ok       version  18
warning  clock    slow
PROBLEM  rights   none

PROBLEM: rights
  means: refused
  sql:   grant a;
  sql:   grant b;

warning: clock
  means: odd
  do:    look

1 problem, 1 warning, 0 not checked.
`);
    expect(reportText("x", [GOOD]).trimEnd().split("\n").at(-1)).toBe("All is well.");
  });

  it("counts as an object", () => {
    expect(reportObject("etcd", "a", [GOOD, DARK])).toMatchObject({ ok: 1, warning: 0, problem: 0, unknown: 1 });
  });

  it("has a row for what could not be looked at", () => {
    expect(judged("clock", { unknown: "cut" }, () => [GOOD])).toEqual([unknown("clock", "cut")]);
    expect(judged("clock", { value: 1 }, () => [GOOD])).toEqual([GOOD]);
  });
});
