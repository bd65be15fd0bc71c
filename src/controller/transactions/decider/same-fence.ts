// Whether a term is still the one in which something was begun.

import type { TcFence } from "../../../core/txn/model.ts";

/** The same term of the same coordinators: a term that was lost and won again is another one. */
export function isSameFence(now: TcFence | null, begun: TcFence): boolean {
  return (
    now !== null &&
    now.term === begun.term &&
    now.clusterId === begun.clusterId &&
    now.recoveredBy === begun.recoveredBy
  );
}
