// Everything that the book knows, as tables of records, and the indexes over their heads. The indexes follow each change of a
// record, undone ones included, and hold nothing that is not in the records.
//
// Invariants:
// - A job is in `ready` exactly while it is pending, with its agent and its concurrency key exactly while it has a lease, and
//   in `finished` exactly while it is final.
// - `byNumber` has the slot of every job of the head, in the order of their submission.

import type { Json } from "../../kit/json.ts";
import {
  JOB_CLASSES_MAX,
  JOBS_FINISHED_BYTES_MAX,
  JOBS_FINISHED_MAX,
  JOBS_GROWN_BYTES_MAX,
  JOBS_LIVE_BYTES_MAX,
  JOBS_LIVE_MAX,
  AGENTS_BYTES_MAX,
  AGENTS_MAX,
  IDEMPOTENCY_BYTES_MAX,
  IDEMPOTENCY_KEYS_MAX,
  SCHEDULES_BYTES_MAX,
} from "../../kit/limits.ts";
import { Shards } from "../../kit/keyed/shards.ts";
import type { DeliveredUpTo } from "./deliveries.ts";
import { JobClasses } from "./job-class.ts";
import { KeyShares } from "./key-shares.ts";
import { POLICIES_KEPT_MAX } from "../limits.ts";
import type { JobSpec, JobState } from "../model.ts";
import { NameShares } from "./name-shares.ts";
import { Ranked } from "./ranked.ts";
import { Ready } from "./ready.ts";
import {
  type AgentRecord,
  isFinal,
  type JobRecord,
  type KeyRecord,
  type Policy,
  type QueueRecord,
  type ScheduleRecord,
  type Totals,
} from "./records.ts";
import { Shelf } from "../shelf/shelf.ts";
import type { SkipRecord } from "./skips.ts";
import { Notes, Table } from "./table.ts";
import { Weights } from "./weights.ts";

export interface BookOptions {
  /** Canonical JSON (RFC 8785): equal values are equal texts. Throws EVENT_INVALID for what an event can't hold. */
  readonly canonical: (value: Json) => string;
  readonly limits?: Partial<BookLimits> | undefined;
}

export type PolicySpec = Pick<JobSpec, "attemptsMax" | "lossesMax" | "backoff" | "timeoutMs" | "retentionMs">;

export interface QueueCount {
  pending: number;
  running: number;
}

/** What holds unless a book is made with others. An object, because tests of whole processes make it smaller (test/servers). */
export const BOOK_LIMITS = {
  liveMax: JOBS_LIVE_MAX,
  liveBytesMax: JOBS_LIVE_BYTES_MAX,
  grownBytesMax: JOBS_GROWN_BYTES_MAX,
  classesMax: JOB_CLASSES_MAX,
  finishedMax: JOBS_FINISHED_MAX,
  finishedBytesMax: JOBS_FINISHED_BYTES_MAX,
  agentsMax: AGENTS_MAX,
  agentBytesMax: AGENTS_BYTES_MAX,
  scheduleBytesMax: SCHEDULES_BYTES_MAX,
  keysMax: IDEMPOTENCY_KEYS_MAX,
  keyBytesMax: IDEMPOTENCY_BYTES_MAX,
};

export type BookLimits = { readonly [Name in keyof typeof BOOK_LIMITS]: number };

const NOBODY: ReadonlySet<number> = new Set();
const NO_TOTALS: Totals = { submitted: 0, finished: 0 };
const TOTALS_KEY = "all";
const DELIVERED_KEY = "upTo";

export class BookState {
  readonly canonical: (value: Json) => string;
  readonly limits: BookLimits;
  readonly weights: Weights;
  readonly notes = new Notes();
  readonly shelf = new Shelf();
  readonly jobs = new Table<JobRecord>(this.notes, (before, after) => this.#jobChanged(before, after), this.shelf);
  readonly agents = new Table<AgentRecord>(this.notes, (before, after) => this.#agentChanged(before, after));
  readonly paused = new Table<QueueRecord>(this.notes, () => undefined);
  readonly schedules = new Table<ScheduleRecord>(this.notes, (before, after) => {
    this.scheduleBytes +=
      weightOf(after, (one) => this.weights.schedule(one)) - weightOf(before, (one) => this.weights.schedule(one));
  });
  readonly keys = new Table<KeyRecord>(
    this.notes,
    (before, after) => this.#keyChanged(before, after),
    new Shards<KeyRecord>(),
  );
  /** By the sequence of the event that told of it. */
  readonly skips = new Table<SkipRecord>(this.notes, (before, after) => {
    this.skippedMs += weightOf(after, ({ byMs }) => byMs) - weightOf(before, ({ byMs }) => byMs);
  });
  readonly #totals = new Table<Totals>(this.notes, () => undefined);
  readonly #delivered = new Table<DeliveredUpTo>(this.notes, () => undefined);

  readonly classes = new JobClasses(this.shelf.slots);
  readonly ready = new Ready(this.shelf);
  readonly byNumber = new Ranked<number>(this.shelf.slots.byNumber);
  /** In the order in which they were finished. */
  readonly finished = new Ranked<JobRecord>((one, other) => one.finishedBy - other.finishedBy);
  /** Oldest first. */
  readonly keysByAge = new Ranked<KeyRecord>((one, other) => one.sequence - other.sequence);
  readonly keyShares = new KeyShares();
  readonly nameShares = new NameShares();
  readonly byState: Record<JobState, number> = noStates();
  readonly byQueue = new Map<string, QueueCount>();
  // Of a snapshot, at most.
  liveBytes = 0;
  finishedBytes = 0;
  keyBytes = 0;
  agentBytes = 0;
  scheduleBytes = 0;
  /** Of all skips together. */
  skippedMs = 0;
  /** Keys that went before their time, for want of room; counted in this life, and of no meaning for the state. */
  keysDroppedEarly = 0;
  /** The last event that finished a job, or one after it: never taken back, so it may name one that never came to be. */
  lastFinishedBy = 0;
  /** The last event that had a job forgotten; as the one above. */
  lastForgottenBy = 0;
  /** Events that did not fit: they changed nothing. */
  unfit = 0;
  readonly #ofAgent = new Map<string, Set<number>>();
  readonly #ofSchedule = new Map<string, number>();
  readonly #policies = new Map<string, Policy>();

  constructor({ canonical, limits }: BookOptions) {
    this.canonical = canonical;
    this.weights = new Weights(canonical);
    this.limits = { ...BOOK_LIMITS, ...limits };
  }

  /** Jobs have grown so much by their attempts that nothing may be added that can be left out. */
  get isOvergrown(): boolean {
    return this.liveBytes > this.limits.grownBytesMax;
  }

  get live(): number {
    return this.jobs.size - this.finished.size;
  }

  get totals(): Totals {
    return this.#totals.get(TOTALS_KEY) ?? NO_TOTALS;
  }

  get appliedTotals(): Totals {
    return this.#totals.applied(TOTALS_KEY) ?? NO_TOTALS;
  }

  /** The last job of a transaction over islands that is here; null: none ever was. */
  get delivered(): DeliveredUpTo | null {
    return this.#delivered.get(DELIVERED_KEY) ?? null;
  }

  get appliedDelivered(): DeliveredUpTo | null {
    return this.#delivered.applied(DELIVERED_KEY) ?? null;
  }

  deliver(upTo: DeliveredUpTo): void {
    this.#delivered.set(DELIVERED_KEY, upTo);
  }

  count(submitted: number, finished: number): void {
    const before = this.totals;
    this.#totals.set(TOTALS_KEY, { submitted: before.submitted + submitted, finished: before.finished + finished });
  }

  /** Slots of the jobs that an agent has a lease of. */
  jobsOfAgent(name: string): ReadonlySet<number> {
    return this.#ofAgent.get(name) ?? NOBODY;
  }

  /** Names of agents with leases. */
  busyAgents(): Iterable<string> {
    return this.#ofAgent.keys();
  }

  /** Jobs of a schedule that are not finished. */
  liveOfSchedule(name: string): number {
    return this.#ofSchedule.get(name) ?? 0;
  }

  policyOf({ attemptsMax, lossesMax, backoff, timeoutMs, retentionMs }: PolicySpec): Policy {
    const { baseMs, maxMs } = backoff;
    const id = `${attemptsMax}/${lossesMax}/${baseMs}/${maxMs}/${timeoutMs}/${retentionMs}`;
    const known = this.#policies.get(id);
    if (known !== undefined) return known;
    if (this.#policies.size >= POLICIES_KEPT_MAX) this.#policies.clear();
    const policy = { id, attemptsMax, lossesMax, baseMs, maxMs, timeoutMs, retentionMs };
    this.#policies.set(id, policy);
    return policy;
  }

  // ---- indexes -------------------------------------------------------------------------------------

  #jobChanged(before: JobRecord | undefined, after: JobRecord | undefined): void {
    const run = before?.run ?? null;
    if (before !== undefined && run !== null && run.leaseId === after?.run?.leaseId) {
      // The same attempt goes on: no index looks at more than its state.
      this.byState[before.state]--;
      this.byState[after.state]++;
      this.liveBytes += this.weights.job(after) - this.weights.job(before);
      return;
    }
    const known = after ?? before;
    if (known === undefined) return;
    const slot = this.shelf.slotOf(known.ticket.id);
    if (before !== undefined) this.#leave(slot, before);
    if (before === undefined && after !== undefined) {
      this.classes.join(after.ticket.class);
      this.byNumber.add(slot);
    }
    if (after !== undefined) this.#enter(slot, after);
    if (before !== undefined && after === undefined) {
      this.classes.leave(before.ticket.class);
      this.byNumber.remove(slot);
    }
  }

  #enter(slot: number, record: JobRecord): void {
    const { state, ticket, run } = record;
    this.byState[state]++;
    if (isFinal(state)) {
      this.finished.add(record);
      this.finishedBytes += this.weights.job(record);
      return;
    }
    this.liveBytes += this.weights.job(record);
    this.classes.count(ticket.class, 1);
    if (ticket.schedule !== null) this.#ofSchedule.set(ticket.schedule, this.liveOfSchedule(ticket.schedule) + 1);
    const count = this.#queueOf(ticket.class.queue);
    if (run === null) {
      count.pending++;
      this.ready.add(slot, record);
      return;
    }
    count.running++;
    this.ready.occupy(ticket, 1);
    const slots = this.#ofAgent.get(run.agent);
    if (slots === undefined) this.#ofAgent.set(run.agent, new Set([slot]));
    else slots.add(slot);
  }

  #leave(slot: number, record: JobRecord): void {
    const { state, ticket, run } = record;
    this.byState[state]--;
    if (isFinal(state)) {
      this.finished.remove(record);
      this.finishedBytes -= this.weights.job(record);
      return;
    }
    this.liveBytes -= this.weights.job(record);
    this.classes.count(ticket.class, -1);
    if (ticket.schedule !== null) this.#leaveSchedule(ticket.schedule);
    const { queue } = ticket.class;
    const count = this.#queueOf(queue);
    if (run === null) {
      count.pending--;
      this.ready.remove(slot, record);
    } else {
      count.running--;
      this.ready.occupy(ticket, -1);
      const slots = this.#ofAgent.get(run.agent);
      slots?.delete(slot);
      if (slots?.size === 0) this.#ofAgent.delete(run.agent);
    }
    if (count.pending === 0 && count.running === 0) this.byQueue.delete(queue);
  }

  #leaveSchedule(name: string): void {
    const left = this.liveOfSchedule(name) - 1;
    if (left === 0) this.#ofSchedule.delete(name);
    else this.#ofSchedule.set(name, left);
  }

  #queueOf(queue: string): QueueCount {
    let count = this.byQueue.get(queue);
    if (count === undefined) this.byQueue.set(queue, (count = { pending: 0, running: 0 }));
    return count;
  }

  #agentChanged(before: AgentRecord | undefined, after: AgentRecord | undefined): void {
    if (before !== undefined) {
      const bytes = this.weights.agent(before);
      this.nameShares.remove(before, bytes);
      this.agentBytes -= bytes;
    }
    if (after !== undefined) {
      const bytes = this.weights.agent(after);
      this.nameShares.add(after, bytes);
      this.agentBytes += bytes;
    }
  }

  #keyChanged(before: KeyRecord | undefined, after: KeyRecord | undefined): void {
    if (before !== undefined) {
      this.keysByAge.remove(before);
      this.keyShares.remove(before);
      this.keyBytes -= this.weights.key(before);
    }
    if (after !== undefined) {
      this.keysByAge.add(after);
      this.keyShares.add(after);
      this.keyBytes += this.weights.key(after);
    }
  }
}

function weightOf<V>(record: V | undefined, weigh: (record: V) => number): number {
  return record === undefined ? 0 : weigh(record);
}

export function noStates(): Record<JobState, number> {
  return { pending: 0, assigned: 0, building: 0, cancelling: 0, completed: 0, failed: 0, cancelled: 0 };
}
