// What can wait gives way: a verification, a snapshot. It is done in slices, and how late the loop comes back to it says how much
// else there is to do, or how short processors are. On an idle machine it does not rest at all.

import { REST_MS_MAX, REST_PER_LATE, SLICE_LATE_MS } from "../core/kit/limits.ts";

/** Before the next slice, where the loop took so long to come to it. */
export function restAfterMs(lateMs: number): number {
  return lateMs <= SLICE_LATE_MS ? 0 : Math.min(REST_MS_MAX, REST_PER_LATE * lateMs);
}
