// Why the jobs of a list wait, as the servers say it of each: a list from the views has no reasons. Jobs of one kind, queue, labels
// and platform wait for the same agents, so that one of them is asked about for all, and a few calls do for a long list.

import type { Client, JobBrief, PendingReasonView, ReadOptions } from "../client/index.ts";
import { TenureError } from "../contract/errors.ts";
import { WHY_ASKED_MAX } from "./limits.ts";

/** By the job's id; of those that may run now and are not known to be paused. Whatever can't be learned is left out. */
export async function whyTheyWait(
  client: Pick<Client, "job">,
  jobs: readonly JobBrief[],
  how: ReadOptions,
): Promise<ReadonlyMap<string, PendingReasonView>> {
  const sorts = new Map<string, JobBrief[]>();
  for (const job of jobs) {
    const sort = sortOf(job);
    sorts.set(sort, [...(sorts.get(sort) ?? []), job]);
  }
  const reasons = new Map<string, PendingReasonView>();
  const ask = async (alike: readonly JobBrief[]): Promise<void> => {
    // A list is newest first: the last has waited for the longest.
    const { id } = alike.at(-1)!;
    const reason = await reasonOf(client, id, how);
    if (reason === null) return;
    const holdsForAll = !["next", "not-before", "concurrency"].includes(reason.reason);
    for (const one of holdsForAll ? alike : [{ id }]) reasons.set(one.id, reason);
  };
  await Promise.all([...sorts.values()].slice(0, WHY_ASKED_MAX).map(ask));
  return reasons;
}

function sortOf({ kind, queue, labels, platform }: JobBrief): string {
  return JSON.stringify([kind, queue, platform, Object.entries(labels).map(String).toSorted()]);
}

/** Null where it waits no more, or no answer comes: a list without a reason is better than none. */
async function reasonOf(client: Pick<Client, "job">, id: string, how: ReadOptions): Promise<PendingReasonView | null> {
  try {
    return (await client.job(id, how)).pendingReason;
  } catch (error) {
    if (!TenureError.is(error)) throw error;
    return null;
  }
}
