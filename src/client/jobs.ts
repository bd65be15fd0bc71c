// Jobs at Tenure's servers: submit, look, wait, steer. Every mutation carries an idempotency key, a random one unless the
// caller has its own, so that it may go out again whatever became of the first attempt: it is done once (traps 65, 66).

import { TenureError } from "../contract/errors.ts";
import { toSnake } from "../contract/snake-case.ts";
import type { JobQuery } from "../ports/views.ts";
import { certificatesOf, type ClientCertificates } from "./certificates.ts";
import { type Caller, type CallOptions, readQuery, type ReadOptions } from "./caller.ts";
import { eventItems, type EventsOptions, followEvents } from "./events.ts";
import type {
  AgentView,
  EventView,
  JobBrief,
  JobRequest,
  JobView,
  LogPiece,
  QueueView,
  ScheduleRequest,
  ScheduleView,
  StatsView,
} from "./job-views.ts";
import { type ClientKeys, keysOf } from "./keys.ts";
import { JOB_PAGES_MAX, WAIT_OUTAGE_MS } from "./limits.ts";
import { logPieces, type LogsOptions } from "./logs.ts";
import { Pauses } from "./pauses.ts";
import { untilFinal } from "./until-final.ts";

export interface MutateOptions extends CallOptions {
  /** The same key with the same request is done once, for 24 hours. Null: without one, and then nothing unclear is repeated. */
  readonly idempotencyKey?: string | null | undefined;
  /** Only while this is the active epoch; else STALE_EPOCH. */
  readonly leaderEpoch?: number | undefined;
}

export type JobsQuery = ReadOptions &
  Omit<JobQuery, "cursor" | "limit"> & {
    /** Of one page; all pages are asked for, one after the other. */
    readonly pageSize?: number | undefined;
  };

export interface ClientJobs {
  /** Resolves to the job's id. */
  submit(job: JobRequest, options?: MutateOptions): Promise<string>;
  /** All or none. Resolves to the ids, in order. At most 1000. */
  submitMany(jobs: readonly JobRequest[], options?: MutateOptions): Promise<readonly string[]>;
  job(id: string, options?: ReadOptions): Promise<JobView>;
  /** Newest first. */
  jobs(query?: JobsQuery): AsyncGenerator<JobBrief, void, void>;
  /** Of a job that is finished: JOB_FINISHED. */
  cancel(id: string, options?: MutateOptions): Promise<JobView>;
  /** A finished job, once more, with fresh budgets. */
  retry(id: string, options?: MutateOptions): Promise<JobView>;
  /** Until it is completed, failed or cancelled; for as long as the signal lets it. */
  wait(id: string, options?: { readonly signal?: AbortSignal | undefined }): Promise<JobView>;
  logs(id: string, options?: LogsOptions): AsyncGenerator<LogPiece, void, void>;
  /** Each once, in order, without gaps, over whichever nodes there are. */
  events(options?: EventsOptions): AsyncGenerator<EventView, never, void>;
  agents(options?: ReadOptions): Promise<readonly AgentView[]>;
  /** What it holds is lost to it. */
  removeAgent(name: string, options?: MutateOptions): Promise<void>;
  /** No new jobs for it, or again; what it has goes on. Its next start begins without. */
  drainAgent(name: string, isDraining: boolean, options?: MutateOptions): Promise<void>;
  queues(options?: ReadOptions): Promise<readonly QueueView[]>;
  pauseQueue(queue: string, options?: MutateOptions): Promise<void>;
  resumeQueue(queue: string, options?: MutateOptions): Promise<void>;
  schedules(options?: ReadOptions): Promise<readonly ScheduleView[]>;
  putSchedule(name: string, schedule: ScheduleRequest, options?: MutateOptions): Promise<void>;
  deleteSchedule(name: string, options?: MutateOptions): Promise<void>;
  stats(options?: ReadOptions): Promise<StatsView>;
  /** No new leases from now on, or again; of this leader's term. */
  drain(isDraining: boolean, options?: CallOptions): Promise<void>;
  readonly keys: ClientKeys;
  readonly certificates: ClientCertificates;
}

type Method = "POST" | "PUT" | "DELETE";

export function jobsOf(caller: Caller): ClientJobs {
  const mutate = async <T>(method: Method, path: string, body: object, options: MutateOptions = {}): Promise<T> => {
    const { leaderEpoch, idempotencyKey = randomKey() } = options;
    const isKeyed = idempotencyKey !== null;
    const fence = leaderEpoch === undefined ? {} : { leader_epoch: leaderEpoch };
    const request = {
      method,
      path: method === "DELETE" && leaderEpoch !== undefined ? `${path}?leader_epoch=${leaderEpoch}` : path,
      ...(method === "DELETE" ? {} : { body: { ...body, ...fence } }),
      ...(isKeyed ? { headers: { "idempotency-key": idempotencyKey } } : {}),
      isIdempotent: isKeyed,
      isKeyed,
    };
    return await caller.bodyOf<T>(await caller.mutate(request, options));
  };
  const job = async (id: string, options: ReadOptions = {}): Promise<JobView> => await jobOf(caller, id, options);
  return {
    submit: async (one, options) => (await mutate<{ id: string }>("POST", "/v1/jobs", toSnake(one), options)).id,
    submitMany: async (many, options) => {
      if (many.length === 0) return [];
      const body = { jobs: many.map((one) => toSnake(one)) };
      return (await mutate<{ ids: readonly string[] }>("POST", "/v1/jobs", body, options)).ids;
    },
    job,
    jobs: (query = {}) => listJobs(caller, query),
    cancel: (id, options) => mutate("POST", `${pathOf(id)}/cancel`, {}, options),
    retry: (id, options) => mutate("POST", `${pathOf(id)}/retry`, {}, options),
    wait: (id, { signal } = {}) => waitFor(caller, id, signal),
    logs: (id, options = {}) => logPieces(caller, `${pathOf(id)}/logs`, options),
    events: (options = {}) => followEvents(caller, options),
    agents: (options = {}) => listNamed<AgentView>(caller, "agents", options),
    removeAgent: async (name, options) => {
      await mutate("DELETE", `/v1/agents/${encodeURIComponent(name)}`, {}, options);
    },
    drainAgent: async (name, drain, options) => {
      await mutate("POST", `/v1/agents/${encodeURIComponent(name)}/drain`, { drain }, options);
    },
    queues: (options = {}) => listNamed<QueueView>(caller, "queues", options),
    pauseQueue: async (queue, options) => {
      await mutate("POST", `/v1/queues/${encodeURIComponent(queue)}/pause`, {}, options);
    },
    resumeQueue: async (queue, options) => {
      await mutate("POST", `/v1/queues/${encodeURIComponent(queue)}/resume`, {}, options);
    },
    schedules: (options = {}) => listNamed<ScheduleView>(caller, "schedules", options),
    putSchedule: async (name, schedule, options) => {
      await mutate("PUT", `/v1/schedules/${encodeURIComponent(name)}`, toSnake(schedule), options);
    },
    deleteSchedule: async (name, options) => {
      await mutate("DELETE", `/v1/schedules/${encodeURIComponent(name)}`, {}, options);
    },
    stats: async (options = {}) => await caller.readJson<StatsView>(`/v1/stats${readQuery(options)}`, options),
    drain: async (isDraining, options = {}) => {
      const request = {
        method: "POST",
        path: "/v1/admin/drain",
        body: { drain: isDraining },
        isIdempotent: true,
      } as const;
      await caller.bodyOf(await caller.mutate(request, options));
    },
    keys: keysOf(caller),
    certificates: certificatesOf(caller),
  };
}

/** A node that is behind may not know a job yet: that there is none is said only where it is certain. */
async function jobOf(caller: Caller, id: string, options: ReadOptions): Promise<JobView> {
  const read = async (how: ReadOptions) => await caller.readJson<JobView>(`${pathOf(id)}${readQuery(how)}`, how);
  try {
    return await read(options);
  } catch (error) {
    if (!TenureError.is(error) || error.code !== "NOT_FOUND" || options.consistency !== undefined) throw error;
    return await read({ ...options, consistency: "linearizable" });
  }
}

/** Looks when its events say so: once the stream is open nothing is missed, and each look is linearizable. */
async function waitFor(caller: Caller, id: string, signal: AbortSignal | undefined): Promise<JobView> {
  const over = new AbortController();
  const until = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
  const items = finalItems(caller, id, until);
  try {
    return await untilFinal(items, () => look(caller, id, signal));
  } finally {
    // Somebody may be waiting for the next of them.
    over.abort();
    await items.return(undefined as never).catch(() => undefined);
  }
}

/**
 * Whoever looks at the present needs no event of the past: a stream that can't go on where it was (its point is cut off, lost, or of
 * a history that was rewritten), or can't be had for now, is opened anew from the present; the looks go on meanwhile. It fails only
 * with what refuses a new one too.
 */
async function* finalItems(caller: Caller, id: string, signal: AbortSignal): AsyncGenerator<unknown, never, void> {
  const types = ["build:completed", "build:failed", "build:cancelled"];
  for (let pauses = new Pauses(WAIT_OUTAGE_MS); ;) {
    let isOpened = false;
    try {
      for await (const item of eventItems(caller, { entityId: id, entityType: "build", types, signal })) {
        isOpened = true;
        yield item;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!TenureError.is(error) || (!error.retryable && !isOpened)) throw error;
    }
    // One that opens and fails at once, again and again, costs the servers no more than a poll.
    if (!(await pauses.take(signal))) pauses = new Pauses(WAIT_OUTAGE_MS);
  }
}

/** Until somebody answers. A node that builds its views again says so for as long as that takes: that is no outage. */
async function look(caller: Caller, id: string, signal: AbortSignal | undefined): Promise<JobView> {
  for (let pauses = new Pauses(WAIT_OUTAGE_MS); ;) {
    try {
      return await jobOf(caller, id, { consistency: "linearizable", signal });
    } catch (error) {
      signal?.throwIfAborted();
      if (!TenureError.is(error) || !error.retryable) throw error;
      if (await pauses.take(signal)) continue;
      signal?.throwIfAborted();
      if (error.code !== "TOO_STALE") throw error;
      pauses = new Pauses(WAIT_OUTAGE_MS);
    }
  }
}

async function* listJobs(caller: Caller, query: JobsQuery): AsyncGenerator<JobBrief, void, void> {
  const { states, kind, queue, agent, search, pageSize } = query;
  const asked = {
    ...(states === undefined ? {} : { state: states.join(",") }),
    ...(kind === undefined ? {} : { kind }),
    ...(queue === undefined ? {} : { queue }),
    ...(agent === undefined ? {} : { agent }),
    ...(search === undefined ? {} : { search }),
    ...(pageSize === undefined ? {} : { limit: String(pageSize) }),
  };
  let cursor: string | null = null;
  for (let page = 0; page < JOB_PAGES_MAX; page++) {
    const path = `/v1/jobs${readQuery(query, cursor === null ? asked : { ...asked, cursor })}`;
    const found: JobsPage = await caller.readJson<JobsPage>(path, query);
    yield* found.jobs;
    if (found.next === null) return;
    if (found.next === cursor) break;
    cursor = found.next;
  }
  throw endless("jobs");
}

interface JobsPage {
  readonly jobs: readonly JobBrief[];
  readonly next: string | null;
}

async function listNamed<T>(
  caller: Caller,
  what: "agents" | "queues" | "schedules",
  options: ReadOptions,
): Promise<readonly T[]> {
  const all: T[] = [];
  let after: string | null = null;
  for (let page = 0; page < JOB_PAGES_MAX; page++) {
    const path = `/v1/${what}${readQuery(options, after === null ? {} : { after })}`;
    const found: Record<string, unknown> = await caller.readJson<Record<string, unknown>>(path, options);
    const next = (found["next"] ?? null) as string | null;
    all.push(...((found[what] ?? []) as T[]));
    if (next === null) return all;
    if (after !== null && !(next > after)) break;
    after = next;
  }
  throw endless(what);
}

function endless(what: string): TenureError {
  return new TenureError("BACKEND_UNSUPPORTED", `the server lists ${what} without an end; is it a Tenure server?`);
}

/** A page that came over plain http has no `crypto.randomUUID`. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(18));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function pathOf(id: string): string {
  return `/v1/jobs/${encodeURIComponent(id)}`;
}
