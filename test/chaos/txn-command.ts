// `npm run chaos -- txn`: reads the command line, runs, and reports as text and as one JSON object.

import { freshSeed, interruptible, log } from "./command.ts";
import { UsageError } from "./flags.ts";
import { readTxnFlags, TXN_HELP } from "./txn-flags.ts";
import { TXN_PLANTS } from "./txn-plants.ts";
import { runTxn, type TxnRunResult } from "./txn-run.ts";

export async function txnCommand(args: readonly string[]): Promise<number> {
  const flags = readTxnFlags(args, freshSeed);
  if (flags === undefined) {
    process.stdout.write(TXN_HELP);
    return 0;
  }
  const { islands, iterations, seed, plant, json } = flags;
  if (plant !== undefined && !Object.hasOwn(TXN_PLANTS, plant))
    throw new UsageError(`--plant: there is no ${plant}, only ${Object.keys(TXN_PLANTS).join(", ")}`);
  const stop = interruptible();
  log(`chaos txn: ${islands} islands, ${iterations} kills of the coordinator, seed ${seed}`);
  const startedMs = performance.now();
  const edits = plant === undefined ? [] : TXN_PLANTS[plant]!.edits;
  const run = await runTxn({ islands, iterations, seed, edits, signal: stop.signal, log });
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  console.log(people(run, islands, seconds));
  if (json) {
    const result = { chaos: "txn", node: process.version, islands, ...run, planted: plant ?? null, seed, seconds };
    console.log(JSON.stringify(result));
  }
  return stop.exitCode() ?? (run.failed.length > 0 ? 1 : 0);
}

function people(run: TxnRunResult, islands: number, seconds: number): string {
  const { started, commit, rollback, unknown } = run.transactions;
  const { tried, refused } = run.stale_terms;
  return [
    `${islands} islands, ${seconds} s: ${run.kills} kills of the coordinator, ${started} transactions: ${commit} committed, ${rollback} rolled back, ${unknown} unknown; ${run.moved} moves`,
    `half applied ${run.half_applied}, told as committed and missing ${run.acked_commit_missing}, told as rolled back and applied ${run.acked_rollback_applied}, told as both ${run.contradictions}, sum ${run.sum_ok ? "right" : "WRONG"}`,
    `old terms refused ${refused} of ${tried}; in doubt at the end ${run.in_doubt_at_end}, and ${run.in_doubt_ms_max} ms after the faults at most`,
    `kills at: ${counted(run.kills_at)}`,
    `faults: ${counted(run.faults)}`,
    ...run.failed.map((reason) => `FAILED: ${reason}`),
  ].join("\n");
}

function counted(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");
}
