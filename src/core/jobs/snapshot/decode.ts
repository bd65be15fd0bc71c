// Reads what encode.ts writes. Bytes that are no such snapshot are SNAPSHOT_INVALID, those of a later version
// FORMAT_UNSUPPORTED; nothing is half restored, because it is read into a book that nobody has seen yet.

import { ByteReader, DecodeError } from "../../kit/bytes.ts";
import { TenureError } from "../../kit/errors.ts";
import { AGENT_SESSIONS_KEPT, JOB_ATTEMPTS_KEPT, JOB_LABELS_BYTES_MAX } from "../../kit/limits.ts";
import type { Json } from "../../kit/json.ts";
import { parseJson } from "../../kit/parse-json.ts";
import { SNAPSHOT_NAME_BYTES_MAX, SNAPSHOT_TEXT_BYTES_MAX } from "../limits.ts";
import type { AgentInfo, JobFailure, JobProgress, Schedule } from "../model.ts";
import type { EndedRun, JobRecord, Run, Ticket } from "../state/records.ts";
import {
  type AgentExtras,
  AGENT_STATES,
  DELIVERED,
  DELIVERED_PAIR,
  ENDS,
  FLAG,
  MAGIC,
  PRIORITY_OFFSET,
  REPORTS,
  SKIP,
  SNAPSHOT_VERSION,
  SNAPSHOT_VERSION_OLDEST,
  STATES,
} from "./format.ts";
import type { ClassSpec } from "../state/job-class.ts";
import { callerOf } from "../state/key-shares.ts";
import { ticketBytes } from "../state/weights.ts";
import type { BookState, PolicySpec } from "../state/state.ts";

const NO_ENDED: readonly EndedRun[] = [];
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Records that are read between two yields. */
const SLICE_RECORDS = 512;

/** Fills an empty state, bit by bit; returns the sequence of the last event in it. */
export function* decodeBook(state: BookState, bytes: Uint8Array): Generator<void, number, void> {
  if (bytes.length === 0) return 0;
  try {
    return yield* new BookDecoder(state, bytes).book();
  } catch (error) {
    if (TenureError.is(error)) throw error;
    if (!(error instanceof DecodeError) && !(error instanceof SyntaxError) && !(error instanceof TypeError))
      throw error;
    throw new TenureError("SNAPSHOT_INVALID", `the jobs' part of the snapshot can't be read: ${error.message}`, {
      cause: error,
    });
  }
}

class BookDecoder {
  readonly #state: BookState;
  readonly #reader: ByteReader;
  readonly #classes: ClassSpec[] = [];
  readonly #policies: PolicySpec[] = [];
  readonly #callers: string[] = [];
  #records = 0;

  constructor(state: BookState, bytes: Uint8Array) {
    this.#state = state;
    this.#reader = new ByteReader(bytes);
  }

  *book(): Generator<void, number, void> {
    const reader = this.#reader;
    if (reader.u8() !== MAGIC) throw new DecodeError("malformed", "it is no snapshot of jobs");
    const version = reader.u8();
    if (version > SNAPSHOT_VERSION) throw laterVersion(version);
    if (version < SNAPSHOT_VERSION_OLDEST) throw new DecodeError("malformed", `version ${version}`);
    const sequence = reader.uint53();
    this.#state.count(reader.uint53(), reader.uint53());
    for (let left = reader.u32(); left > 0; left--) {
      const queue = this.#name();
      this.#state.paused.set(queue, { queue });
    }
    for (let left = reader.u32(); left > 0; left--) yield* this.#counted(() => this.#agent());
    for (let left = reader.u32(); left > 0; left--) yield* this.#counted(() => this.#schedule());
    while (reader.bool()) yield* this.#counted(() => this.#key());
    while (reader.bool()) {
      this.#job();
      if (++this.#records % SLICE_RECORDS === 0) yield;
    }
    if (reader.remainingBytes > 0) throw new DecodeError("malformed", `${reader.remainingBytes} bytes too many`);
    return sequence;
  }

  *#counted(read: () => void): Generator<void, void, void> {
    read();
    if (++this.#records % SLICE_RECORDS === 0) yield;
  }

  #agent(): void {
    const reader = this.#reader;
    const text = parseJson(this.#flatText()) as AgentInfo & AgentExtras;
    const { draining: isDraining = false, epoch = 0, owner = null, ...info } = text;
    const state = this.#oneOf(AGENT_STATES);
    const registeredAtMs = reader.uint53();
    const sinceMs = reader.uint53();
    const past = this.#list(AGENT_SESSIONS_KEPT, () => this.#name());
    this.#state.agents.set(info.name, { info, state, registeredAtMs, sinceMs, isDraining, past, epoch, owner });
  }

  #schedule(): void {
    const schedule = parseJson(this.#flatText()) as Schedule;
    const sinceMs = this.#reader.uint53();
    this.#state.schedules.set(schedule.name, { schedule, sinceMs, lastAtMs: this.#maybe() });
  }

  #key(): void {
    const reader = this.#reader;
    const id = this.#flatText();
    const bodyHash = this.#flatText();
    const command = this.#name();
    const jobIds = this.#flatText();
    const [atMs, sequence] = [reader.uint53(), reader.uint53()];
    if (command === DELIVERED && callerOf(id) === "") return this.#delivered(bodyHash);
    if (command !== SKIP || callerOf(id) !== "") {
      this.#state.keys.set(id, { id, bodyHash, command, jobIds, atMs, sequence });
      return;
    }
    const byMs = Number(jobIds);
    if (!Number.isSafeInteger(byMs)) throw new DecodeError("malformed", `a jump of the clock by ${jobIds}`);
    this.#state.skips.set(String(sequence), { atMs, byMs, sequence });
  }

  #delivered(pair: string): void {
    const [place = NaN, operation = NaN] = DELIVERED_PAIR.exec(pair)?.slice(1).map(Number) ?? [];
    if (!Number.isSafeInteger(place) || !Number.isSafeInteger(operation) || this.#state.delivered !== null)
      throw new DecodeError("malformed", `jobs were delivered up to ${pair}`);
    this.#state.deliver({ place, operation });
  }

  #job(): void {
    const reader = this.#reader;
    const flags = reader.u32();
    const ticket = this.#ticket(flags);
    const state = this.#oneOf(STATES);
    const readyAtMs = (flags & FLAG.readyAt) === 0 ? ticket.submittedAtMs : reader.uint53();
    const history = (flags & FLAG.history) === 0 ? NO_HISTORY : this.#history();
    const run = (flags & FLAG.run) === 0 ? null : this.#run((flags & FLAG.poll) !== 0);
    const progress = (flags & FLAG.progress) === 0 ? null : this.#progress();
    const isFinished = (flags & FLAG.finished) !== 0;
    const finishedAtMs = isFinished ? reader.uint53() : null;
    const finishedBy = isFinished ? reader.uint53() : 0;
    const result = (flags & FLAG.result) === 0 ? null : this.#flatText();
    const error = (flags & FLAG.error) === 0 ? null : this.#failure();
    const { jobEpoch, failures, losses, attempt, ended } = history;
    this.#state.jobs.set(ticket.id, {
      ticket,
      state,
      jobEpoch,
      failures,
      losses,
      attempt,
      readyAtMs,
      run,
      progress,
      ended,
      finishedAtMs,
      finishedBy,
      result,
      error,
    });
  }

  #ticket(flags: number): Ticket {
    const reader = this.#reader;
    const id = this.#flatText();
    const number = reader.uint53();
    const common = this.#named(this.#classes, () => this.#class());
    const policy = this.#named(this.#policies, () => this.#policy());
    const submittedBy = this.#named(this.#callers, () => this.#name());
    const priority = reader.u32() - PRIORITY_OFFSET;
    const submittedAtMs = reader.uint53();
    const payload = this.#flatText();
    const notBeforeMs = (flags & FLAG.notBefore) === 0 ? null : reader.uint53();
    const isKeyed = (flags & FLAG.concurrency) !== 0;
    const concurrencyKey = isKeyed ? this.#name() : null;
    const concurrencyLimit = isKeyed ? reader.u32() : 0;
    const schedule = (flags & FLAG.schedule) === 0 ? null : this.#name();
    return {
      id,
      number,
      priority,
      class: this.#state.classes.of(common),
      policy: this.#state.policyOf(policy),
      payload,
      notBeforeMs,
      concurrencyKey,
      concurrencyLimit,
      submittedAtMs,
      submittedBy,
      schedule,
      bytes: ticketBytes(id, payload, notBeforeMs, concurrencyKey, schedule),
    };
  }

  #class(): ClassSpec {
    const kind = this.#name();
    const queue = this.#name();
    const platform = this.#reader.bool() ? this.#name() : null;
    const text = (): string => this.#reader.text(JOB_LABELS_BYTES_MAX);
    const labels = this.#list(0xff, (): [string, string] => [text(), text()]);
    // Not by assignment: a name may be `__proto__` (trap 63).
    return { kind, queue, platform, labels: Object.fromEntries(labels) };
  }

  #policy(): PolicySpec {
    const reader = this.#reader;
    const attemptsMax = reader.u32();
    const lossesMax = reader.u32();
    const backoff = { baseMs: reader.uint53(), maxMs: reader.uint53() };
    const timeoutMs = this.#maybe();
    return { attemptsMax, lossesMax, backoff, timeoutMs, retentionMs: reader.uint53() };
  }

  #history(): Pick<JobRecord, "jobEpoch" | "failures" | "losses" | "attempt" | "ended"> {
    const reader = this.#reader;
    const jobEpoch = reader.uint53();
    const failures = reader.u32();
    const losses = reader.u32();
    const attempt = reader.uint53();
    return { jobEpoch, failures, losses, attempt, ended: this.#list(JOB_ATTEMPTS_KEPT, () => this.#ended()) };
  }

  #run(hasPoll: boolean): Run {
    const reader = this.#reader;
    const leaseId = this.#flatText();
    const jobEpoch = reader.uint53();
    const leaderEpoch = reader.uint53();
    const attempt = reader.uint53();
    const agent = this.#name();
    const session = this.#name();
    const ttlMs = reader.uint53();
    const assignedAtMs = reader.uint53();
    const startedAtMs = this.#maybe();
    const logBytes = reader.uint53();
    const poll = hasPoll ? reader.uint53() : 0;
    const lease = { leaseId, jobEpoch, leaderEpoch, attempt, agent, session, ttlMs };
    return { ...lease, assignedAtMs, startedAtMs, logBytes, poll };
  }

  #ended(): EndedRun {
    const run = this.#run(false);
    const endedAtMs = this.#reader.uint53();
    const end = this.#oneOf(ENDS);
    const reported = this.#oneOf(REPORTS);
    return { ...run, endedAtMs, end, reported, stateAfter: this.#oneOf(STATES) };
  }

  #progress(): JobProgress {
    const share = this.#name();
    const message = this.#reader.bool() ? this.#flatText() : null;
    return { share: share === "" ? null : Number(share), message, atMs: this.#reader.uint53() };
  }

  #failure(): JobFailure {
    return { message: this.#flatText(), detail: parseJson(this.#flatText()) as Json };
  }

  // ---- fields --------------------------------------------------------------------------------------

  #named<T>(known: T[], read: () => T): T {
    const number = this.#reader.u32();
    if (number > known.length) throw new DecodeError("malformed", `number ${number} of ${known.length}`);
    if (number === known.length) known.push(read());
    return known[number] as T;
  }

  #oneOf<T>(list: readonly T[]): T {
    const at = this.#reader.u8();
    if (at >= list.length) throw new DecodeError("malformed", `number ${at} of ${list.length}`);
    return list[at] as T;
  }

  #list<T>(max: number, read: () => T): readonly T[] {
    const count = this.#reader.u8();
    if (count > max) throw new DecodeError("malformed", `${count} where ${max} are allowed`);
    return Array.from({ length: count }, read);
  }

  #maybe(): number | null {
    return this.#reader.bool() ? this.#reader.uint53() : null;
  }

  #name(): string {
    return this.#reader.text(SNAPSHOT_NAME_BYTES_MAX);
  }

  /** In one piece: the reader's own texts are put together letter by letter, which takes much memory where they are many. */
  #flatText(): string {
    return decoder.decode(this.#reader.bytes(SNAPSHOT_TEXT_BYTES_MAX));
  }
}

const NO_HISTORY = { jobEpoch: 0, failures: 0, losses: 0, attempt: 0, ended: NO_ENDED } as const;

function laterVersion(version: number): TenureError {
  return new TenureError(
    "FORMAT_UNSUPPORTED",
    `a snapshot of jobs has format ${version}, and this node reads ${SNAPSHOT_VERSION} at most; start the newer version of Tenure here too`,
  );
}
