// Bounds are in limits.ts, and one name has one value (decision 51). Each rule is also run on a planted violation.

import { describe, expect, it } from "vitest";
import { checkLimits } from "../scripts/limits.ts";
import { describe as text, readSources } from "../scripts/source.ts";
import { EXEC_KILL_MS } from "../src/agent/limits.ts";
import { JOB_KILL_MS } from "../src/cli/agent/limits.ts";
import { AGENT_SILENCE_MS } from "../src/controller/jobs/limits.ts";
import * as journal from "../src/controller/journal/limits.ts";
import { LONG_POLL_MS_MAX, POLL_ANSWER_MS } from "../src/core/kit/timeouts.ts";
import * as logs from "../src/logs/limits.ts";

const check = (...files: readonly [string, string][]): string[] =>
  checkLimits(files.map(([path, code]) => ({ path, text: code }))).violations.map(text);

it("this repository keeps the rules, and something was checked", () => {
  const report = checkLimits(readSources(process.cwd(), ["src"]));
  expect(report.violations.map(text)).toEqual([]);
  expect(report.bounds).toBeGreaterThan(800);
  expect(report.elsewhere).toBeLessThan(130);
});

describe("a bound outside of limits.ts", () => {
  it.each([
    "const RETRY_MS = 5;",
    "export const QUEUE_MAX = 4 * 1024;",
    "const HALF_MIN = 0.5, X = 1;",
    "const FREEZE_MAX_S = 60;",
    "const PAIRS_MAX = QUEUE_MAX;",
    "const PARTS_MAX = Math.floor(QUEUE_MAX / 3);",
    "const NAMES_KEPT = 8;",
    "const JOBS_PER_TURN = 8;",
    "const SLICE_BYTES = 1024;",
  ])("is refused in every room: %s", (code) => {
    for (const room of ["agent", "core/jobs/decide", "controller/cluster", "cli/doctor", "drivers/wire"]) {
      expect(check([`src/${room}/x.ts`, code]).join()).toContain("belongs in its room's limits.ts");
      expect(check([`src/${room}/limits.ts`, code])).toEqual([]);
      expect(check([`src/${room}/x.test.ts`, code])).toEqual([]);
    }
    expect(check(["src/core/kit/timeouts.ts", code])).toEqual([]);
    expect(check(["src/sim/jobs/x.ts", code])).toEqual([]);
  });

  it.each([
    "const MINUTE_MS = 60_000;",
    'const NODE_MIN = "22";',
    "const HEADER_BYTES = 4;",
    "const STEPS_MS = [1, 2];",
    "const TICKS_PER_MS = 1_000;",
    "const KEY_MAX = 2n ** 63n - 1n;",
  ])("is none where it is a unit, a text, a format's width or a list: %s", (code) => {
    expect(check(["src/agent/x.ts", code])).toEqual([]);
  });
});

describe("two bounds of one name", () => {
  const message = (values: string): string => `A_MAX has two values: ${values}; rename one`;

  it("with different values are refused where one is exported", () => {
    const values = message("262144 in src/core/kit/limits.ts, 786432 in src/controller/limits.ts");
    expect(
      check(
        ["src/core/kit/limits.ts", "export const A_MAX = 256 * 1024;"],
        ["src/controller/limits.ts", "const A_MAX = 1024 * 1024 - 256 * 1024;"],
      ),
    ).toEqual([`src/core/kit/limits.ts:1: ${values}`, `src/controller/limits.ts:1: ${values}`]);
    expect(
      check(
        ["src/core/kit/limits.ts", "export const A_MAX = 5;"],
        ["src/cli/limits.ts", "const A_MAX = B_MAX - 1;"],
      )[0],
    ).toContain(message("5 in src/core/kit/limits.ts, B_MAX - 1 in src/cli/limits.ts"));
  });

  it("are fine with one value, and where each is private to its file", () => {
    expect(
      check(["src/core/kit/limits.ts", "export const A_MAX = 1_000;"], ["src/cli/limits.ts", "const A_MAX = 10 ** 3;"]),
    ).toEqual([]);
    expect(check(["src/cli/limits.ts", "const A_MAX = 1;"], ["src/cli/run/limits.ts", "const A_MAX = 2;"])).toEqual([]);
  });
});

it("bounds of different rooms that rely on each other are in order", () => {
  expect(AGENT_SILENCE_MS, "an agent that polls is never silent for so long").toBeGreaterThan(
    LONG_POLL_MS_MAX + POLL_ANSWER_MS,
  );
  expect(JOB_KILL_MS, "a job's SIGKILL is seen").toBeGreaterThan(EXEC_KILL_MS);
  expect(logs.NODE_SESSION_IDLE_MS, "two lost beats do not cost a name").toBeGreaterThan(3 * logs.NODE_BEAT_MS);
  expect(journal.DECISION_EVENTS_MAX, "a decision is one append").toBeLessThanOrEqual(logs.BATCH_RECORDS_MAX);
  expect(journal.GATHERED_EVENTS_MAX).toBeLessThanOrEqual(journal.DECISION_EVENTS_MAX);
});
