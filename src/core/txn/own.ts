// What the leader of an island does about transactions by itself, without a coordinator. In each case a record that changes what it says, or nothing.

import type { EffectsContext } from "./effects.ts";
import type { TxnReason } from "./model.ts";
import { committed, rolledBack, type TxnChange, type TxnContext } from "./outcome.ts";
import { undecided } from "./refusals.ts";
import type { TxnView } from "./view.ts";

/** The changes of one record; none of them: there is nothing to do. */
export type TxnChanges = readonly TxnChange[];

/** Home has answered what it has decided about one that is prepared here. */
export function decideOutcome(
  view: TxnView,
  id: string,
  outcome: { readonly phase: "committed" | "rolled-back"; readonly reason: TxnReason | null },
  context: EffectsContext,
): TxnChanges {
  const state = view.txns.get(id);
  if (state?.phase !== "prepared") return [];
  const { reason } = outcome;
  const { header, operations } = state;
  const decision =
    outcome.phase === "committed"
      ? committed(view, header, operations, { ...context, fence: null, reason })
      : rolledBack(header, reason ?? undecided(id), { ...context, fence: null });
  return decision.kind === "record" ? decision.changes : [];
}

/**
 * An operator's word for one that is prepared here, and whose home is gone for good. `committed` of one that is committed here already: it waits no
 * longer for the answer to its report, or, at home, for the reports of participants. These must be gone for good too: one that is prepared, and asks
 * after home has forgotten the commit, is answered with a rollback.
 */
export function decideForce(
  view: TxnView,
  id: string,
  phase: "committed" | "rolled-back",
  context: EffectsContext,
): TxnChanges {
  const state = view.txns.get(id);
  if (phase === "committed" && state?.phase === "committed")
    return state.isSettled || state.outbox.length > 0
      ? []
      : [{ kind: "txn-settled", id, by: null, atMs: context.atMs }];
  const message = "An operator has decided it at this island, because its home could not be asked.";
  return decideOutcome(view, id, { phase, reason: { code: "OUTCOME_UNKNOWN", message, backendHash: null } }, context);
}

/** Its jobs are in the jobs' log. */
export function decideDelivered(view: TxnView, id: string, { atMs }: Pick<TxnContext, "atMs">): TxnChanges {
  return (view.txns.get(id)?.outbox ?? []).length === 0 ? [] : [{ kind: "txn-delivered", id, atMs }];
}

/** Home knows that these are done here. At most TXN_BATCH_MAX. */
export function decideSettledKnown(
  view: TxnView,
  ids: readonly string[],
  { atMs, self }: Pick<TxnContext, "atMs" | "self">,
): TxnChanges {
  return [...new Set(ids)].flatMap((id): TxnChanges => {
    const state = view.txns.get(id);
    if (state?.phase !== "committed" || state.isSettled || state.outbox.length > 0) return [];
    return state.header.home === self ? [] : [{ kind: "txn-settled", id, by: null, atMs }];
  });
}

/** Of these, those that are staged and have expired. At most TXN_BATCH_MAX. */
export function decideDropped(view: TxnView, ids: readonly string[], { atMs }: Pick<TxnContext, "atMs">): TxnChanges {
  return [...new Set(ids)].flatMap((id): TxnChanges => {
    const state = view.txns.get(id);
    return state?.phase === "staged" && state.atMs <= atMs ? [{ kind: "txn-dropped", id, atMs }] : [];
  });
}
