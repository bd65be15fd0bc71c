// A caller may name the epoch of the leader that it means. A lower one is over for sure; a higher one says that ours is.

import { TenureError } from "../../core/kit/errors.ts";

export function checkLeaderEpoch(named: number | undefined, epoch: number): void {
  if (named === undefined || named === epoch) return;
  if (named > epoch) {
    throw new TenureError("NOT_LEADER", `This node led in epoch ${epoch}, and ${named} has begun. Ask the new leader.`);
  }
  throw new TenureError(
    "STALE_EPOCH",
    `This request is for leader epoch ${named}, and ${epoch} is in force. It is not done now; what became of an earlier attempt, look at the jobs.`,
  );
}
