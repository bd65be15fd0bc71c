// What an attempt prints, as it prints it: server-sent events, `id: <attempt>:<offset after it>`, so that a reader goes on where
// it was, on any node; and `point`, by which the next node sees whether its history is the same. `event: log` has `{text, offset, next_offset}`, `event: end` comes when nothing more will.
// The job's events say when to look; the text itself comes from the views. Where this node has taken over another state, the stream
// ends without `end`: its reader resumes with the point that it has, and gets HISTORY_REWRITTEN if that is of no history any more (trap 82).

import { eventPointText } from "../../contract/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { LOG_PAGE_BYTES_MAX } from "../../core/kit/limits.ts";
import type { Clock } from "../../ports/clock.ts";
import type { JobLogPage } from "../../ports/views.ts";
import type { JobsParts, Service, StreamAnswer } from "../handlers/handler.ts";
import { LOG_POLL_BYTES_MAX, LOG_POLL_EVENTS_MAX, LOG_POLL_MS } from "../limits.ts";
import { everyNowAndThen } from "../traffic/admission.ts";
import { newestPoint } from "./event-point.ts";
import type { Outlet } from "./stream.ts";

interface Following {
  readonly jobId: string;
  readonly attempt: number;
  readonly offset: number;
  readonly isStillAdmitted: () => boolean;
  readonly takeStream: () => () => void;
  /** The history is the one in which the reader's point was found. */
  readonly isSameHistory: () => boolean;
}

/** Throws OVERLOADED before anything is sent. */
export function followLog(service: Service, parts: JobsParts, following: Following): StreamAnswer {
  const close = following.takeStream();
  return {
    contentType: "text/event-stream; charset=utf-8",
    headers: { "x-accel-buffering": "no" },
    abandoned: close,
    stream: (out) => follow(service, parts, following, out).finally(close),
  };
}

async function follow(service: Service, parts: JobsParts, following: Following, out: Outlet): Promise<void> {
  const { jobs, views, events } = parts;
  const { jobId, attempt, isSameHistory } = following;
  const { clock, limits } = service;
  const isAdmitted = everyNowAndThen(clock, limits.heartbeatMs, following.isStillAdmitted);
  let { offset } = following;
  let toldAtMs = clock.monotonicMs();
  await out.write("retry: 1000\n\n");
  while (!out.signal.aborted) {
    const head = events.head().sequence;
    const reached = await views.reached();
    const page = await logPage(parts, jobId, attempt, offset);
    // Whatever this page shows is of the history up to here: a reader brings the point back when it resumes.
    const point = eventPointText(await newestPoint(parts));
    if (!isAdmitted() || !isSameHistory()) return;
    if (page.text !== "") {
      const data = JSON.stringify({ text: page.text, offset, next_offset: page.nextOffset });
      await out.write(`id: ${attempt}:${page.nextOffset}\npoint: ${point}\nevent: log\ndata: ${data}\n\n`);
      offset = page.nextOffset;
      toldAtMs = clock.monotonicMs();
      continue;
    }
    // Views that are being built again may have the job's end before its log.
    if (page.isComplete && reached >= jobs.loggedUpTo(jobId)) {
      return out.write(`event: end\ndata: {"attempt":${attempt},"offset":${offset}}\n\n`);
    }
    const waitMs = reached < head ? LOG_POLL_MS : limits.heartbeatMs;
    await eventOf(service, parts, jobId, head, waitMs, out.signal);
    if (clock.monotonicMs() - toldAtMs < limits.heartbeatMs) continue;
    // A point that moves with the history: that of a quiet job's last piece is cut off some day.
    const newest = eventPointText(await newestPoint(parts));
    if (!isSameHistory()) return;
    await out.write(`: heartbeat\npoint: ${newest}\n\n`);
    toldAtMs = clock.monotonicMs();
  }
}

/** Views that lag do not know yet what was submitted a moment ago: it has logged nothing that they could show. */
export async function logPage(
  { jobs, views }: JobsParts,
  jobId: string,
  attempt: number,
  offset: number,
): Promise<JobLogPage> {
  try {
    return await views.log(jobId, attempt, offset, LOG_PAGE_BYTES_MAX);
  } catch (error) {
    if (!TenureError.is(error) || error.code !== "NOT_FOUND" || jobs.job(jobId) === null) throw error;
    return { text: "", nextOffset: offset, isComplete: false };
  }
}

/** Until there is an event of this job after `after`, or the time is over. */
async function eventOf(
  { clock }: Service,
  { events }: JobsParts,
  entityId: string,
  after: number,
  waitMs: number,
  outer: AbortSignal,
): Promise<void> {
  const wait = within(clock, waitMs, outer);
  const filter = { types: null, entityId, entityType: "build" };
  try {
    for (let seen = after; !wait.signal.aborted;) {
      if (seen >= events.head().sequence) return await events.arrivedOf(entityId, wait.signal);
      const page = await events.read(seen, { filter, max: LOG_POLL_EVENTS_MAX, bytesMax: LOG_POLL_BYTES_MAX });
      if (page.events.length > 0) return;
      seen = page.through;
    }
  } finally {
    wait.close();
  }
}

/** A signal that aborts with `outer`, or after `ms`; `close` must be called. */
export function within(clock: Clock, ms: number, outer: AbortSignal): { signal: AbortSignal; close: () => void } {
  const controller = new AbortController();
  const abort = (): void => controller.abort("over");
  const timer = clock.setTimer(clock.monotonicMs() + ms, abort);
  outer.addEventListener("abort", abort, { once: true });
  if (outer.aborted) abort();
  const close = (): void => {
    timer.cancel();
    outer.removeEventListener("abort", abort);
  };
  return { signal: controller.signal, close };
}
