// Who may act: the coordinators' terms as this island has them in its log. A call of a lower term comes from a coordinator whose time is over.
//
// The island's own memory is not enough: it may have missed a whole election. So what its node observes of the leader counts too. Where two recoveries
// win the same terms, the one that the island's log has counts, whatever its node observes: else it would refuse both.

import { GENERATION_TERMS } from "../kit/limits.ts";
import { TXN_GENERATIONS_AHEAD_MAX } from "./limits.ts";
import type { TcFence } from "./model.ts";
import type { Refusal } from "./operations.ts";

export type FenceWord =
  /** As it is. */
  | { readonly kind: "same" }
  /** It goes up, in the record that this call makes. */
  | { readonly kind: "raised" }
  | ({ readonly kind: "refused" } & Refusal);

/** `observed`: in which term a leader acts, as this node's own coordinator knows; null: nothing. */
export function fenceWord(fence: TcFence | null, asked: TcFence, observed: TcFence | null): FenceWord {
  const own = observed?.clusterId ?? null;
  const known = fence !== null && fence.clusterId === asked.clusterId ? fence : null;
  if (known === null && (own ?? fence?.clusterId ?? asked.clusterId) !== asked.clusterId)
    return mismatch(
      `the cluster of coordinators ${asked.clusterId} is not ${own ?? fence?.clusterId}, which it belongs to`,
    );
  const seen = observed !== null && own === asked.clusterId ? observed : null;
  const other = otherRecovery(known, asked, seen);
  if (other !== null)
    return mismatch(`term ${asked.term} is of another recovery of the coordinators than term ${other.term}`);
  const seenTerm = seen === null || isOtherRecovery(seen, asked) ? 0 : seen.term;
  const highest = Math.max(known?.term ?? 0, seenTerm);
  if (asked.term < highest)
    return {
      kind: "refused",
      code: "tc_term_stale",
      message: `Term ${asked.term} of the coordinators is over: this island knows of term ${highest}. This call has changed nothing.`,
    };
  const generation = Math.max(generationOf(known), generationOf(seen));
  if (generationOf(asked) > generation + TXN_GENERATIONS_AHEAD_MAX) return tooFar(asked, generation);
  return { kind: known?.term === asked.term ? "same" : "raised" };
}

/** As the log goes on: it never falls. */
export function raisedFence(fence: TcFence | null, by: TcFence): TcFence {
  return fence !== null && fence.clusterId === by.clusterId && fence.term > by.term ? fence : by;
}

/** Of the same generation as what is asked, entered by another recovery: the one that this island follows. */
function otherRecovery(known: TcFence | null, asked: TcFence, seen: TcFence | null): TcFence | null {
  if (known !== null && isOtherRecovery(known, asked)) return known;
  const isNew = known === null || generationOf(known) < generationOf(asked);
  return isNew && seen !== null && isOtherRecovery(seen, asked) ? seen : null;
}

/** Terms of these two say nothing of each other. */
function isOtherRecovery(one: TcFence, asked: TcFence): boolean {
  return generationOf(one) === generationOf(asked) && one.recoveredBy !== asked.recoveredBy;
}

function generationOf(fence: TcFence | null): number {
  return fence === null ? 0 : Math.floor(fence.term / GENERATION_TERMS);
}

function tooFar(asked: TcFence, generation: number): FenceWord {
  const most = generation + TXN_GENERATIONS_AHEAD_MAX;
  const message = `Term ${asked.term} of the coordinators is of generation ${generationOf(asked)}; this island believes none above ${most}. Nothing was changed. If they were recovered so often, let this island's servers join them ([tc] join).`;
  return { kind: "refused", code: "invalid_term", message };
}

function mismatch(why: string): FenceWord {
  return {
    kind: "refused",
    code: "tc_cluster_mismatch",
    message: `This island refuses it: ${why}. Nothing was changed.`,
  };
}
