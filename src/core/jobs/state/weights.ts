// What each record takes in a snapshot, at most: what the limits of the book are counted in, because a book that does not fit
// into a snapshot any more would be lost with its log. A function of the record alone, so equal on every node.

import type { AgentRecord, EndedRun, JobRecord, KeyRecord, Run, ScheduleRecord } from "./records.ts";
import type { Json } from "../../kit/json.ts";

/** The numbers of a job's ticket and state, and its policy, which many share. */
const JOB_BYTES = 54 + 41;
const HISTORY_BYTES = 25;
const RUN_BYTES = 69;
const POLL_BYTES = 8;
const END_BYTES = 11;
const PROGRESS_BYTES = 41;
const FINISHED_BYTES = 16;
const TEXT_BYTES = 4;
const KEY_BYTES = 33;
/** The last: that it drains, and its epoch. */
const AGENT_BYTES = 22 + 16 + 25;
const SCHEDULE_BYTES = 21;

type Canonical = (value: Json) => string;

/** Of UTF-8. */
function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    // Of a pair each half counts two, which makes four.
    if (code > 0x7f) bytes += code > 0x7ff && (code < 0xd800 || code > 0xdfff) ? 2 : 1;
  }
  return bytes;
}

/** Of a ticket: what it brings with it to its end. */
export function ticketBytes(
  id: string,
  payload: string,
  notBeforeMs: number | null,
  concurrencyKey: string | null,
  schedule: string | null,
): number {
  let bytes = JOB_BYTES + utf8Bytes(id) + utf8Bytes(payload);
  if (notBeforeMs !== null) bytes += 8;
  if (concurrencyKey !== null) bytes += 2 * TEXT_BYTES + utf8Bytes(concurrencyKey);
  if (schedule !== null) bytes += TEXT_BYTES + utf8Bytes(schedule);
  return bytes;
}

export class Weights {
  readonly #canonical: Canonical;
  /** Of what must be written out to be measured. Records are never changed. */
  readonly #known = new WeakMap<object, number>();

  constructor(canonical: Canonical) {
    this.#canonical = canonical;
  }

  job({ ticket, run, ended, progress, result, error, finishedAtMs, attempt }: JobRecord): number {
    let bytes = ticket.bytes;
    if (attempt > 0) bytes += HISTORY_BYTES;
    if (run !== null) bytes += POLL_BYTES + runBytes(run);
    for (const one of ended) bytes += endedBytes(one);
    if (progress !== null) bytes += PROGRESS_BYTES + (progress.message === null ? 0 : utf8Bytes(progress.message));
    if (finishedAtMs !== null) bytes += FINISHED_BYTES;
    if (result !== null) bytes += TEXT_BYTES + utf8Bytes(result);
    if (error !== null) bytes += this.#once(error, () => this.#written({ ...error }));
    return bytes;
  }

  key({ id, bodyHash, command, jobIds }: KeyRecord): number {
    return KEY_BYTES + utf8Bytes(id) + utf8Bytes(bodyHash) + command.length + utf8Bytes(jobIds);
  }

  agent(record: AgentRecord): number {
    const past = (): number => record.past.reduce((sum, session) => sum + TEXT_BYTES + utf8Bytes(session), 0);
    const owner = record.owner === null ? {} : { owner: record.owner };
    return this.#once(record, () => AGENT_BYTES + this.#written({ ...record.info, ...owner }) + past());
  }

  schedule(record: ScheduleRecord): number {
    const { spec, ...rest } = record.schedule;
    return this.#once(record.schedule, () => SCHEDULE_BYTES + this.#written({ ...rest, spec: { ...spec } }));
  }

  #written(value: Json): number {
    return 2 * TEXT_BYTES + utf8Bytes(this.#canonical(value));
  }

  #once(of: object, measure: () => number): number {
    const known = this.#known.get(of);
    if (known !== undefined) return known;
    const bytes = measure();
    this.#known.set(of, bytes);
    return bytes;
  }
}

function runBytes({ leaseId, agent, session }: Run): number {
  return RUN_BYTES + utf8Bytes(leaseId) + utf8Bytes(agent) + utf8Bytes(session);
}

function endedBytes(run: EndedRun): number {
  return END_BYTES + runBytes(run);
}
