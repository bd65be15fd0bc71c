// Who may act: the coordinators' terms as this island has them in its log. A call of a lower term comes from a coordinator whose time is over.
//
// The island's own memory is not enough: it may have missed a whole election. So what its node observes of the leader counts too.

import { GENERATION_TERMS } from "../kit/limits.ts";
import type { TcFence } from "./model.ts";
import type { Refusal } from "./operations.ts";

export type FenceWord =
  /** As it is. */
  | { readonly kind: "same" }
  /** It goes up, in the record that this call makes. */
  | { readonly kind: "raised" }
  | ({ readonly kind: "refused" } & Refusal);

/** `observed`: what this node knows of a leader; null: nothing. */
export function fenceWord(
  fence: TcFence | null,
  asked: TcFence,
  observed: { readonly clusterId: string; readonly term: number } | null,
): FenceWord {
  const own = observed?.clusterId ?? null;
  const known = fence !== null && fence.clusterId === asked.clusterId ? fence : null;
  if (known === null && (own ?? fence?.clusterId ?? asked.clusterId) !== asked.clusterId)
    return mismatch(
      `the cluster of coordinators ${asked.clusterId} is not ${own ?? fence?.clusterId}, which it belongs to`,
    );
  if (known !== null && generationOf(known) === generationOf(asked) && known.recoveredBy !== asked.recoveredBy)
    return mismatch(`term ${asked.term} is of another recovery of the coordinators than term ${known.term}`);
  const seen = own === asked.clusterId ? (observed?.term ?? 0) : 0;
  const highest = Math.max(known?.term ?? 0, seen);
  if (asked.term < highest)
    return {
      kind: "refused",
      code: "tc_term_stale",
      message: `Term ${asked.term} of the coordinators is over: this island knows of term ${highest}. This call has changed nothing.`,
    };
  return { kind: known?.term === asked.term ? "same" : "raised" };
}

/** As the log goes on: it never falls. */
export function raisedFence(fence: TcFence | null, by: TcFence): TcFence {
  return fence !== null && fence.clusterId === by.clusterId && fence.term > by.term ? fence : by;
}

function generationOf({ term }: TcFence): number {
  return Math.floor(term / GENERATION_TERMS);
}

function mismatch(why: string): FenceWord {
  return {
    kind: "refused",
    code: "tc_cluster_mismatch",
    message: `This island refuses it: ${why}. Nothing was changed.`,
  };
}
