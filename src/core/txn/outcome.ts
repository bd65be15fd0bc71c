// The records that decide a transaction at an island, and the answers about it.

import type { JobSpec } from "../jobs/model.ts";
import type { ScopeEvent } from "../scopes/index.ts";
import type { ValueEvent } from "../values/index.ts";
import { effectsOf, type EffectsContext } from "./effects.ts";
import type { TxnDecidedEvent, TxnEvent } from "./events.ts";
import type {
  BackendHash,
  TcFence,
  TxnAnswer,
  TxnHeader,
  TxnOperation,
  TxnReason,
  TxnResult,
  TxnState,
} from "./model.ts";
import type { Refusal } from "./operations.ts";
import { clippedReason } from "./requests.ts";
import type { TxnsView } from "./view.ts";

export interface TxnContext {
  /** This island. */
  readonly self: BackendHash;
  /** Wall time of this leader. */
  readonly atMs: number;
  /** Of the record that this decision may make: `placeOf(position)`. */
  readonly place: number;
  readonly position: number;
  /** In which term a leader acts, as this node's own coordinator knows; null: it has none, or knows of none. */
  readonly observed: TcFence | null;
  readonly newJobId: () => string;
  /** Why nobody can do such a job; null: somebody can. All that core/jobs refuses is named here. */
  readonly problemOf: (spec: JobSpec) => string | null;
}

export type TxnChange = TxnEvent | ValueEvent | ScopeEvent;

export type TxnDecision =
  /** One record; the answer is given when it is committed. */
  | { readonly kind: "record"; readonly changes: readonly TxnChange[]; readonly answer: TxnAnswer }
  /** Nothing is to be written. It rests on the head: what is under way is committed before it is given, and this node is confirmed to lead. */
  | { readonly kind: "answer"; readonly answer: TxnAnswer };

export type Deciding = EffectsContext & { readonly fence: TcFence | null; readonly reason?: TxnReason | null };

/** With all that it does, in one record. */
export function committed(
  view: TxnsView,
  header: TxnHeader,
  operations: readonly TxnOperation[],
  context: Deciding,
): TxnDecision {
  const { changes, results, outbox } = effectsOf(view, operations, context);
  const { fence, atMs } = context;
  const reason = context.reason ? clippedReason(context.reason) : null;
  const event: TxnDecidedEvent = {
    kind: "txn-decided",
    header,
    outcome: "committed",
    results,
    outbox,
    reason,
    fence,
    atMs,
  };
  return { kind: "record", changes: [event, ...changes], answer: { kind: "txn", phase: "committed", results, reason } };
}

/** At home, or as home has answered. */
export function rolledBack(
  header: TxnHeader,
  why: TxnReason,
  { fence, atMs }: Pick<Deciding, "fence" | "atMs">,
): TxnDecision {
  const reason = clippedReason(why);
  const nothing: readonly TxnResult[] = [];
  const rest = { results: nothing, outbox: [], reason, fence, atMs };
  const event: TxnDecidedEvent = { kind: "txn-decided", header, outcome: "rolled-back", ...rest };
  return { kind: "record", changes: [event], answer: rolledBackAs(reason) };
}

export function rolledBackAs(reason: TxnReason): TxnAnswer {
  return { kind: "txn", phase: "rolled-back", results: [], reason };
}

export function asIs(state: TxnState | undefined): TxnAnswer {
  if (state === undefined) return { kind: "txn", phase: null, results: [], reason: null };
  return { kind: "txn", phase: state.phase, results: state.results, reason: state.reason };
}

export function answered(state: TxnState | undefined): TxnDecision {
  return { kind: "answer", answer: asIs(state) };
}

export function refused({ code, message }: Refusal): TxnDecision {
  return { kind: "answer", answer: { kind: "refused", code, message } };
}
