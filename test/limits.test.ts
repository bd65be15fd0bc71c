// Bounds are in limits.ts, and one name has one value (decision 51). Each rule is also run on a planted violation.

import { describe, expect, it } from "vitest";
import { checkLimits } from "../scripts/limits.ts";
import { describe as text, readSources } from "../scripts/source.ts";

const check = (...files: readonly [string, string][]): string[] =>
  checkLimits(files.map(([path, code]) => ({ path, text: code }))).violations.map(text);

it("this repository keeps the rules, and something was checked", () => {
  const report = checkLimits(readSources(process.cwd(), ["src"]));
  expect(report.violations.map(text)).toEqual([]);
  expect(report.bounds).toBeGreaterThan(600);
});

describe("a bound outside of limits.ts", () => {
  it.each(["const RETRY_MS = 5;", "export const QUEUE_MAX = 4 * 1024;", "const HALF_MIN = 0.5, X = 1;"])(
    "is refused in a room that has its limits.ts: %s",
    (code) => {
      expect(check(["src/agent/x.ts", code]).join()).toContain("belongs in its room's limits.ts");
      expect(check(["src/agent/limits.ts", code])).toEqual([]);
      expect(check(["src/agent/x.test.ts", code])).toEqual([]);
    },
  );

  it.each([
    "const MINUTE_MS = 60_000;",
    'const NODE_MIN = "22";',
    "const HEADER_BYTES = 4;",
    "const STEPS_MS = [1, 2];",
  ])("is none where it is a unit, a text, a format's width or a list: %s", (code) => {
    expect(check(["src/agent/x.ts", code])).toEqual([]);
  });
});

describe("two bounds of one name", () => {
  const message = (values: string): string => `A_MAX has two values: ${values}; rename one`;

  it("with different values are refused where one is exported", () => {
    const values = message("262144 in src/core/kit/limits.ts, 786432 in src/controller/x.ts");
    expect(
      check(
        ["src/core/kit/limits.ts", "export const A_MAX = 256 * 1024;"],
        ["src/controller/x.ts", "const A_MAX = 1024 * 1024 - 256 * 1024;"],
      ),
    ).toEqual([`src/core/kit/limits.ts:1: ${values}`, `src/controller/x.ts:1: ${values}`]);
    expect(
      check(["src/core/kit/limits.ts", "export const A_MAX = 5;"], ["src/cli/x.ts", "const A_MAX = B_MAX - 1;"])[0],
    ).toContain(message("5 in src/core/kit/limits.ts, B_MAX - 1 in src/cli/x.ts"));
  });

  it("are fine with one value, and where each is private to its file", () => {
    expect(
      check(["src/core/kit/limits.ts", "export const A_MAX = 1_000;"], ["src/cli/x.ts", "const A_MAX = 10 ** 3;"]),
    ).toEqual([]);
    expect(check(["src/cli/x.ts", "const A_MAX = 1;"], ["src/cli/y.ts", "const A_MAX = 2;"])).toEqual([]);
  });
});
