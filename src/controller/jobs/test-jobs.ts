// What the tests of the jobs share: a service on hand-made leadership and a log that answers when a test says so; time passes
// when a test moves its clock.

import { TenureError } from "../../core/kit/errors.ts";
import { seededRandom } from "../../core/kit/random.ts";
import { type BookLimits, nextAfter, parseCron } from "../../core/jobs/index.ts";
import { type Job, type JobSpec, PLAIN_SPEC } from "../../core/jobs/model.ts";
import { type ManualClock, settled } from "../../loops/test-clock.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Digest } from "../../ports/digest.ts";
import type { GivenLease, LeaseAnswer, LeaseCall, Request, ResultAnswer, ResultCall } from "../../ports/jobs.ts";
import type { Leadership } from "../../ports/leadership.ts";
import type { Log } from "../../ports/log.ts";
import type {
  ExpiredJob,
  ExpiredJobs,
  ExpiredPlace,
  JobLog,
  JobRow,
  PutHow,
  Views,
  ViewsHoles,
} from "../../ports/views.ts";
import { JournalService } from "../journal/service.ts";
import { SiteJournal } from "../journal/site-journal.ts";
import { JobsService } from "./jobs.ts";
import { HeldLog, never } from "../scopes/test-scopes.ts";

class ManualLeadership implements Leadership {
  isConfirming = true;
  #epoch: number | null = null;
  #isTurning = false;
  readonly #listeners = new Set<() => void>();

  epoch(): number | null {
    return this.#epoch;
  }

  isTurningOver(): boolean {
    return this.#isTurning;
  }

  confirm(): Promise<boolean> {
    return Promise.resolve(this.isConfirming && this.#epoch !== null);
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  set(epoch: number | null, isTurning = false): void {
    this.#epoch = epoch;
    this.#isTurning = isTurning;
    for (const listener of this.#listeners) listener();
  }
}

export const SPEC: JobSpec = {
  ...PLAIN_SPEC,
  kind: "work",
  attemptsMax: 3,
  lossesMax: 3,
  backoff: { baseMs: 1_000, maxMs: 10_000 },
  retentionMs: 60_000,
};

export const REQUEST: Request = { caller: "tester", idempotencyKey: null, bodyHash: "" };

export function newFold(digest: Digest, limits: Partial<BookLimits> = {}): SiteJournal {
  return new SiteJournal(digest, { limits });
}

/** Views without a file: as far behind as a test wants them to be. */
export class ListedViews implements Pick<
  Views,
  "get" | "expired" | "position" | "put" | "doubt" | "trust" | "line" | "holes"
> {
  readonly jobs = new Map<string, Job>();
  readonly logs = new Map<string, string>();
  isFailing = false;
  atPosition = 0;
  /** Null: of a release that did not keep it. */
  atLine: string | null = null;
  readonly calls: string[] = [];
  readonly holes: ViewsHoles = {
    read: () => Promise.resolve([]),
    write: () => Promise.resolve(),
    rebuild: (why) => {
      this.calls.push(`rebuild: ${why}`);
      this.jobs.clear();
      this.logs.clear();
      [this.atPosition, this.atLine] = [0, null];
      return Promise.resolve();
    },
  };

  position(): Promise<number> {
    return Promise.resolve(this.atPosition);
  }

  put(
    position: number,
    jobs: readonly Job[],
    logs: readonly JobLog[],
    forgotten: readonly string[],
    { line = null, isPast = false, settles = false }: PutHow = {},
  ): Promise<void> {
    if (this.isFailing) return Promise.reject(new TenureError("DISK_FULL", "no room"));
    if (settles) this.calls.push("settle");
    if (position < this.atPosition) return Promise.resolve();
    for (const job of jobs) {
      const before = this.jobs.get(job.id);
      if (!isPast || before === undefined || before.jobEpoch <= job.jobEpoch) this.jobs.set(job.id, job);
    }
    // As the file does it: of a job that is not there nothing is kept.
    for (const { jobId, offset, text } of logs) if (this.jobs.has(jobId)) this.logs.set(`${jobId}@${offset}`, text);
    for (const jobId of forgotten) this.jobs.delete(jobId);
    this.atPosition = position;
    this.atLine = line ?? this.atLine;
    return Promise.resolve();
  }

  line(): Promise<string | null> {
    return Promise.resolve(this.atLine);
  }

  doubt(): Promise<void> {
    this.calls.push("doubt");
    return Promise.resolve();
  }

  trust(): Promise<void> {
    this.calls.push("trust");
    return Promise.resolve();
  }

  get(jobId: string): Promise<JobRow> {
    return Promise.resolve({ job: this.jobs.get(jobId) ?? null, position: this.atPosition });
  }

  expired(nowMs: number, limit: number, after: ExpiredPlace | null = null): Promise<ExpiredJobs> {
    const jobs: ExpiredJob[] = [];
    for (const { id, finishedAtMs, submittedSequence: sequence, spec } of this.jobs.values()) {
      const expiresAtMs = finishedAtMs === null ? Infinity : finishedAtMs + spec.retentionMs;
      if (finishedAtMs !== null && expiresAtMs <= nowMs) jobs.push({ id, finishedAtMs, expiresAtMs, sequence });
    }
    const behind = jobs.sort(byPlace).filter((job) => after === null || byPlace(job, after) > 0);
    return Promise.resolve({ jobs: behind.slice(0, limit), position: this.atPosition });
  }
}

/** Lets timers fire, each in a turn of its own, until it is so. */
export async function turns(clock: ManualClock, isSo: () => boolean): Promise<{ readonly longestMs: number }> {
  let longestMs = 0;
  for (let turn = 0; !isSo(); turn++) {
    if (turn > 20_000) throw new Error("it never is so");
    clock.nowMs = Math.max(clock.nowMs, clock.nextMs);
    const beganMs = clock.nowMs;
    clock.fireNext();
    await settled();
    longestMs = Math.max(longestMs, clock.nowMs - beganMs);
  }
  return { longestMs };
}

export class JobsStage {
  readonly leadership = new ManualLeadership();
  readonly log: HeldLog;
  readonly journal: JournalService;
  readonly service: JobsService;
  readonly views = new ListedViews();
  /** What this node believes of the time of day; null: that its own clock is right. */
  believedMs: (() => number | null) | null = null;
  isPaused = false;
  /** Why nothing new is taken. */
  refusal: TenureError | null = null;
  /** Ids of jobs that were forgotten, as often as they were. */
  readonly forgotten: string[] = [];
  /** What this node makes of a schedule. */
  nextFire = (cron: string, _zone: string, afterMs: number): number | null =>
    nextAfter(parseCron(cron), afterMs, { offsetMinutesAt: () => 0 });

  constructor(
    clock: Clock,
    log: Log,
    fold: SiteJournal,
    digest: Digest,
    name = "site",
    views?: Pick<Views, "get" | "expired" | "position">,
  ) {
    const seen = views ?? this.views;
    fold.follow(({ event }) => {
      if (event.eventType === "build:forgotten") this.forgotten.push(event.entityId);
    });
    this.log = new HeldLog(log);
    let ids = 0;
    const newId = (): string => `${name}-${++ids}`;
    const around = { clock, random: seededRandom("jobs"), newId };
    this.journal = new JournalService({
      ...around,
      log: this.log,
      journal: fold,
      author: "site",
      leadership: this.leadership,
      believedMs: () => (this.believedMs === null ? clock.wallMs() : this.believedMs()),
    });
    this.service = new JobsService({
      ...around,
      journal: this.journal,
      fold,
      digest,
      newJobId: newId,
      nextFire: (cron, zone, afterMs) => this.nextFire(cron, zone, afterMs),
      isPaused: () => this.isPaused,
      refusesNew: () => this.refusal,
      find: (jobId) => seen.get(jobId),
      expired: (nowMs, limit, after) => seen.expired(nowMs, limit, after),
    });
  }

  async submit(spec: Partial<JobSpec> = {}): Promise<string> {
    return (await this.service.submit(REQUEST, [{ ...SPEC, ...spec }]))[0]!;
  }

  /** In requests small enough that none waits for its turn, which would take a clock that goes on. */
  async submitMany(count: number, spec: Partial<JobSpec> = {}): Promise<readonly string[]> {
    const ids: string[] = [];
    while (ids.length < count) {
      const specs = Array.from({ length: Math.min(31, count - ids.length) }, () => ({ ...SPEC, ...spec }));
      ids.push(...(await this.service.submit(REQUEST, specs)));
    }
    return ids;
  }

  poll(session: string, call: Partial<LeaseCall> = {}, signal = never()): Promise<LeaseAnswer> {
    const agent = { name: `agent-${session}`, session, kinds: ["work"], labels: {}, platform: "linux", capacity: 10 };
    const whole = { agent, renew: [], progress: [], logs: [], max: 1, waitMs: 0, ttlMs: 10_000, ...call };
    return this.service.lease(whole, signal);
  }

  async leased(session: string, call: Partial<LeaseCall> = {}): Promise<GivenLease> {
    const { leases } = await this.poll(session, call);
    if (leases.length !== 1) throw new Error(`expected one lease for ${session}, not ${leases.length}`);
    return leases[0]!;
  }

  async complete(session: string, lease: GivenLease, change: Partial<ResultCall> = {}): Promise<ResultAnswer> {
    const { jobId, jobEpoch, leaseId, leaderEpoch } = lease;
    const outcome = { kind: "completed", result: { by: session } } as const;
    return (await this.service.results(session, [{ jobId, jobEpoch, leaseId, leaderEpoch, outcome, ...change }]))[0]!;
  }
}

function byPlace(one: ExpiredPlace, other: ExpiredPlace): number {
  return one.expiresAtMs - other.expiresAtMs || one.sequence - other.sequence;
}
