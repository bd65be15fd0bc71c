// What the decider rejects with, in words for whoever asked.

import { type ErrorCode, TenureError } from "../../../core/kit/errors.ts";
import type { BackendHash, TxnHeader, TxnReason } from "../../../core/txn/model.ts";

/** As `leader_endpoint` in the error's body. */
export class NotTheCoordinator extends TenureError {
  readonly leaderEndpoint: string | null;

  constructor(leaderEndpoint: string | null, why: string) {
    const where = leaderEndpoint === null ? "Repeat it in a moment." : `Send it to ${leaderEndpoint}.`;
    super("tc_not_leader", `${why} ${where}`);
    this.leaderEndpoint = leaderEndpoint;
  }
}

export function nobodyLeads(): TenureError {
  return new TenureError(
    "tc_unavailable",
    "This node knows no leader of the transaction coordinators: an election is running, or a majority of the voters is out of reach. Nothing was done; repeat it.",
  );
}

export function unregistered(islands: readonly BackendHash[]): TenureError {
  const who = islands.length === 1 ? `The island ${islands[0]} is` : `The islands ${islands.join(", ")} are`;
  return new TenureError(
    "tc_rm_unavailable",
    `${who} not registered: nothing was done. tenure tc rm list (GET /v1/tc/rm/list) says which are; an island registers itself when one of its nodes joins the coordinators.`,
  );
}

export function overloaded(running: number): TenureError {
  return new TenureError(
    "OVERLOADED",
    `This node runs ${running} transactions already. Nothing was done; repeat it in a moment.`,
  );
}

export function tooManyBytes(running: number, more: number): TenureError {
  return new TenureError(
    "OVERLOADED",
    `The transactions that this node runs already have ${running} bytes of operations, and there is no room for ${more} more. Nothing was done; repeat it in a moment.`,
  );
}

/** Not definite: the one that is asked for now may be committed, and the other one be in vain. */
export function otherBody(id: string): TenureError {
  return new TenureError(
    "txn_pending",
    `Another transaction runs under the id ${id}. Every transaction has an id of its own; only a repetition has the same, with the same content. Ask again, and its islands say which of the two they know.`,
  );
}

export function isBeingDecided(id: string): TenureError {
  return new TenureError(
    "txn_pending",
    `The transaction ${id} is being decided at this moment, as another request asked for it. Ask again.`,
  );
}

export function unknown(id: string, why: string): TenureError {
  return new TenureError(
    "OUTCOME_UNKNOWN",
    `What became of the transaction ${id} is not known: ${why}. Repeat it with the same id and content: it is done once, and the answer says what became of it.`,
  );
}

/** By home, before anything was prepared. */
export function notBegun({ id, home }: TxnHeader, { code, message }: Pick<TxnReason, "code" | "message">): TenureError {
  return new TenureError(
    code,
    `The home ${home} of the transaction ${id} decides nothing at this moment, so this request has begun nothing. ${message}`,
  );
}

/** Its islands do nothing of it, ever. */
export function rolledBack(id: string, code: ErrorCode, reason: Pick<TxnReason, "message"> | null): TenureError {
  return new TenureError(
    code,
    `${ROLLED_BACK[code] ?? `The transaction ${id} was not done.`} ${reason?.message ?? ""}`.trimEnd(),
  );
}

const ROLLED_BACK: Partial<Readonly<Record<ErrorCode, string>>> = {
  txn_fanout_failed: "An island could not be reached, and the transaction was rolled back.",
  txn_conflict: "Another transaction has this id at one of its islands; this one was not done.",
  txn_expired: "What became of this id before is not kept any more; from now on nothing is done under it.",
};

export function notStaged(target: BackendHash, id: string): TenureError {
  return new TenureError(
    "OUTCOME_UNKNOWN",
    `The island ${target} did not answer: whether the operations of ${id} are staged there is not known. Repeat it: that does no harm.`,
  );
}
