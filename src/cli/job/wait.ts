// `tenure job wait`: until several jobs are finished, or the time is over.

import type { Client, JobView } from "../../client/index.ts";
import { TenureError } from "../../contract/errors.ts";
import { LAST_READ_MS, WAITED_AT_ONCE_MAX } from "../limits.ts";
import type { JobRefusal } from "./object.ts";

/** `job`: null where it was refused, or the time was over and nobody could say more. */
export interface Waited {
  readonly id: string;
  readonly job: JobView | null;
  readonly refusal: JobRefusal | null;
}

export interface WaitOptions {
  /** Ends all of it: rejects. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number | null;
  /** As each of them is known. */
  readonly tell: (waited: Waited) => void;
}

/** In the order of the ids. Never rejects for one of them. */
export async function waitForJobs(
  client: Client,
  ids: readonly string[],
  { signal, timeoutMs, tell }: WaitOptions,
): Promise<readonly Waited[]> {
  const limit = timeoutMs === null ? signal : AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const found = new Map<string, Waited>();
  const left = [...ids];
  const one = async (): Promise<void> => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) {
      const waited = await waitForOne(client, id, limit, signal);
      found.set(id, waited);
      tell(waited);
    }
  };
  await Promise.all(Array.from({ length: Math.min(WAITED_AT_ONCE_MAX, ids.length) }, one));
  return ids.map((id) => found.get(id) as Waited);
}

async function waitForOne(client: Client, id: string, limit: AbortSignal, signal: AbortSignal): Promise<Waited> {
  try {
    return { id, job: await client.wait(id, { signal: limit }), refusal: null };
  } catch (error) {
    signal.throwIfAborted();
    if (limit.aborted) return { id, job: await lastLook(client, id, signal), refusal: null };
    if (!TenureError.is(error)) throw error;
    return { id, job: null, refusal: { code: error.code, message: error.message } };
  }
}

/** Where it stands when the time is over. It may just have ended, and then it counts. */
async function lastLook(client: Client, id: string, signal: AbortSignal): Promise<JobView | null> {
  try {
    return await client.job(id, { signal, timeoutMs: LAST_READ_MS });
  } catch (error) {
    signal.throwIfAborted();
    if (!TenureError.is(error)) throw error;
    return null;
  }
}
