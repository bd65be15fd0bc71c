// A short run of `chaos tc`: every kind of fault once. And the same with known mistakes, which it must report.

import { expect, test } from "vitest";
import { TC_PLANTS } from "./tc-plants.ts";
import { runTc } from "./tc-run.ts";

const LIMIT_MS = 1_800_000;
const QUIET = { minutes: 0, seed: 7, signal: new AbortController().signal, log: () => undefined };

test(
  "no term has two leaders, none falls, and the registry is with all or with nobody",
  { timeout: LIMIT_MS },
  async () => {
    const run = await runTc(QUIET);
    expect(run.failed).toEqual([]);
    expect(run).toMatchObject({ terms_with_two_leaders: 0, overlapping_leases: 0, terms_fell: 0, registry_split: 0 });
  },
);

test.each(Object.entries(TC_PLANTS))("%s is reported", { timeout: LIMIT_MS }, async (_name, edits) => {
  expect((await runTc({ ...QUIET, edits })).acted_without_quorum).toBeGreaterThan(0);
});
