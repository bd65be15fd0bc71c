// When `wait` may return, whatever brings a job's events and looks at it: a look after the stream is open, one after each event
// that may have ended the job, and one every now and then. The last is for an end that no event will report any more: a look may
// have seen the past, or the history was rewritten.

import type { JobState } from "./job-views.ts";

const FINAL: readonly JobState[] = ["completed", "failed", "cancelled"];
const LOOK_AGAIN_MS = 30_000;

/** Wakes after so long, unless what it returns was called before. */
export type WakeAfter = (ms: number, wake: () => void) => () => void;

/** `items`: "the stream is open", then the job's final events, none left out. `look`: linearizable. */
export async function untilFinal<T extends { readonly state: JobState }>(
  items: Pick<AsyncIterator<unknown>, "next">,
  look: () => Promise<T>,
  wakeAfter: WakeAfter = byTimeout,
): Promise<T> {
  for (let next: Promise<unknown> | null = null; ;) {
    next ??= items.next();
    if (await isWithin(next, wakeAfter)) next = null;
    const job = await look();
    if (FINAL.includes(job.state)) return job;
  }
}

/** False: nothing has come in time. Rejects as the item does. */
async function isWithin(item: Promise<unknown>, wakeAfter: WakeAfter): Promise<boolean> {
  return await new Promise((resolve, reject) => {
    const forget = wakeAfter(LOOK_AGAIN_MS, () => resolve(false));
    item.then(() => resolve(true), reject).finally(forget);
  });
}

function byTimeout(ms: number, wake: () => void): () => void {
  const timer = setTimeout(wake, ms);
  return () => clearTimeout(timer);
}
