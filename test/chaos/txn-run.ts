// A run of `chaos txn`:
//
//   start ──▶ (clients work, while six faults strike ──▶ they are silent, and know how each ended ──▶ nothing is in doubt ──▶ audited ──▶ an old term is tried) … ──▶ judged
//
// A run in which a fault of the plan did not happen, or hardly anything was done, has failed (trap 33).

import { randomUUIDv7 } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom } from "../../src/core/kit/random.ts";
import type { Edit } from "../../src/sim/mutants/patch.ts";
import { ISLANDS_START_MS, PATIENT_MS, TestIslands } from "../archipelago/test-islands.ts";
import { put, type ShownTxn, TestTransactions } from "../archipelago/test-transactions.ts";
import { TxnBank } from "./txn-bank.ts";
import { TxnBooks } from "./txn-books.ts";
import { TxnFaults } from "./txn-faults.ts";
import { TxnJudge } from "./txn-judge.ts";
import { plantPoints } from "./txn-kills.ts";
import { OTHER_FAULTS, planOf, type TxnStep } from "./txn-plan.ts";
import { COORDINATOR_POINTS, ISLAND_POINTS } from "./txn-points.ts";

const TRIES = 4;
const DOUBT_POLL_MS = 20;
/** After the faults nothing may be in doubt for longer. */
const DOUBT_MS_MAX = 10_000;
/** So long a run waits to see it end all the same. */
const DOUBT_SEEN_MS_MAX = 60_000;
const SETTLE_MS_MAX = 120_000;
const COMMITS_PER_ROUND = 2;
/** Enough is known: the rest of a run that has found so much only takes time. */
const FINDINGS_MAX = 10;

export interface TxnRunOptions {
  readonly islands: number;
  readonly iterations: number;
  readonly seed: number;
  /** Known mistakes, in every server. */
  readonly edits?: readonly Edit[] | undefined;
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

export type TxnRunResult = Awaited<ReturnType<typeof runTxn>>;

interface Run {
  readonly options: TxnRunOptions;
  readonly islands: TestIslands;
  readonly transactions: TestTransactions;
  readonly bank: TxnBank;
  readonly books: TxnBooks;
  readonly judge: TxnJudge;
  readonly faults: TxnFaults;
  readonly stale: { tried: number; refused: number };
  readonly failed: string[];
  isSumRight: boolean;
  rounds: number;
  /** From the end of a round's faults until nothing was in doubt anywhere: the longest of all rounds. */
  doubtMs: number;
}

export async function runTxn(options: TxnRunOptions) {
  const { edits = [], seed, iterations } = options;
  await using islands = await TestIslands.make({ islands: options.islands, isProxied: true, keepsConnections: true });
  plantPoints(islands, edits);
  const random = seededRandom(seed);
  const judge = new TxnJudge();
  const failed: string[] = [];
  const faults = new TxnFaults(islands, random.fork("faults"));
  let run: Run | null = null;
  let inDoubt: readonly ShownTxn[] = [];
  try {
    for (const island of islands.all) island.start();
    await islands.settled(ISLANDS_START_MS);
    const transactions = await TestTransactions.of(islands);
    const bank = new TxnBank({ islands, transactions, judge, random: random.fork("bank") });
    const books = new TxnBooks(bank.workloads);
    const stale = { tried: 0, refused: 0 };
    run = {
      options,
      islands,
      transactions,
      bank,
      books,
      judge,
      faults,
      stale,
      failed,
      isSumRight: true,
      rounds: 0,
      doubtMs: 0,
    };
    await bank.open();
    await strike(run, planOf(iterations, random.fork("plan")));
  } catch (error) {
    failed.push((error as Error).message);
  }
  if (run !== null) inDoubt = await run.transactions.inDoubt(islands.running).catch(() => []);
  check(options, faults, judge, run, inDoubt, failed);
  return {
    transactions: judge.transactions,
    moved: run?.bank.moved ?? 0,
    refused: run?.bank.refused ?? 0,
    resolved: run?.bank.resolved ?? 0,
    rounds: run?.rounds ?? 0,
    half_applied: judge.halfApplied,
    acked_commit_missing: judge.ackedCommitMissing,
    acked_rollback_applied: judge.ackedRollbackApplied,
    contradictions: judge.contradictions,
    sum_ok: run?.isSumRight === true,
    stale_terms: run?.stale ?? { tried: 0, refused: 0 },
    in_doubt_at_end: inDoubt.length,
    in_doubt_ms_max: Math.round(run?.doubtMs ?? 0),
    kills: COORDINATOR_POINTS.reduce((sum, point) => sum + (faults.killsAt.get(point) ?? 0), 0),
    kills_at: Object.fromEntries(
      [...COORDINATOR_POINTS, ...ISLAND_POINTS].map((at) => [at, faults.killsAt.get(at) ?? 0]),
    ),
    faults: Object.fromEntries(faults.others),
    failed,
  };
}

function check(
  { signal, iterations }: TxnRunOptions,
  faults: TxnFaults,
  judge: TxnJudge,
  run: Run | null,
  inDoubt: readonly ShownTxn[],
  failed: string[],
): void {
  for (const point of [...COORDINATOR_POINTS, ...ISLAND_POINTS])
    if (!faults.killsAt.has(point)) failed.push(`nobody was killed at ${point}`);
  for (const fault of OTHER_FAULTS) if (!faults.others.has(fault)) failed.push(`the fault ${fault} never happened`);
  const kills = COORDINATOR_POINTS.reduce((sum, point) => sum + (faults.killsAt.get(point) ?? 0), 0);
  if (kills < iterations) failed.push(`only ${kills} kills of the coordinator`);
  const { commit, rollback, started } = judge.transactions;
  if (commit < COMMITS_PER_ROUND * (run?.rounds ?? 1)) failed.push(`only ${commit} of ${started} were committed`);
  if (rollback === 0) failed.push("none was rolled back");
  if ((run?.bank.moved ?? 0) === 0) failed.push("no workload was moved");
  const { tried, refused } = run?.stale ?? { tried: 0, refused: 0 };
  if (tried === 0) failed.push("no old term was tried");
  if (refused < tried) failed.push(`an old term was not refused: ${tried - refused} of ${tried}`);
  if (inDoubt.length > 0) failed.push(`in doubt at the end: ${JSON.stringify(inDoubt)}`);
  if (signal.aborted) failed.push("interrupted");
}

async function strike(run: Run, plan: readonly (readonly TxnStep[])[]): Promise<void> {
  const { options, islands, bank, failed } = run;
  let term = (await islands.leader()).term;
  for (const [at, steps] of plan.entries()) {
    if (options.signal.aborted || failed.length > FINDINGS_MAX) return;
    const fromMs = performance.now();
    const round = at + 1;
    bank.begin(round);
    const done: string[] = [];
    let overMs = performance.now();
    try {
      for (const step of steps) done.push(await happen(run, step));
      overMs = performance.now();
    } finally {
      await bank.end();
    }
    const open = await quiet(run, overMs);
    const wrong = [...open, ...(await audit(run, round))];
    term = await tryOld(run, term);
    run.rounds++;
    // What a server says of faults is read once.
    for (const { logged } of islands.all) logged.length = 0;
    const seconds = ((performance.now() - fromMs) / 1_000).toFixed(1);
    options.log(
      `${round}/${plan.length}, ${seconds} s: ${done.join("; ")}${wrong.map((one) => `\nFAILED: ${one}`).join("")}`,
    );
    failed.push(...wrong.map((one) => `round ${round}: ${one}`));
    // What waits for ever is in the way of all that comes.
    if (open.length > 0) return;
  }
}

/** Again where nobody came by: in the end each of them must have happened. */
async function happen({ faults }: Run, step: TxnStep): Promise<string> {
  if (step.kind === "other") return faults.strike(step.fault);
  const { point, island, isSlow } = step;
  const both = await Promise.all([
    again(() => faults.killCoordinator(point, isSlow), isSlow ? `${point}, slowly` : point),
    ...(island === null ? [] : [again(() => faults.killIsland(island), `${island} beside it`)]),
  ]);
  return both.join(", ");
}

async function again(kill: () => Promise<boolean>, what: string): Promise<string> {
  for (let tries = 1; ; tries++) {
    if (await kill()) return tries === 1 ? what : `${what} (${tries} tries)`;
    if (tries === TRIES) return `${what} (in vain)`;
  }
}

/**
 * Nothing is in doubt soon after the faults, and then all run, agree on who leads, everything is known, and nothing is under way. Returns what is, for too
 * long.
 */
async function quiet(run: Run, overMs: number): Promise<readonly string[]> {
  const { islands, bank } = run;
  const left = await doubtless(run, overMs);
  if (left.length > 0) return left;
  const tookMs = performance.now() - overMs;
  run.doubtMs = Math.max(run.doubtMs, tookMs);
  await islands.settled(SETTLE_MS_MAX);
  await bank.resolve();
  const late = tookMs <= DOUBT_MS_MAX ? [] : [`something was in doubt for ${Math.round(tookMs)} ms after the faults`];
  return [...late, ...(await doubtless(run, performance.now()))];
}

async function doubtless({ islands, transactions }: Run, fromMs: number): Promise<readonly string[]> {
  for (;;) {
    const left = await transactions.inDoubt(islands.all);
    if (left.length === 0) return [];
    if (performance.now() > fromMs + DOUBT_SEEN_MS_MAX)
      return left.map((one) => `in doubt for ${DOUBT_SEEN_MS_MAX} ms: ${JSON.stringify(one)}`);
    await sleep(DOUBT_POLL_MS);
  }
}

async function audit(run: Run, round: number): Promise<readonly string[]> {
  const { bank, books, judge } = run;
  const found = books.audit(round, await bank.read());
  const wrong = [...judge.audit(found)];
  if (found.sum !== bank.sum) {
    run.isSumRight = false;
    wrong.push(`all accounts together have ${found.sum}, and had ${bank.sum}`);
  }
  return wrong;
}

/** A prepare in the name of a leader that is over, at every island. Returns the term that is in force. */
async function tryOld({ islands, transactions, stale, failed }: Run, last: number): Promise<number> {
  const { term } = await islands.leader();
  if (term <= last) return last;
  for (const [at, island] of islands.all.entries()) {
    const other = islands.all[(at + 1) % islands.all.length]!;
    const view = await island.view();
    const body = {
      target_backend_hash: transactions.hash(island),
      tc_cluster_id: view!.self.tc_cluster_id,
      tc_term: last,
      txn: {
        txn_id: randomUUIDv7(),
        home_backend_hash: transactions.hash(other),
        participants: [transactions.hash(island), transactions.hash(other)].toSorted(),
        digest: "0".repeat(64),
        timeout_ms: 1_000,
        by: "chaos",
      },
      operations: [put("stale", true)],
    };
    stale.tried++;
    const answer = await island.call("/v1/txn/prepare", { body, limitMs: PATIENT_MS }, other);
    if (answer.body["error"] === "tc_term_stale") stale.refused++;
    else failed.push(`${island.id} was asked in term ${last}, over since ${term}: ${JSON.stringify(answer.body)}`);
  }
  return term;
}
