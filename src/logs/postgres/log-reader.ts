// Brings what is in Postgres into what is applied here, page by page; used by the follower, and by an open that must know
// everything. It has no session of its own: whoever calls brings one.
//
//   a page after what was applied ─▶ take it
//   the page begins after a gap   ─▶ the records were deleted after a snapshot: restore that, go on after it
//
// Invariant: what was applied here is in the database. A restored backup, or a standby that was promoted without the end of
// the log, breaks that: CHAIN_BROKEN, told to `onBroken` too, and the node must begin anew. It is looked at byte for byte with
// each new session and each open; with each page by where the log ends, and by the epoch of our last record: what a promoted
// server has in its place was written in a later one.

import { TenureError } from "../../core/kit/errors.ts";
import type { LogRecord } from "../../ports/log.ts";
import type { SqlLane } from "../../ports/backends/sql.ts";
import { LOG_PAGE_RECORDS_MAX, LOG_READ_BYTES_MAX, SNAPSHOT_ATTEMPTS_MAX } from "../limits.ts";
import type { Applied } from "./applied.ts";
import {
  bytesOf,
  headOf,
  type HeadRow,
  integerOf,
  type LogStatements,
  type PageRow,
  recordsOf,
  type StoredHead,
} from "./log-sql.ts";

export interface Page {
  readonly head: StoredHead;
  /** Of the record before the page; null where it is not kept. */
  readonly beforeEpoch: number | null;
  readonly records: readonly LogRecord[];
}

export class LogReader {
  readonly #log: string;
  readonly #sql: LogStatements;
  readonly #applied: Applied;
  readonly #onBroken: (error: TenureError) => void;
  #stored: StoredHead | null = null;
  /** The last record of the snapshot that was restored, as the table had it: memory does not. */
  #restored: LogRecord | null = null;

  constructor(log: string, sql: LogStatements, applied: Applied, onBroken: (error: TenureError) => void) {
    this.#log = log;
    this.#sql = sql;
    this.#applied = applied;
    this.#onBroken = onBroken;
  }

  /** The head as it was read last; null before the first time. */
  get stored(): StoredHead | null {
    return this.#stored;
  }

  /** Takes the next page. True where more is known to be there. */
  async advance(lane: SqlLane): Promise<boolean> {
    const before = this.#applied.position;
    // A node that has nothing takes the state, not its whole history.
    if (before === 0 && (await this.#restore(lane))) return true;
    const mine = this.#last();
    const { head, records, beforeEpoch } = await this.page(lane, before, Number.MAX_SAFE_INTEGER, LOG_PAGE_RECORDS_MAX);
    this.checkEnd(head.position, before);
    if (mine !== null && beforeEpoch !== null && beforeEpoch !== mine.epoch) throw this.#another(before);
    this.#applied.heardOf(head.epoch);
    if (head.first > before + 1) {
      if (this.#applied.position > before || (await this.#restore(lane))) return true;
      throw this.#broken(`it begins at ${head.first}, and no snapshot leads from ${before} to there`);
    }
    this.#checkRun(records, before, head);
    for (const record of records) this.#applied.take(record);
    return this.#applied.position < head.position;
  }

  /** Records after `after`, up to `upTo`. Fewer than there are, where they are large. */
  async page(lane: SqlLane, after: number, upTo: number, max: number): Promise<Page> {
    const values = [this.#log, after, upTo, Math.min(max, LOG_PAGE_RECORDS_MAX), LOG_READ_BYTES_MAX];
    const rows = await lane.ask<PageRow>(this.#sql.page, values);
    const [first] = rows;
    const head = headOf(first);
    this.#stored = head;
    const epoch = first?.before_epoch ?? null;
    return { head, records: recordsOf(rows), beforeEpoch: epoch === null ? null : integerOf(epoch) };
  }

  /** `end`: where the log ends, as the server said after this node had applied `before`. */
  checkEnd(end: number, before: number): void {
    if (end < before) throw this.#broken(`it ends at ${end}, and here record ${before} was applied`);
  }

  /** For a new session, which may lead to another server than the last: is our last record there, as it was? */
  async compare(lane: SqlLane): Promise<void> {
    const { position } = this.#applied;
    if (position === 0) return;
    const mine = this.#last();
    const { head, records } = await this.page(lane, position - 1, position, 1);
    this.checkEnd(head.position, position);
    const [theirs] = records;
    if (mine === null || theirs === undefined) return;
    if (mine.epoch !== theirs.epoch || !isEqual(mine.data, theirs.data)) throw this.#another(position);
  }

  /** The last record that was applied; null where nobody here knows it. */
  #last(): LogRecord | null {
    const { position, feed } = this.#applied;
    if (position >= feed.first) return feed.read(position, 1)[0] ?? null;
    return this.#restored?.position === position ? this.#restored : null;
  }

  /** True where it brought us forward. */
  async #restore(lane: SqlLane): Promise<boolean> {
    const before = this.#applied.position;
    for (let attempt = 0; attempt < SNAPSHOT_ATTEMPTS_MAX; attempt++) {
      const [row] = await lane.ask<HeadRow & { parts: number }>(this.#sql.snapshot, [this.#log]);
      const head = headOf(row);
      this.#stored = head;
      if (row === undefined || head.snapshotPosition <= before) return false;
      const data = await this.#parts(lane, head, row.parts);
      if (data === null) continue;
      const position = head.snapshotPosition;
      const { records } = await this.page(lane, position - 1, position, 1);
      this.#applied.restore(data, { position, epoch: head.snapshotEpoch });
      this.#restored = records[0] ?? null;
      return true;
    }
    throw new TenureError(
      "BACKEND_UNAVAILABLE",
      `the snapshot of log "${this.#log}" was replaced ${SNAPSHOT_ATTEMPTS_MAX} times while it was read; it is tried again.`,
    );
  }

  async #parts(lane: SqlLane, head: StoredHead, count: number): Promise<Uint8Array | null> {
    const parts: Uint8Array[] = [];
    for (let part = 0; part < count; part++) {
      const values = [this.#log, head.snapshotEpoch, head.snapshotPosition, part];
      const [row] = await lane.ask<{ data: Uint8Array }>(this.#sql.snapshotPart, values);
      if (row === undefined) return null;
      parts.push(bytesOf(row.data));
    }
    return count === 0 ? null : joined(parts);
  }

  #checkRun(records: readonly LogRecord[], after: number, head: StoredHead): void {
    const isRun = records.every(({ position }, at) => position === after + 1 + at);
    if (isRun && (records.length > 0 || head.position === after)) return;
    throw this.#broken(`records behind ${after} are missing, and its head is ${head.position}`);
  }

  #another(position: number): TenureError {
    return this.#broken(`its record ${position} is another one than was applied here`);
  }

  #broken(what: string): TenureError {
    const error = new TenureError(
      "CHAIN_BROKEN",
      `log "${this.#log}" in Postgres is not the one that this node has applied: ${what}. A backup was restored, a standby was promoted without the end of the log, or rows were deleted by hand. Start this node anew: it reads what is there.`,
    );
    this.#onBroken(error);
    return error;
  }
}

export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}
