// A pending job as bytes, and back. What it has in common with others is a number (interned.ts); what most of them lack, the
// traces of earlier attempts, is JSON after it.

import { ByteReader, ByteWriter } from "../../kit/bytes.ts";
import { parseJson } from "../../kit/parse-json.ts";
import type { JobClass } from "../state/job-class.ts";
import type { JobRecord, Policy, Ticket } from "../state/records.ts";
import { Interned } from "./interned.ts";

const FLAG = { notBefore: 1, concurrency: 2, schedule: 4, readyAt: 8, traces: 16 } as const;
const BYTES_MAX = 0xffffffff;
const FLAGS_AT = 0;
/** Behind the flags and three numbers. */
const ID_AT = 13;

/** Whether a job was never assigned, by the first of its bytes. */
export function isFresh(flags: number): boolean {
  return (flags & FLAG.traces) === 0;
}

/** What a job has that was never assigned. */
const NO_TRACES = {
  jobEpoch: 0,
  failures: 0,
  losses: 0,
  attempt: 0,
  progress: null,
  ended: [],
  result: null,
  error: null,
} as const satisfies Partial<JobRecord>;

type Traces = Pick<JobRecord, keyof typeof NO_TRACES>;

export class JobBytes {
  readonly #classes = new Interned<JobClass>();
  readonly #policies = new Interned<Policy>();
  readonly #callers = new Interned<string>();
  readonly #writer = new ByteWriter(64 * 1024);

  /** Good until the next one. Nothing that it refers to is forgotten before it is released. */
  pack(record: JobRecord): Uint8Array {
    const { ticket, readyAtMs } = record;
    const { notBeforeMs, concurrencyKey, schedule } = ticket;
    const traces = tracesOf(record);
    let flags = 0;
    if (notBeforeMs !== null) flags |= FLAG.notBefore;
    if (concurrencyKey !== null) flags |= FLAG.concurrency;
    if (schedule !== null) flags |= FLAG.schedule;
    if (readyAtMs !== ticket.submittedAtMs) flags |= FLAG.readyAt;
    if (traces !== null) flags |= FLAG.traces;
    const writer = this.#writer;
    writer.begin(0);
    writer.u8(flags);
    writer.u32(this.#classes.use(ticket.class));
    writer.u32(this.#policies.use(ticket.policy));
    writer.u32(this.#callers.use(ticket.submittedBy));
    writer.text(ticket.id);
    writer.u32(ticket.bytes);
    writer.uint53(ticket.submittedAtMs);
    writer.text(ticket.payload);
    if (notBeforeMs !== null) writer.uint53(notBeforeMs);
    if (concurrencyKey !== null) {
      writer.text(concurrencyKey);
      writer.u32(ticket.concurrencyLimit);
    }
    if (schedule !== null) writer.text(schedule);
    if (readyAtMs !== ticket.submittedAtMs) writer.uint53(readyAtMs);
    if (traces !== null) writer.text(JSON.stringify(traces));
    return writer.lend();
  }

  unpack(bytes: Uint8Array, number: number, priority: number): JobRecord {
    const reader = new ByteReader(bytes);
    const flags = reader.u8();
    const one = this.#classes.at(reader.u32());
    const policy = this.#policies.at(reader.u32());
    const submittedBy = this.#callers.at(reader.u32());
    const id = reader.text(BYTES_MAX);
    const weight = reader.u32();
    const submittedAtMs = reader.uint53();
    const payload = reader.text(BYTES_MAX);
    const notBeforeMs = (flags & FLAG.notBefore) === 0 ? null : reader.uint53();
    const isKeyed = (flags & FLAG.concurrency) !== 0;
    const ticket: Ticket = {
      id,
      number,
      priority,
      class: one,
      policy,
      payload,
      notBeforeMs,
      concurrencyKey: isKeyed ? reader.text(BYTES_MAX) : null,
      concurrencyLimit: isKeyed ? reader.u32() : 0,
      submittedAtMs,
      submittedBy,
      schedule: (flags & FLAG.schedule) === 0 ? null : reader.text(BYTES_MAX),
      bytes: weight,
    };
    const readyAtMs = (flags & FLAG.readyAt) === 0 ? submittedAtMs : reader.uint53();
    const traces = (flags & FLAG.traces) === 0 ? NO_TRACES : (parseJson(reader.text(BYTES_MAX)) as Traces);
    return pending(ticket, readyAtMs, traces);
  }

  /** Whether the bytes that begin at `start` are those of the job with this id. */
  hasId(bytes: Uint8Array, start: number, id: string): boolean {
    const { length } = id;
    // Of what is not ASCII the bytes are more than the letters.
    if (bytes[start + ID_AT + 3] !== length) return this.idOf(bytes, start) === id;
    for (let at = 0; at < length; at++) {
      const code = bytes[start + ID_AT + 4 + at] as number;
      if (code > 0x7f) return this.idOf(bytes, start) === id;
      if (code !== id.charCodeAt(at)) return false;
    }
    return true;
  }

  idOf(bytes: Uint8Array, start = 0): string {
    return new ByteReader(bytes, start + ID_AT).text(BYTES_MAX);
  }

  release(bytes: Uint8Array): void {
    const reader = new ByteReader(bytes, FLAGS_AT + 1);
    this.#classes.drop(reader.u32());
    this.#policies.drop(reader.u32());
    this.#callers.drop(reader.u32());
  }
}

/** Null: it was never assigned. */
function tracesOf({ jobEpoch, failures, losses, attempt, progress, ended, result, error }: JobRecord): Traces | null {
  const isEmpty = jobEpoch + failures + losses + attempt + ended.length === 0;
  if (isEmpty && progress === null && result === null && error === null) return null;
  return { jobEpoch, failures, losses, attempt, progress, ended, result, error };
}

function pending(ticket: Ticket, readyAtMs: number, traces: Traces): JobRecord {
  return {
    ticket,
    state: "pending",
    jobEpoch: traces.jobEpoch,
    failures: traces.failures,
    losses: traces.losses,
    attempt: traces.attempt,
    readyAtMs,
    run: null,
    progress: traces.progress,
    ended: traces.ended,
    finishedAtMs: null,
    finishedBy: 0,
    result: traces.result,
    error: traces.error,
  };
}
