// The book as bytes, version 2:
//
//   magic u8, version u8, sequence, submitted, finished
//   paused queues, agents, schedules: each a count u32 and the records, by name
//   jumps of the events' clock, in the form of keys, and idempotency keys: each after a 1, oldest first; in the form of a
//   key, how far jobs of transactions were delivered, where any was; then a 0
//   jobs: each after a 1, in the order of their submission; then a 0
//
// Classes, policies and callers are written where the first job has them, and named by their number from then on. Nothing
// depends on the order in which things came into memory, so equal states are equal bytes.
//
// It is made bit by bit, because it is made on the consensus thread, which must not stop for long (design D10): at its begin
// the order of jobs and keys is frozen, which costs a pointer for 512 of them, and the tables keep from then on what is changed
// before it is written. Agents, queues and schedules are few: their records are taken at the begin, and written later too.

import { ByteWriter } from "../../kit/bytes.ts";
import { INTEGER_MAX } from "../../kit/limits.ts";
import { SNAPSHOT_RECORD_BYTES, SNAPSHOT_SLICE_BYTES } from "../limits.ts";
import type { JobClass } from "../state/job-class.ts";
import type {
  AgentRecord,
  EndedRun,
  JobRecord,
  KeyRecord,
  Policy,
  QueueRecord,
  Run,
  ScheduleRecord,
  Totals,
} from "../state/records.ts";
import type { DeliveredUpTo } from "../state/deliveries.ts";
import type { SkipRecord } from "../state/skips.ts";
import type { BookState } from "../state/state.ts";
import type { Kept } from "../state/table.ts";
import {
  agentExtras,
  ENDS,
  FLAG,
  MAGIC,
  PRIORITY_OFFSET,
  REPORTS,
  AGENT_STATES,
  DELIVERED,
  SKIP,
  SNAPSHOT_VERSION,
  STATES,
} from "./format.ts";

/** What it is of is fixed at the first `next`, which itself writes next to nothing. */
export function* encodeBook(
  state: BookState,
  sequence: number,
  sliceBytes = SNAPSHOT_SLICE_BYTES,
): Generator<Uint8Array, void, void> {
  const jobs = state.jobs.beginSnapshot();
  const keys = state.keys.beginSnapshot();
  const held = state.shelf.hold();
  try {
    const records = jobsAsBegun(state, jobs, held);
    const keyRecords = keysOf(state);
    const queues = [...state.paused.appliedValues()];
    const agents = [...state.agents.appliedValues()];
    const schedules = [...state.schedules.appliedValues()];
    const skips = [...state.skips.appliedValues()];
    const delivered = state.appliedDelivered;
    const encoder = new BookEncoder(state.canonical, sliceBytes);
    encoder.head(sequence, state.appliedTotals);
    yield encoder.slice();
    yield* encoder.all(
      queues,
      ({ queue }) => queue,
      (one) => encoder.queue(one),
    );
    yield* encoder.all(
      agents,
      ({ info }) => info.name,
      (one) => encoder.agent(one),
    );
    yield* encoder.all(
      schedules,
      ({ schedule }) => schedule.name,
      (one) => encoder.schedule(one),
    );
    for (const skip of skips.sort((one, other) => one.sequence - other.sequence)) encoder.skip(skip);
    for (const key of keyRecords) {
      // The list may be ahead of what is applied, or behind.
      if (state.keys.asBegun(keys, key.id) !== key) continue;
      encoder.key(key);
      if (encoder.isFull) yield encoder.slice();
    }
    if (delivered !== null) encoder.delivered(delivered);
    encoder.end();
    for (const record of records) {
      encoder.job(record);
      if (encoder.isFull) yield encoder.slice();
    }
    encoder.end();
    yield encoder.slice();
  } finally {
    state.jobs.endSnapshot(jobs);
    state.keys.endSnapshot(keys);
    state.shelf.letGo();
  }
}

/** What is applied now, in the order of submission, whatever becomes of it meanwhile. */
function jobsAsBegun(state: BookState, kept: Kept<JobRecord>, held: number): Iterable<JobRecord> {
  const gone: JobRecord[] = [];
  for (const jobId of state.jobs.noted()) {
    // What the head has is not what is applied.
    state.shelf.touch(jobId);
    const applied = state.jobs.applied(jobId);
    if (applied !== undefined && state.jobs.get(jobId)?.ticket.number !== applied.ticket.number) gone.push(applied);
  }
  return walked(state, { kept, held, chunks: state.byNumber.frozen() }, gone);
}

interface Begun {
  readonly kept: Kept<JobRecord>;
  /** See Shelf.hold. */
  readonly held: number;
  readonly chunks: readonly (readonly number[])[];
}

/** Those that the head has, of which some are not applied, and those that only what is applied still has. */
function* walked(
  { shelf, jobs }: BookState,
  { kept, held, chunks }: Begun,
  gone: JobRecord[],
): Generator<JobRecord, void, void> {
  gone.sort((one, other) => one.ticket.number - other.ticket.number);
  let next = 0;
  for (const chunk of chunks) {
    for (const slot of chunk) {
      const number = shelf.slots.numberOf(slot);
      for (; next < gone.length && (gone[next] as JobRecord).ticket.number < number; next++)
        yield gone[next] as JobRecord;
      // Most have not changed, and are found without a search.
      const isSame = shelf.isSameSince(held, slot);
      const record = isSame ? shelf.at(slot) : jobs.asBegun(kept, shelf.idAt(slot));
      if (record?.ticket.number === number) yield record;
    }
  }
  yield* gone.slice(next);
}

function keysOf(state: BookState): Iterable<KeyRecord> {
  const gone: KeyRecord[] = [];
  for (const id of state.keys.noted()) {
    const applied = state.keys.applied(id);
    if (applied !== undefined && state.keys.get(id) !== applied) gone.push(applied);
  }
  return merged(state.keysByAge.frozen(), gone, ({ sequence }) => sequence);
}

function* merged<T>(chunks: readonly (readonly T[])[], more: T[], by: (item: T) => number): Generator<T, void, void> {
  more.sort((one, other) => by(one) - by(other));
  let next = 0;
  for (const chunk of chunks) {
    for (const item of chunk) {
      for (; next < more.length && by(more[next] as T) < by(item); next++) yield more[next] as T;
      yield item;
    }
  }
  yield* more.slice(next);
}

class BookEncoder {
  readonly #sliceBytes: number;
  readonly #writer: ByteWriter;
  readonly #classes = new Map<string, number>();
  readonly #policies = new Map<string, number>();
  readonly #callers = new Map<string, number>();
  readonly #canonical: BookState["canonical"];

  constructor(canonical: BookState["canonical"], sliceBytes: number) {
    this.#canonical = canonical;
    this.#sliceBytes = sliceBytes;
    this.#writer = new ByteWriter(sliceBytes + SNAPSHOT_RECORD_BYTES);
  }

  get isFull(): boolean {
    return this.#writer.lengthBytes >= this.#sliceBytes;
  }

  /** Good until more is written. */
  slice(): Uint8Array {
    return this.#writer.lend();
  }

  end(): void {
    this.#writer.u8(0);
  }

  head(sequence: number, { submitted, finished }: Totals): void {
    const writer = this.#writer;
    writer.u8(MAGIC);
    writer.u8(SNAPSHOT_VERSION);
    writer.uint53(sequence);
    writer.uint53(submitted);
    writer.uint53(finished);
  }

  /** Their number, and then each, by name. */
  *all<T>(records: T[], nameOf: (one: T) => string, write: (one: T) => void): Generator<Uint8Array, void, void> {
    this.#writer.u32(records.length);
    // A turn of its own: of ten thousand it takes milliseconds.
    records.sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
    if (records.length > 0) yield this.slice();
    for (const one of records) {
      write(one);
      if (this.isFull) yield this.slice();
    }
  }

  queue({ queue }: QueueRecord): void {
    this.#writer.text(queue);
  }

  agent(agent: AgentRecord): void {
    const writer = this.#writer;
    writer.text(this.#canonical({ ...agent.info, ...agentExtras(agent) }));
    writer.u8(AGENT_STATES.indexOf(agent.state));
    writer.uint53(agent.registeredAtMs);
    writer.uint53(agent.sinceMs);
    writer.u8(agent.past.length);
    for (const session of agent.past) writer.text(session);
  }

  schedule(record: ScheduleRecord): void {
    const writer = this.#writer;
    const { spec, ...schedule } = record.schedule;
    writer.text(this.#canonical({ ...schedule, spec: { ...spec } }));
    writer.uint53(record.sinceMs);
    writeMaybe(writer, record.lastAtMs);
  }

  key({ id, bodyHash, command, jobIds, atMs, sequence }: KeyRecord): void {
    const writer = this.#writer;
    writer.u8(1);
    writer.text(id);
    writer.text(bodyHash);
    writer.text(command);
    writer.text(jobIds);
    writer.uint53(atMs);
    writer.uint53(sequence);
  }

  skip({ atMs, byMs, sequence }: SkipRecord): void {
    this.key({ id: `0:${SKIP}/${sequence}`, bodyHash: "", command: SKIP, jobIds: String(byMs), atMs, sequence });
  }

  delivered({ place, operation }: DeliveredUpTo): void {
    const [atMs, sequence] = [INTEGER_MAX, INTEGER_MAX];
    this.key({
      id: `0:${DELIVERED}`,
      bodyHash: `${place}/${operation}`,
      command: DELIVERED,
      jobIds: "",
      atMs,
      sequence,
    });
  }

  job(record: JobRecord): void {
    const writer = this.#writer;
    const { ticket, run, progress, result, error, finishedAtMs } = record;
    writer.u8(1);
    writer.u32(flagsOf(record));
    writer.text(ticket.id);
    writer.uint53(ticket.number);
    this.#class(ticket.class);
    this.#policy(ticket.policy);
    this.#caller(ticket.submittedBy);
    writer.u32(ticket.priority + PRIORITY_OFFSET);
    writer.uint53(ticket.submittedAtMs);
    writer.text(ticket.payload);
    if (ticket.notBeforeMs !== null) writer.uint53(ticket.notBeforeMs);
    if (ticket.concurrencyKey !== null) {
      writer.text(ticket.concurrencyKey);
      writer.u32(ticket.concurrencyLimit);
    }
    if (ticket.schedule !== null) writer.text(ticket.schedule);
    writer.u8(STATES.indexOf(record.state));
    if (record.readyAtMs !== ticket.submittedAtMs) writer.uint53(record.readyAtMs);
    if (hasHistory(record)) this.#history(record);
    if (run !== null) this.#run(run);
    if (run !== null && run.poll > 0) writer.uint53(run.poll);
    if (progress !== null) {
      writer.text(progress.share === null ? "" : String(progress.share));
      writer.bool(progress.message !== null);
      if (progress.message !== null) writer.text(progress.message);
      writer.uint53(progress.atMs);
    }
    if (finishedAtMs !== null) {
      writer.uint53(finishedAtMs);
      writer.uint53(record.finishedBy);
    }
    if (result !== null) writer.text(result);
    if (error !== null) {
      writer.text(error.message);
      writer.text(this.#canonical(error.detail));
    }
  }

  #history({ jobEpoch, failures, losses, attempt, ended }: JobRecord): void {
    const writer = this.#writer;
    writer.uint53(jobEpoch);
    writer.u32(failures);
    writer.u32(losses);
    writer.uint53(attempt);
    writer.u8(ended.length);
    for (const one of ended) this.#ended(one);
  }

  #run(run: Run): void {
    const writer = this.#writer;
    writer.text(run.leaseId);
    writer.uint53(run.jobEpoch);
    writer.uint53(run.leaderEpoch);
    writer.uint53(run.attempt);
    writer.text(run.agent);
    writer.text(run.session);
    writer.uint53(run.ttlMs);
    writer.uint53(run.assignedAtMs);
    writeMaybe(writer, run.startedAtMs);
    writer.uint53(run.logBytes);
  }

  #ended(run: EndedRun): void {
    const writer = this.#writer;
    this.#run(run);
    writer.uint53(run.endedAtMs);
    writer.u8(ENDS.indexOf(run.end));
    writer.u8(REPORTS.indexOf(run.reported));
    writer.u8(STATES.indexOf(run.stateAfter));
  }

  #class(one: JobClass): void {
    const writer = this.#writer;
    if (named(writer, this.#classes, one.id)) return;
    writer.text(one.kind);
    writer.text(one.queue);
    writer.bool(one.platform !== null);
    if (one.platform !== null) writer.text(one.platform);
    const labels = Object.entries(one.labels).sort(([a], [b]) => (a < b ? -1 : 1));
    writer.u8(labels.length);
    for (const [name, value] of labels) {
      writer.text(name);
      writer.text(value);
    }
  }

  #policy(policy: Policy): void {
    const writer = this.#writer;
    if (named(writer, this.#policies, policy.id)) return;
    writer.u32(policy.attemptsMax);
    writer.u32(policy.lossesMax);
    writer.uint53(policy.baseMs);
    writer.uint53(policy.maxMs);
    writeMaybe(writer, policy.timeoutMs);
    writer.uint53(policy.retentionMs);
  }

  #caller(caller: string): void {
    if (!named(this.#writer, this.#callers, caller)) this.#writer.text(caller);
  }
}

/** Writes its number. False: it is the first time, and what it is must follow. */
function named(writer: ByteWriter, known: Map<string, number>, item: string): boolean {
  const number = known.get(item);
  writer.u32(number ?? known.size);
  if (number === undefined) known.set(item, known.size);
  return number !== undefined;
}

function flagsOf(record: JobRecord): number {
  const { ticket } = record;
  let flags = 0;
  if (ticket.notBeforeMs !== null) flags |= FLAG.notBefore;
  if (ticket.concurrencyKey !== null) flags |= FLAG.concurrency;
  if (ticket.schedule !== null) flags |= FLAG.schedule;
  if (record.readyAtMs !== ticket.submittedAtMs) flags |= FLAG.readyAt;
  if (hasHistory(record)) flags |= FLAG.history;
  if (record.run !== null) flags |= FLAG.run;
  if (record.run !== null && record.run.poll > 0) flags |= FLAG.poll;
  if (record.progress !== null) flags |= FLAG.progress;
  if (record.finishedAtMs !== null) flags |= FLAG.finished;
  if (record.result !== null) flags |= FLAG.result;
  if (record.error !== null) flags |= FLAG.error;
  return flags;
}

/** Most jobs that wait have none. */
function hasHistory({ jobEpoch, failures, losses, attempt, ended }: JobRecord): boolean {
  return jobEpoch + failures + losses + attempt + ended.length > 0;
}

function writeMaybe(writer: ByteWriter, value: number | null): void {
  writer.bool(value !== null);
  if (value !== null) writer.uint53(value);
}
