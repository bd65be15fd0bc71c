// A short run of `chaos txn`: every point and every fault once. And the same with known mistakes, which it must report.

import { expect, test } from "vitest";
import { TXN_PLANTS } from "./txn-plants.ts";
import { runTxn } from "./txn-run.ts";

const LIMIT_MS = 1_800_000;
const QUIET = { islands: 3, iterations: 8, seed: 7, signal: new AbortController().signal, log: () => undefined };

test(
  "every transaction is applied everywhere or nowhere, as it was told, wherever the coordinator and the islands are killed",
  { timeout: LIMIT_MS },
  async () => {
    const run = await runTxn(QUIET);
    expect(run.failed).toEqual([]);
    expect(run).toMatchObject({
      half_applied: 0,
      acked_commit_missing: 0,
      acked_rollback_applied: 0,
      contradictions: 0,
      sum_ok: true,
      in_doubt_at_end: 0,
    });
  },
);

test.each(Object.entries(TXN_PLANTS))("%s is reported", { timeout: LIMIT_MS }, async (_name, { edits, isSeen }) => {
  const run = await runTxn({ ...QUIET, edits });
  expect(run).toSatisfy(isSeen);
  expect(run.failed).not.toEqual([]);
});
