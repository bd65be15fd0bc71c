// Jobs and views in memory, as their ports promise them, for what the API makes of them. No time passes here: leases do
// not run out, schedules do not fire. That jobs are right is tested where they are decided (core/jobs, controller).

import { StaleEpochError, TenureError } from "../../src/core/kit/errors.ts";
import type { Json } from "../../src/core/kit/json.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import type {
  AgentView,
  FoundJob,
  GivenLease,
  Job,
  Jobs,
  JobSpec,
  JobsStats,
  JobState,
  LeaseAnswer,
  LeaseCall,
  NamesPage,
  PendingReason,
  QueueView,
  Request,
  ResultAnswer,
  ResultCall,
  Schedule,
  ScheduleView,
} from "../../src/ports/jobs.ts";
import type { ExpiredJobs, JobLogPage, JobPage, JobQuery, JobRow, Views } from "../../src/ports/views.ts";
import type { TestCluster } from "./test-cluster.ts";
import type { TestEvents } from "./test-events.ts";

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

const FINAL: readonly JobState[] = ["completed", "failed", "cancelled"];
const AT_MS = 1_700_000_000_000;

export class TestJobs implements Jobs, Views {
  readonly #cluster: TestCluster;
  readonly #events: TestEvents;
  readonly #jobs = new Map<string, Mutable<Job>>();
  readonly #agents = new Map<string, AgentView>();
  readonly #paused = new Set<string>();
  readonly #schedules = new Map<string, Schedule>();
  readonly #answers = new Map<string, { readonly bodyHash: string; readonly answer: unknown }>();
  readonly #logs = new Map<string, string>();
  readonly #waiting = new Set<() => void>();
  readonly requests: Request[] = [];
  /** Events that the views have not seen yet. */
  viewLag = 0;
  isQuiet = false;
  #isHandingOver = false;
  #staleRejected = 0;
  #changes = 0;

  constructor(cluster: TestCluster, events: TestEvents) {
    this.#cluster = cluster;
    this.#events = events;
  }

  /** Whatever changes is counted: the state itself grows with a test, and would be written out for each of its requests. */
  fingerprint(): string {
    return JSON.stringify([this.#changes, this.isQuiet, this.#jobs.size, this.#events.head().sequence]);
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  // ---- mutations ---------------------------------------------------------------------------------------

  async submit(request: Request, specs: readonly JobSpec[]): Promise<readonly string[]> {
    return this.#once(request, () => specs.map((spec) => this.#submit(request, spec)));
  }

  async cancel(request: Request, jobId: string): Promise<Job> {
    return this.#once(request, () => {
      const job = this.#known(jobId);
      if (FINAL.includes(job.state)) throw new TenureError("JOB_FINISHED", `Job ${jobId} is ${job.state} already.`);
      job.state = job.state === "pending" ? "cancelled" : "cancelling";
      if (job.state === "cancelled") job.finishedAtMs = AT_MS;
      this.#tell(`build:${job.state}`, jobId);
      return { ...job };
    });
  }

  async retry(request: Request, jobId: string): Promise<Job> {
    return this.#once(request, () => {
      const job = this.#known(jobId);
      if (!FINAL.includes(job.state)) throw new TenureError("BAD_REQUEST", `Job ${jobId} is not finished.`);
      Object.assign(job, {
        state: "pending",
        finishedAtMs: null,
        result: null,
        error: null,
        jobEpoch: job.jobEpoch + 1,
      });
      this.#tell("build:retried", jobId);
      return { ...job };
    });
  }

  async lease(call: LeaseCall, signal: AbortSignal): Promise<LeaseAnswer> {
    const { agent, renew, progress, logs, max, waitMs } = call;
    this.#requireLeader(call.leaderEpoch);
    this.#changes++;
    if (!this.#agents.has(agent.name)) this.#tell("worker:registered", agent.name, "worker");
    const by = { epoch: 1, owner: call.caller?.owner ?? "anonymous" };
    this.#agents.set(agent.name, { ...agent, ...by, state: "online", registeredAtMs: AT_MS, running: 0 });
    for (const { jobId, jobEpoch, progress: done } of progress) {
      const job = this.#jobs.get(jobId);
      if (job?.lease?.jobEpoch === jobEpoch) job.progress = { ...done, atMs: AT_MS };
    }
    const logEnds = logs.map(({ jobId, jobEpoch, chunk }) => {
      const job = this.#jobs.get(jobId);
      if (job?.lease?.jobEpoch !== jobEpoch) return null;
      this.print(jobId, job.lease.attempt, chunk.text);
      return chunk.offset + chunk.text.length;
    });
    const renewed = renew.map((ref) => {
      const job = this.#jobs.get(ref.jobId);
      const isHeld = job?.lease?.jobEpoch === ref.jobEpoch && job.lease.session === agent.session;
      const outcome = !isHeld ? "lost" : job.state === "cancelling" ? "cancelled" : "renewed";
      return { ...ref, outcome, state: job?.state ?? null } as const;
    });
    let leases = this.#assign(call, max);
    if (leases.length === 0 && max > 0 && waitMs > 0) {
      await this.#until(() => this.#pick(call) !== undefined, signal, waitMs);
      if (!signal.aborted) leases = this.#assign(call, max);
    }
    return { leaderEpoch: this.#cluster.term, renewed, leases, logEnds, isDraining: this.isDraining() };
  }

  async results(session: string, results: readonly ResultCall[]): Promise<readonly ResultAnswer[]> {
    this.#requireLeader(undefined);
    return results.map((result) => this.#commit(session, result));
  }

  async removeAgent(request: Request, name: string): Promise<void> {
    this.#once(request, () => {
      if (!this.#agents.delete(name)) throw new TenureError("NOT_FOUND", `There is no agent ${name}.`);
      this.#tell("worker:removed", name, "worker");
    });
  }

  async drainAgent(request: Request, name: string, draining: boolean): Promise<void> {
    this.#once(request, () => {
      const agent = this.#agents.get(name);
      if (agent === undefined) throw new TenureError("NOT_FOUND", `There is no agent ${name}.`);
      this.#agents.set(name, { ...agent, state: draining ? "draining" : "online" });
      this.#tell("worker:registered", name, "worker");
    });
  }

  async pauseQueue(request: Request, queue: string, paused: boolean): Promise<void> {
    this.#once(request, () => {
      if (paused) this.#paused.add(queue);
      else this.#paused.delete(queue);
      this.#tell(paused ? "queue:paused" : "queue:resumed", queue, "queue");
    });
  }

  async putSchedule(request: Request, schedule: Schedule): Promise<void> {
    this.#once(request, () => {
      if (!/^\S+( \S+){4}$/.test(schedule.cron)) {
        throw new TenureError("SCHEDULE_INVALID", "cron must have five fields.");
      }
      this.#schedules.set(schedule.name, schedule);
      this.#tell("schedule:put", schedule.name, "schedule");
    });
  }

  async deleteSchedule(request: Request, name: string): Promise<void> {
    this.#once(request, () => {
      if (!this.#schedules.delete(name)) throw new TenureError("NOT_FOUND", `There is no schedule ${name}.`);
      this.#tell("schedule:deleted", name, "schedule");
    });
  }

  setDraining(draining: boolean, by: "operator" | "hand-over" = "operator"): void {
    // Whoever hands over gives leases again where that fails, unless an operator wants none; the next leader begins without.
    if (by === "hand-over") this.#isHandingOver = false;
    this.#requireLeader(undefined);
    if (by === "operator") this.isQuiet = draining;
    else this.#isHandingOver = draining;
  }

  readonly isDraining = (): boolean => this.isQuiet || this.#isHandingOver;

  /** As the agent's chunks do it. */
  print(jobId: string, attempt: number, text: string): void {
    const key = `${jobId} ${attempt}`;
    this.#logs.set(key, (this.#logs.get(key) ?? "") + text);
    this.#tell("build:log", jobId);
  }

  // ---- reads -------------------------------------------------------------------------------------------

  job(jobId: string): Job | null {
    const job = this.#jobs.get(jobId);
    return job === undefined || FINAL.includes(job.state) ? null : job;
  }

  /** As the finder does it: what has left memory is known once the views are there. */
  async find(jobId: string, waitMs: number): Promise<FoundJob> {
    const untilMs = systemClock.monotonicMs() + waitMs;
    const wanted = this.#events.head().sequence;
    for (;;) {
      const live = this.job(jobId);
      if (live !== null) return { kind: "found", mayBeOlder: false, job: live };
      const { job, position } = await this.get(jobId);
      if (position >= wanted) return { kind: "found", mayBeOlder: false, job };
      if (systemClock.monotonicMs() >= untilMs) return { kind: "behind", position, wanted };
      await new Promise<void>((resume) => void systemClock.setTimer(systemClock.monotonicMs() + 5, resume));
    }
  }

  /** Of one that is finished: all that has happened. */
  loggedUpTo(jobId: string): number {
    return this.job(jobId) === null ? this.#events.head().sequence : 0;
  }

  whyPending(jobId: string): PendingReason | null {
    const job = this.#jobs.get(jobId);
    if (job?.state !== "pending") return null;
    const { queue, kind } = job.spec;
    if (this.#paused.has(queue)) return { reason: "paused", queue };
    if (this.#agents.size === 0) return { reason: "no-agent", kind, missing: `no agent runs ${kind}` };
    return { reason: "agents-busy", agents: this.#agents.size };
  }

  agents(page?: NamesPage): readonly AgentView[] {
    return inPage([...this.#agents.values()], ({ name }) => name, page);
  }

  queues(page?: NamesPage): readonly QueueView[] {
    const names = new Set([...this.#paused, ...[...this.#jobs.values()].map(({ spec }) => spec.queue)]);
    const count = (queue: string, state: JobState): number =>
      [...this.#jobs.values()].filter((job) => job.spec.queue === queue && job.state === state).length;
    const all = [...names].map((queue) => ({
      queue,
      paused: this.#paused.has(queue),
      pending: count(queue, "pending"),
      running: count(queue, "assigned"),
    }));
    return inPage(all, ({ queue }) => queue, page);
  }

  schedules(page?: NamesPage): readonly ScheduleView[] {
    const all = [...this.#schedules.values()].map((one) => ({ ...one, lastAtMs: null, nextAtMs: AT_MS }));
    return inPage(all, ({ name }) => name, page);
  }

  stats(): JobsStats {
    const states = ["pending", "assigned", "building", "cancelling", ...FINAL] as JobState[];
    const count = (state: JobState): number => [...this.#jobs.values()].filter((job) => job.state === state).length;
    return {
      byState: Object.fromEntries(states.map((state) => [state, count(state)])) as JobsStats["byState"],
      submitted: this.#jobs.size,
      finished: FINAL.reduce((sum, state) => sum + count(state), 0),
      agentsOnline: this.#agents.size,
      staleRejected: this.#staleRejected,
    };
  }

  // ---- views -------------------------------------------------------------------------------------------

  async position(): Promise<number> {
    return this.#events.head().sequence - this.viewLag;
  }

  reached(): Promise<number> {
    return this.position();
  }

  async put(): Promise<void> {}

  async doubt(): Promise<void> {}

  async trust(): Promise<void> {}

  async expired(): Promise<ExpiredJobs> {
    return { jobs: [], position: await this.position() };
  }

  async get(jobId: string): Promise<JobRow> {
    const job = this.viewLag > 0 ? null : (this.#jobs.get(jobId) ?? null);
    return { job, position: await this.position() };
  }

  async list({ states, kind, queue, agent, search, cursor, limit }: JobQuery): Promise<JobPage> {
    const all = [...this.#jobs.values()]
      .toReversed()
      .filter(
        (job) =>
          (states === undefined || states.includes(job.state)) &&
          (kind === undefined || job.spec.kind === kind) &&
          (queue === undefined || job.spec.queue === queue) &&
          (agent === undefined || job.lease?.agent === agent) &&
          (search === undefined || JSON.stringify(job.spec).includes(search)),
      );
    const from = cursor === undefined ? 0 : all.findIndex(({ id }) => id === cursor) + 1;
    if (cursor !== undefined && from === 0) throw new TenureError("BAD_REQUEST", "cursor was not given out here.");
    const jobs = all.slice(from, from + limit);
    return {
      jobs,
      next: from + limit < all.length ? (jobs.at(-1)?.id ?? null) : null,
      position: await this.position(),
    };
  }

  async log(jobId: string, attempt: number, offset: number, bytesMax: number): Promise<JobLogPage> {
    // As the views' file: what it does not have yet is not there.
    if (this.viewLag > 0) throw new TenureError("NOT_FOUND", `there is no job ${jobId} here`);
    const all = this.#logs.get(`${jobId} ${attempt}`) ?? "";
    const text = all.slice(offset, offset + bytesMax);
    const job = this.#jobs.get(jobId);
    const isOver = job === undefined || FINAL.includes(job.state);
    return { text, nextOffset: offset + text.length, isComplete: isOver && offset + text.length >= all.length };
  }

  async close(): Promise<void> {}

  // ---- inside ------------------------------------------------------------------------------------------

  #submit({ caller }: Request, spec: JobSpec): string {
    const id = `job-${this.#jobs.size + 1}`;
    this.#jobs.set(id, {
      id,
      spec,
      state: "pending",
      jobEpoch: 0,
      failures: 0,
      losses: 0,
      submittedAtMs: AT_MS,
      submittedSequence: this.#events.head().sequence + 1,
      submittedBy: caller,
      readyAtMs: AT_MS,
      lease: null,
      progress: null,
      attempts: [],
      finishedAtMs: null,
      result: null,
      error: null,
    });
    this.#tell("build:submitted", id, "build", { kind: spec.kind, payload: spec.payload });
    for (const look of this.#waiting) look();
    return id;
  }

  #pick({ agent }: LeaseCall): Mutable<Job> | undefined {
    if (this.isDraining()) return undefined;
    return [...this.#jobs.values()].find(
      ({ state, spec }) => state === "pending" && agent.kinds.includes(spec.kind) && !this.#paused.has(spec.queue),
    );
  }

  #assign(call: LeaseCall, max: number): GivenLease[] {
    const given: GivenLease[] = [];
    for (let job = this.#pick(call); job !== undefined && given.length < max; job = this.#pick(call)) {
      const { name: agent, session } = call.agent;
      const [attempt, jobEpoch, leaderEpoch] = [job.attempts.length + 1, job.jobEpoch + 1, this.#cluster.term];
      const lease = {
        leaseId: `l-${job.id}-${attempt}`,
        jobEpoch,
        leaderEpoch,
        attempt,
        agent,
        session,
        ttlMs: call.ttlMs,
      };
      const running = { ...lease, assignedAtMs: AT_MS, startedAtMs: AT_MS, endedAtMs: null, end: null };
      Object.assign(job, { state: "assigned", jobEpoch, lease, attempts: [...job.attempts, running] });
      this.#tell("build:assigned", job.id);
      const { leaseId, ttlMs } = lease;
      given.push({ jobId: job.id, jobEpoch, leaseId, leaderEpoch, attempt, ttlMs, spec: job.spec });
    }
    return given;
  }

  #commit(session: string, { jobId, jobEpoch, leaseId, leaderEpoch, outcome }: ResultCall): ResultAnswer {
    const job = this.#jobs.get(jobId);
    const active = this.#cluster.term;
    if (job === undefined) return { ok: false, code: "NOT_FOUND", message: `no job ${jobId}`, leaderEpoch: active };
    const ran = job.attempts.find((one) => one.leaseId === leaseId && one.jobEpoch === jobEpoch);
    if (leaderEpoch !== active || ran?.session !== session || (job.lease !== null && job.jobEpoch !== jobEpoch)) {
      this.#staleRejected++;
      return { ok: false, code: "STALE_EPOCH", message: "the lease is not in force", leaderEpoch: active };
    }
    if (job.lease === null) return { ok: true, state: job.state, isRepeated: true };
    const state = outcome.kind === "handed-back" ? "pending" : outcome.kind;
    const attempts = job.attempts.map((one) => (one === ran ? { ...one, endedAtMs: AT_MS, end: outcome.kind } : one));
    Object.assign(job, { state, attempts, lease: null, finishedAtMs: FINAL.includes(state) ? AT_MS : null });
    if (outcome.kind === "completed") job.result = outcome.result;
    if (outcome.kind === "failed") job.error = outcome.error;
    this.#tell(state === "pending" ? "build:retried" : `build:${state}`, jobId);
    return { ok: true, state, isRepeated: false };
  }

  #once<T>(request: Request, work: () => T): T {
    this.requests.push(request);
    const { caller, idempotencyKey, bodyHash } = request;
    const key = JSON.stringify([caller, idempotencyKey]);
    const known = idempotencyKey === null ? undefined : this.#answers.get(key);
    this.#requireLeader(known === undefined ? request.leaderEpoch : undefined);
    if (known !== undefined && known.bodyHash !== bodyHash) {
      throw new TenureError("IDEMPOTENCY_MISMATCH", "This key was used for another request. Take a new one.");
    }
    if (known !== undefined) return known.answer as T;
    const answer = work();
    if (idempotencyKey !== null) this.#answers.set(key, { bodyHash, answer });
    return answer;
  }

  #known(jobId: string): Mutable<Job> {
    const job = this.#jobs.get(jobId);
    if (job === undefined) throw new TenureError("NOT_FOUND", `There is no job ${jobId}.`);
    return job;
  }

  #tell(eventType: string, entityId: string, entityType = "build", payload: Record<string, Json> = {}): void {
    this.#changes++;
    this.#events.append({ eventType, entityId, entityType, payload } as Parameters<TestEvents["append"]>[0]);
  }

  #until(isSo: () => boolean, signal: AbortSignal, waitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (isSo() || signal.aborted) done();
      };
      const done = (): void => {
        this.#waiting.delete(look);
        timer.cancel();
        signal.removeEventListener("abort", look);
        resolve();
      };
      const timer = systemClock.setTimer(systemClock.monotonicMs() + waitMs, done);
      this.#waiting.add(look);
      signal.addEventListener("abort", look);
      look();
    });
  }

  #requireLeader(epoch: number | undefined): void {
    if (this.#cluster.role !== "LEADER") throw new TenureError("NOT_LEADER", "this node does not lead");
    if (epoch !== undefined && epoch > this.#cluster.term) throw new TenureError("NOT_LEADER", `${epoch} has begun`);
    if (epoch !== undefined && epoch < this.#cluster.term) throw new StaleEpochError("jobs", epoch);
  }
}

function inPage<T>(all: readonly T[], nameOf: (one: T) => string, page: NamesPage = { limit: Infinity }): T[] {
  const { after = "", limit } = page;
  const later = all.filter((one) => nameOf(one) > after);
  return later.sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1)).slice(0, limit);
}
