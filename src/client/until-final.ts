// When `wait` may return, whatever brings a job's events and looks at it: a look after the stream is open, and one after each
// event that may have ended the job.

import type { JobState } from "./job-views.ts";

const FINAL: readonly JobState[] = ["completed", "failed", "cancelled"];

/** `items`: "the stream is open", then the job's final events, none left out. `look`: linearizable. */
export async function untilFinal<T extends { readonly state: JobState }>(
  items: AsyncIterator<unknown>,
  look: () => Promise<T>,
): Promise<T> {
  for (;;) {
    await items.next();
    const job = await look();
    if (FINAL.includes(job.state)) return job;
  }
}
