// When `wait` may return, whatever brings a job's events and looks at it: a look after the stream is open, one after each event
// that may have ended the job, and one every now and then. The last is for an end that no event will report any more: a look may
// have seen the past, or the history was rewritten.

import type { JobState } from "./job-views.ts";
import { FINAL_CHECK_MS } from "./limits.ts";

const FINAL: readonly JobState[] = ["completed", "failed", "cancelled"];

/** Wakes after so long, unless what it returns was called before. */
export type WakeAfter = (ms: number, wake: () => void) => () => void;

/** `items`: "the stream is open", then the job's final events, none left out. `look`: linearizable. */
export async function untilFinal<T extends { readonly state: JobState }>(
  items: Pick<AsyncIterator<unknown>, "next">,
  look: () => Promise<T>,
  wakeAfter: WakeAfter = byTimeout,
): Promise<T> {
  let isHere = false;
  let wake: (() => void) | undefined;
  const come = (): void => {
    isHere = true;
    wake?.();
  };
  for (let next: Promise<unknown> | null = null; ;) {
    if (next === null) {
      isHere = false;
      next = items.next();
      // Once for each item: what hangs on it stays for as long as it is awaited, over any number of looks.
      next.then(come, come);
    }
    await new Promise<void>((resolve) => {
      if (isHere) return resolve();
      const forget = wakeAfter(FINAL_CHECK_MS, resolve);
      wake = () => {
        forget();
        resolve();
      };
    });
    if (isHere) {
      await next;
      next = null;
    }
    const job = await look();
    if (FINAL.includes(job.state)) return job;
  }
}

function byTimeout(ms: number, wake: () => void): () => void {
  const timer = setTimeout(wake, ms);
  return () => clearTimeout(timer);
}
