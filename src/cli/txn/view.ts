// Transactions as `tenure txn` prints them. Pure.

import type {
  CommittedTransaction,
  TransactionOutcome,
  TransactionResult,
  TransactionView,
} from "../../client/index.ts";
import { assertNever } from "../../contract/errors.ts";
import { type Paint, PLAIN } from "../kit/colour.ts";
import { columns, isoTime, printable, table } from "../kit/output.ts";
import { HASH_LETTERS } from "../limits.ts";

/** The names of the wire: what `-o json` prints of an outcome. */
export function outcomeObject(outcome: TransactionOutcome): object {
  const nothing = { tc_term: null, home: null, reason: null, participants: [] };
  switch (outcome.state) {
    case "committed": {
      const { id, term, home, participants } = outcome;
      const islands = participants.map(({ backendHash, state, results }) => {
        return { backend_hash: backendHash, state, results: results.map(resultObject) };
      });
      return { txn_id: id, state: "committed", ...nothing, tc_term: term, home, participants: islands };
    }
    case "rolled-back":
      return { txn_id: outcome.id, state: "rolled_back", ...nothing, reason: reasonObject(outcome.reason) };
    case "unknown": {
      const reason = { code: outcome.code, message: outcome.why, backend_hash: null };
      return { txn_id: outcome.id, state: "unknown", ...nothing, reason };
    }
    default:
      return assertNever(outcome, "outcome");
  }
}

export function committedText({ id, term, participants }: CommittedTransaction, paint: Paint = PLAIN): string {
  const rows = participants.map(({ backendHash, state, results }) => [
    printable(backendHash),
    state,
    state === "pending" ? "not heard of yet" : resultsText(results),
  ]);
  return `${printable(id)} is committed, in term ${term}\n${table(["ISLAND", "STATE", "RESULTS"], rows, paint)}`;
}

export function rolledBackText({ id, reason }: Extract<TransactionOutcome, { state: "rolled-back" }>): string {
  const { code, message, backendHash } = reason;
  const where = backendHash === null ? "" : ` at island ${backendHash}`;
  return `transaction ${id} was rolled back, and nothing of it was done: ${code}${where}: ${sentence(message)}`;
}

export function unknownText({ id, code, why }: Extract<TransactionOutcome, { state: "unknown" }>): string {
  const advice =
    code === "txn_expired"
      ? "This id finds it out no more: look at the values, scopes and jobs that it was to change."
      : `Run it again with --id ${id}: that is never done twice, and says what became of it.`;
  return `it is not known whether transaction ${id} is committed: ${sentence(why)} ${advice}`;
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

export function viewObject(view: TransactionView): object {
  return {
    txn_id: view.id,
    state: view.state === "rolled-back" ? "rolled_back" : view.state,
    home: view.home,
    participants: view.participants,
    by: view.by,
    timeout_ms: view.timeoutMs,
    at: isoTime(view.atMs),
    locks: view.locks,
    results: view.results.map(resultObject),
    reason: view.reason === null ? null : reasonObject(view.reason),
    undelivered: view.undelivered,
    waits_for: view.waitsFor,
    settled: view.isSettled,
    in_doubt: view.isInDoubt,
  };
}

export function viewText(view: TransactionView): string {
  const { reason, locks, undelivered } = view;
  const rows = [
    ["id", view.id],
    ["state", stateText(view)],
    ["since", isoTime(view.atMs)],
    ["by", view.by],
    ["home", view.home],
    ...view.participants.map((hash, at) => [at === 0 ? "islands" : "", hash]),
    ...locks.map((lock, at) => [at === 0 ? "locks" : "", lock]),
    ...(view.results.length > 0 ? [["results", resultsText(view.results)]] : []),
    ...(reason === null ? [] : [["reason", `${reason.code}: ${reason.message}`]]),
    ...(undelivered > 0 ? [["jobs", `${undelivered} not delivered yet`]] : []),
    ...view.waitsFor.map((hash, at) => [at === 0 ? "waits for" : "", hash]),
  ];
  return columns(rows.map((row) => row.map(printable)));
}

export function viewsTable(views: readonly TransactionView[], paint: Paint = PLAIN): string {
  if (views.length === 0) return "no transactions\n";
  const rows = views.map((view) => [
    printable(view.id),
    stateText(view),
    isoTime(view.atMs),
    view.home.slice(0, HASH_LETTERS),
    printable(view.by),
    view.waitsFor.map((hash) => hash.slice(0, HASH_LETTERS)).join(" ") || "-",
    view.locks.map(printable).join(", ") || "-",
  ]);
  return table(["ID", "STATE", "SINCE", "HOME", "BY", "WAITS FOR", "LOCKS"], rows, paint);
}

function stateText({ state, isInDoubt, isSettled }: TransactionView): string {
  const shown = state === "rolled-back" ? "rolled back" : state;
  return isInDoubt ? `${shown}, in doubt` : isSettled ? `${shown}, settled` : shown;
}

function resultsText(results: readonly TransactionResult[]): string {
  const texts = results.map(({ version, epoch, jobId }) =>
    jobId !== undefined
      ? `job ${printable(jobId)}`
      : epoch !== undefined
        ? `epoch ${epoch}`
        : version !== undefined
          ? `version ${version}`
          : "done",
  );
  return texts.join(", ") || "-";
}

function resultObject({ version, epoch, jobId }: TransactionResult): object {
  return { version: version ?? null, epoch: epoch ?? null, job_id: jobId ?? null };
}

function reasonObject({ code, message, backendHash }: NonNullable<TransactionView["reason"]>): object {
  return { code, message, backend_hash: backendHash };
}
