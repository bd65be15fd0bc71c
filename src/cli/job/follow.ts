// A job that is followed to its end. Its events have everything in one order: what it printed, how far it is, whose it is. The
// client reads them on at another node when one dies, each once, so nothing is printed twice and nothing is left out.

import type { Client, EventView, JobState, JobView, Json } from "../../client/index.ts";
import { WAIT_OUTAGE_MS } from "../../client/limits.ts";
import { Pauses } from "../../client/pauses.ts";
import { type ErrorCode, TenureError } from "../../contract/errors.ts";
import { isFinished, oneLine, pendingText, progressText } from "./view.ts";
import { isoTime, printable } from "../kit/output.ts";

/** Where its events can't be followed any more, and what becomes of it can. */
const GOES_ON: Partial<Record<ErrorCode, string>> = {
  LOG_COMPACTED: "its first events are not kept any more: without its log (tenure job logs), until it is finished",
  EVENTS_LOST: "some of its events are lost on every node: without its log (tenure job logs), until it is finished",
  HISTORY_REWRITTEN:
    "the cluster's history was rewritten (restored, recovered or promoted without its end): what was shown may not have happened; without its log, until it is finished",
};

/** "log": as the job printed it. "note": a short line about it. */
export type Told = { readonly kind: "log" | "note"; readonly text: string };

export interface FollowOptions {
  readonly signal: AbortSignal;
  readonly tell: (told: Told) => void;
}

export async function followJob(client: Client, id: string, { signal, tell }: FollowOptions): Promise<JobView> {
  const first = await look(client, id, signal);
  const { state, pendingReason, submittedSequence } = first;
  if (state === "pending" && pendingReason !== null && pendingReason.reason !== "next") {
    tell({ kind: "note", text: `waits: ${pendingText(pendingReason)}` });
  }
  const where = {
    after: submittedSequence,
    entityId: id,
    entityType: "build",
    signal,
    outageMs: WAIT_OUTAGE_MS,
  } as const;
  try {
    for await (const event of client.events(where)) {
      const told = toldBy(event);
      if (told !== null) tell(told);
      const end = endOf(event);
      if (end === null) continue;
      const job = await lookOr(client, id, signal, () => endedBy(first, end, event));
      // Else somebody has sent it once more, and what follows is about that.
      if (isFinished(job)) return job;
    }
  } catch (error) {
    const text = TenureError.is(error) ? GOES_ON[error.code] : undefined;
    if (text === undefined) throw error;
    tell({ kind: "note", text });
  }
  return await client.wait(id, { signal });
}

/** What people are shown of an event of a job; null: nothing. */
export function toldBy({ eventType, payload }: Pick<EventView, "eventType" | "payload">): Told | null {
  const {
    text = "",
    attempt,
    agent = "?",
    by = "?",
    cause,
    progress,
    error,
    readyAtMs,
  } = payload as { readonly [Key in keyof Payload]?: Payload[Key] };
  switch (eventType) {
    case "build:log":
      return { kind: "log", text };
    case "build:assigned":
      return { kind: "note", text: `attempt ${attempt} at agent ${printable(agent)}` };
    case "build:building":
      return { kind: "note", text: progressText(progress ?? null) || "runs" };
    case "build:cancelling":
      return { kind: "note", text: `is being cancelled, asked by ${printable(by)}` };
    case "build:retried": {
      if (cause === "asked") return { kind: "note", text: "is sent once more" };
      const why = error === null || error === undefined ? "" : `: ${oneLine(error.message)}`;
      return { kind: "note", text: `the attempt ended, ${cause}${why}; again from ${isoTime(readyAtMs ?? 0)} on` };
    }
    default:
      return null;
  }
}

/** Of the payloads of a job's events (core/jobs/events.ts), what is told. */
interface Payload {
  readonly text: string;
  readonly attempt: number;
  readonly agent: string;
  readonly by: string;
  readonly cause: string;
  readonly progress: { readonly share: number | null; readonly message: string | null };
  readonly error: { readonly message: string; readonly detail: Json } | null;
  readonly readyAtMs: number;
  readonly result: Json;
}

function endOf({ eventType }: EventView): JobState | null {
  const state = (["completed", "failed", "cancelled"] as const).find((one) => eventType === `build:${one}`);
  return state ?? null;
}

/** A job whose retention is zero is gone when it is finished: its last event says how that was. */
function endedBy(job: JobView, state: JobState, { payload, timestamp }: EventView): JobView {
  const { result = null, error = null } = payload as Partial<Payload>;
  return { ...job, state, result, error, lease: null, pendingReason: null, finishedAtMs: timestamp };
}

async function lookOr(client: Client, id: string, signal: AbortSignal, gone: () => JobView): Promise<JobView> {
  try {
    return await look(client, id, signal);
  } catch (error) {
    if (TenureError.is(error) && error.code === "NOT_FOUND") return gone();
    throw error;
  }
}

/** As the leader has it; while nobody leads, again and again. */
async function look(client: Client, id: string, signal: AbortSignal): Promise<JobView> {
  const pauses = new Pauses(WAIT_OUTAGE_MS);
  for (;;) {
    try {
      return await client.job(id, { consistency: "linearizable", signal });
    } catch (error) {
      signal.throwIfAborted();
      if (!TenureError.is(error) || !error.retryable || !(await pauses.take(signal))) throw error;
    }
  }
}
