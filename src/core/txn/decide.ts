// Calls about transactions: what happens at this island, if anything.

import type { JobSpec } from "../jobs/model.ts";
import type { ErrorCode } from "../kit/errors.ts";
import type { ScopeEvent } from "../scopes/index.ts";
import type { ValueEvent } from "../values/index.ts";
import type { TxnEvent } from "./events.ts";
import type { BackendHash, TcFence, TxnAnswer, TxnReason, TxnRequest } from "./model.ts";
import type { TxnView } from "./view.ts";

export interface TxnContext {
  /** This island. */
  readonly self: BackendHash;
  /** Wall time of this leader. */
  readonly atMs: number;
  /** Of the record that this decision may make: `placeOf(position)`. */
  readonly place: number;
  readonly position: number;
  /** What this node's own coordinator knows of a leader; null: it has none, or knows of none. */
  readonly observed: { readonly clusterId: string; readonly term: number } | null;
  readonly newJobId: () => string;
  /** Why nobody can do such a job; null: somebody can. */
  readonly problemOf: (spec: JobSpec) => string | null;
}

export type TxnChange = TxnEvent | ValueEvent | ScopeEvent;

export type TxnDecision =
  /** One record; the answer is given when it is committed. */
  | { readonly kind: "record"; readonly changes: readonly TxnChange[]; readonly answer: TxnAnswer }
  /** Nothing is to be written. It rests on the head: what is under way is committed before it is given, and this node is confirmed to lead. */
  | { readonly kind: "answer"; readonly answer: TxnAnswer };

export function decideTxn(
  view: TxnView,
  request: Exclude<TxnRequest, { readonly kind: "recover" }>,
  context: TxnContext,
): TxnDecision {
  throw new Error(`not written yet: ${String(view)} ${request.kind} ${context.place}`);
}

export type RecoverDecision =
  /** One record. */
  | { readonly kind: "record"; readonly changes: readonly TxnChange[] }
  /** It was raised before. */
  | { readonly kind: "nothing" }
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string };

/** Of `recover`: raises the fence. What is open is then read from the applied state (`TxnsFold.openOf`). */
export function decideRecover(view: TxnView, fence: TcFence, context: TxnContext): RecoverDecision {
  throw new Error(`not written yet: ${String(view)} ${fence.term} ${context.place}`);
}

/** What the leader of this island does by itself. Each gives the changes of one record; none of them: there is nothing to do. */
export type TxnChanges = readonly TxnChange[];

type Resolving = Pick<TxnContext, "atMs" | "place" | "newJobId">;

/** Home has answered what it has decided about one that is prepared here. */
export function decideOutcome(
  view: TxnView,
  id: string,
  outcome: { readonly phase: "committed" | "rolled-back"; readonly reason: TxnReason | null },
  context: Resolving,
): TxnChanges {
  throw new Error(`not written yet: ${String(view)} ${id} ${outcome.phase} ${context.place}`);
}

/**
 * An operator's word for one that is prepared here, and whose home is gone for good. Of one that is committed and waits for nobody but others'
 * reports: `committed` gives up waiting.
 */
export function decideForce(
  view: TxnView,
  id: string,
  outcome: "committed" | "rolled-back",
  context: Resolving,
): TxnChanges {
  throw new Error(`not written yet: ${String(view)} ${id} ${outcome} ${context.place}`);
}

/** Its jobs are in the jobs' log. */
export function decideDelivered(view: TxnView, id: string, context: Pick<TxnContext, "atMs">): TxnChanges {
  throw new Error(`not written yet: ${String(view)} ${id} ${context.atMs}`);
}

/** Home knows that these are done here. At most TXN_BATCH_MAX. */
export function decideSettledKnown(
  view: TxnView,
  ids: readonly string[],
  context: Pick<TxnContext, "atMs" | "self">,
): TxnChanges {
  throw new Error(`not written yet: ${String(view)} ${ids.length} ${context.atMs}`);
}

/** Of these, those that are staged and have expired. At most TXN_BATCH_MAX. */
export function decideDropped(view: TxnView, ids: readonly string[], context: Pick<TxnContext, "atMs">): TxnChanges {
  throw new Error(`not written yet: ${String(view)} ${ids.length} ${context.atMs}`);
}
