// Reads of jobs, agents, queues and schedules, on every node. Live jobs are in memory; finished ones, lists and logs come
// from the views, which follow the applied state and may lag behind it.

import {
  jobAnswer,
  jobBrief,
  JOBS_PER_PAGE_MAX,
  NAMES_PER_PAGE_MAX,
  openApi,
  ROUTES,
  toSnake,
} from "../../contract/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { Job, JobState, NamesPage } from "../../ports/jobs.ts";
import type { JobPage } from "../../ports/views.ts";
import { PAGE_CHARACTERS_MAX, VIEWS_POLL_MS } from "../limits.ts";
import { mustBeKnown } from "../streams/event-point.ts";
import type { Answer, Call, Handlers, JobsParts, Service } from "./handler.ts";
import { followLog, logPage } from "../streams/log-stream.ts";
import { beFresh, type Consistency } from "./reads.ts";
import { Refusal } from "../refusal.ts";
import { pause } from "../../loops/time.ts";

type Ids = "openapi" | "jobs" | "job" | "jobLogs" | "agents" | "queues" | "schedules" | "stats";

export function jobHandlers(service: Service, parts: JobsParts): Pick<Handlers, Ids> {
  const { jobs, events } = parts;
  let document: string | undefined;
  const bodies = new WeakMap<JobPage, string>();
  /** How often the history was replaced. */
  let histories = 0;
  events.onReplaced(() => void histories++);
  const named = async <Key extends string>(
    what: string,
    listed: (of: NamesPage) => readonly Readonly<Record<Key, string>>[],
    key: Key,
    query: Page & Consistency,
  ): Promise<Answer> => {
    await beFresh(service, query);
    const { page, next } = paged(listed, (one) => one[key], query);
    return { body: { [what]: page.map((one) => toSnake(one)), next } };
  };
  return {
    openapi: () => {
      document ??= JSON.stringify(openApi(ROUTES, service.cluster.view().version));
      return { body: document, contentType: "application/json; charset=utf-8" };
    },
    jobs: async ({ query }) => {
      const page = await list(service, parts, query);
      // Several who asked for the same at once are given the same page.
      let body = bodies.get(page);
      if (body === undefined) bodies.set(page, (body = pageText(page)));
      return { body, contentType: "application/json; charset=utf-8" };
    },
    job: async ({ params, query }) => {
      await beFresh(service, query);
      const job = await findJob(service, parts, params.id, isDemanding(query));
      return { body: shown(parts, job) };
    },
    jobLogs: (call) => {
      const begun = histories;
      return logs(service, parts, call, () => histories === begun);
    },
    agents: ({ query }) => named("agents", (of) => jobs.agents(of), "name", query),
    queues: ({ query }) => named("queues", (of) => jobs.queues(of), "queue", query),
    schedules: ({ query }) => named("schedules", (of) => jobs.schedules(of), "name", query),
    stats: async ({ query }) => {
      await beFresh(service, query);
      const { first, sequence } = events.head();
      return { body: { ...toSnake(jobs.stats()), first_sequence: first, last_sequence: sequence } };
    },
  };
}

/** A job as it is answered, here and by the mutations that answer with one. */
export function shown({ jobs }: JobsParts, job: Job): object {
  const reason = job.state === "pending" ? jobs.whyPending(job.id) : null;
  return { ...jobAnswer(job), pending_reason: reason === null ? null : toSnake(reason) };
}

/** Throws NOT_FOUND only where it is certain, and TOO_STALE where nothing is: views that are being built again show the past. */
async function findJob(service: Service, { jobs }: JobsParts, id: string, mustBeLatest = false): Promise<Job> {
  const found = await jobs.find(id, service.limits.catchUpTimeoutMs);
  if (found.kind === "behind") throw viewsBehind(service, found.position, found.wanted);
  if (found.job === null) throw unknownJob(id);
  if (mustBeLatest && found.mayBeOlder) throw endNotCertain(id);
  return found.job;
}

function endNotCertain(id: string): Refusal {
  const text = `Job ${id} had ended before events that no member has, and may have been run once more in them. A read with consistency=local shows it as it was before.`;
  return new Refusal("EVENTS_LOST", text, { id });
}

function unknownJob(id: string): Refusal {
  return new Refusal("NOT_FOUND", `This node knows no job ${id}: there was none, or its retention is over.`, { id });
}

async function list(service: Service, parts: JobsParts, query: Call<"jobs">["query"]): Promise<JobPage> {
  await beFresh(service, query);
  const wanted = isDemanding(query) ? parts.events.head().sequence : 0;
  if (wanted > 0) await viewsReach(service, parts, wanted);
  const { state, kind, queue, agent, search, cursor, limit = JOBS_PER_PAGE_MAX } = query;
  const states = state === undefined ? undefined : (state.split(",") as JobState[]);
  const asked = { states, kind, queue, agent, search, cursor, limit };
  const page = await parts.views.list(asked).catch((error: unknown) => {
    // All else that may be wrong in a query was checked before: only the views know their own cursors.
    if (!TenureError.is(error) || error.code !== "BAD_REQUEST") throw error;
    throw new Refusal("BAD_REQUEST", error.message, { field: "cursor" });
  });
  // Views that were there a moment ago may have been lost since, and begin anew: the page's own position counts.
  if (page.position < wanted) throw viewsBehind(service, page.position, wanted);
  return page;
}

function pageText({ jobs, next, position }: JobPage): string {
  return JSON.stringify({ jobs: jobs.map((job) => jobBrief(job)), next, position });
}

async function logs(service: Service, parts: JobsParts, call: Call<"jobLogs">, isSameHistory: () => boolean) {
  const { params, query } = call;
  await beFresh(service, query);
  const resumed = resumedAt(call.header("last-event-id"));
  let job = await findJob(service, parts, params.id);
  await pointIsKnown(service, parts, call);
  if (resumed !== null && resumed.attempt > lastAttemptOf(job)) {
    // This node may be behind the one that gave it out.
    const isAll = await service.cluster.catchUp(service.limits.catchUpTimeoutMs);
    job = await findJob(service, parts, params.id);
    if (isAll && resumed.attempt > lastAttemptOf(job)) throw notOfThisStream();
  }
  await viewsReach(service, parts, parts.jobs.loggedUpTo(job.id));
  const attempt = resumed?.attempt ?? query.attempt ?? lastAttemptOf(job);
  const offset = resumed?.offset ?? query.offset ?? 0;
  if (query.follow === true) {
    const { isStillAdmitted, takeStream } = call;
    return followLog(service, parts, { jobId: job.id, attempt, offset, isStillAdmitted, takeStream, isSameHistory });
  }
  if (isDemanding(query)) await viewsReach(service, parts, parts.events.head().sequence);
  const page = await logPage(parts, job.id, attempt, offset);
  return { body: { job_id: job.id, attempt, offset, ...toSnake(page) } };
}

/** The offset alone is enough where events up to the point are not kept any more: the views have the whole log. */
async function pointIsKnown(service: Service, parts: JobsParts, call: Call<"jobLogs">): Promise<void> {
  try {
    await mustBeKnown(service, parts, call);
  } catch (error) {
    if (!TenureError.is(error) || (error.code !== "LOG_COMPACTED" && error.code !== "EVENTS_LOST")) throw error;
  }
}

/** `2:4096`, as the stream of a log numbers its events. */
function resumedAt(id: string | undefined): { attempt: number; offset: number } | null {
  if (id === undefined) return null;
  const [, attempt, offset] = /^([1-9]\d{0,8}):(\d{1,15})$/.exec(id) ?? [];
  if (attempt !== undefined) return { attempt: Number(attempt), offset: Number(offset) };
  throw notOfThisStream();
}

function notOfThisStream(): Refusal {
  return new Refusal("BAD_REQUEST", "Last-Event-ID must be the id of an event of this stream: attempt:offset.", {
    field: "Last-Event-ID",
  });
}

/** Of a job that nobody has run yet, the first to come. */
function lastAttemptOf({ lease, attempts }: Job): number {
  return lease?.attempt ?? attempts.at(-1)?.attempt ?? 1;
}

/** Whether the views must have what the applied state has. */
function isDemanding({ consistency, max_stale_ms: maxStaleMs }: Consistency): boolean {
  return consistency === "linearizable" || maxStaleMs !== undefined;
}

/** Throws TOO_STALE where they are further behind than can be waited for. */
async function viewsReach(service: Service, { views }: JobsParts, position: number): Promise<void> {
  const { clock, limits } = service;
  const endMs = clock.monotonicMs() + limits.catchUpTimeoutMs;
  for (;;) {
    const reached = await views.reached();
    if (reached >= position) return;
    if (clock.monotonicMs() >= endMs) throw viewsBehind(service, reached, position);
    await pause(clock, VIEWS_POLL_MS);
  }
}

function viewsBehind({ nodeId }: Service, reached: number, wanted: number): Refusal {
  const text = `The views of node ${nodeId} are at event ${reached} of ${wanted}: they are being built again, or can't keep up. Retry later, or ask another node.`;
  return new Refusal("TOO_STALE", text, { node_id: nodeId });
}

interface Page {
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

/**
 * `listed`: those of the page alone are worked out, and one more, to know whether there are more. A page ends early where it has much
 * to say: schedules carry payloads, and an answer is made in one turn of the loop.
 */
function paged<T>(listed: (of: NamesPage) => readonly T[], nameOf: (one: T) => string, query: Page) {
  const { after, limit = NAMES_PER_PAGE_MAX } = query;
  const found = listed({ after, limit: limit + 1 });
  const page: T[] = [];
  for (let characters = 0; page.length < Math.min(limit, found.length) && characters < PAGE_CHARACTERS_MAX;) {
    const one = found[page.length]!;
    page.push(one);
    characters += JSON.stringify(one).length;
  }
  const last = page.at(-1);
  return { page, next: found.length > page.length && last !== undefined ? nameOf(last) : null };
}
