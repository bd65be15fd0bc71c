// docs/jobs.md says how often a failing job runs: as a book of jobs decides for one that was submitted without options.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { JOB_DEFAULTS, specOf } from "../src/contract/index.ts";
import { canonicalJson } from "../src/core/events/index.ts";
import { JobsBook } from "../src/core/jobs/index.ts";
import { Desk, FAILED } from "../src/core/jobs/test-desk.ts";

const [, SECTION = ""] = readFileSync("docs/jobs.md", "utf8").split("## How often a failing job runs\n");
const [TEXT = ""] = SECTION.split("\n## ", 1);
/** A random draw is below 1. */
const NEARLY_ONE = 1 - Number.EPSILON;

function documented(text: string): string[] {
  return text.split("\n").flatMap((line) => {
    const [, failed, follows] = /^\| (\d+) \| (.+) \|$/.exec(line) ?? [];
    return failed === undefined ? [] : [`${failed}: ${follows}`];
  });
}

/** Every attempt fails; the delays are the shortest and the longest that chance can make them. */
function decided(): string[] {
  const runs = [0, NEARLY_ONE].map((random) => {
    const desk = new Desk(new JobsBook({ canonical: canonicalJson }));
    const [jobId] = desk.submit(specOf({ kind: "build" }));
    const delays: number[] = [];
    for (;;) {
      const [lease] = desk.lease().leases;
      desk.random = random;
      desk.result("a1-s1", lease!, FAILED);
      const { state, readyAtMs } = desk.book.applied.job(jobId!)!;
      if (state === "failed") return delays;
      delays.push(readyAtMs - desk.nowMs);
      desk.nowMs = readyAtMs;
    }
  });
  const seconds = (run: number, at: number): number => Math.round(runs[run]![at]! / 100) / 10;
  const again = runs[0]!.map((_, at) => `${at + 1}: the next attempt, ${seconds(0, at)} to ${seconds(1, at)} s later`);
  return [...again, `${again.length + 1}: the job is \`failed\``];
}

it("docs/jobs.md says after how many failures a job has failed, and how long it waits in between", () => {
  expect(documented(TEXT)).toEqual(decided());
  expect(documented(TEXT.replace("1 to 2 s", "1 to 3 s"))).not.toEqual(decided());
});

it("docs/jobs.md has the defaults in its text", () => {
  const { backoff, lossesMax } = JOB_DEFAULTS;
  expect(TEXT).toContain(`${backoff.baseMs / 1_000} s and ${backoff.maxMs / 60_000} min by default`);
  expect(TEXT).toContain(`(\`lossesMax\`, ${lossesMax})`);
});
