// The leader's side of a log in Postgres: opens and appends, one transaction after the other on a session of its own.
//
//   append ─▶ after our last one? ─▶ waits while another is under way ─▶ with all that wait: one statement, one transaction
//                                                                           ├─ taken: applied here, then committed
//                                                                           ├─ not taken: fenced, or to be opened again
//                                                                           ├─ the server refused it: nothing was written
//                                                                           └─ no answer: unknown (trap 66)
//
// Invariants:
// - Order: one statement at a time, and each names the position that the last one reached.
// - After `unknown` nothing more is sent in that opening of the epoch: what waits is refused, certainly unwritten. Opening
//   again, with the same epoch or a higher one, fences the statement that may still be on its way, and tells the end.
// - A refusal by the server is one only if the session answers another statement afterwards (core/kit/sql-outcome.ts).

import { assert, assertNever } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { ENTRY_BYTES_MAX, PENDING_PROPOSALS_MAX, UNCOMMITTED_BYTES_MAX } from "../../core/kit/limits.ts";
import { outcomeOfCommit } from "../../core/kit/sql-outcome.ts";
import type { LogAppended, LogOpened } from "../../ports/log.ts";
import type { SqlDesk, SqlLane } from "../../ports/backends/sql.ts";
import { connected } from "../../postgres/desk.ts";
import { BATCH_RECORDS_MAX, GROUP_BYTES_MAX, GROUP_RECORDS_MAX, WRITER_OPEN_MS_MAX } from "../limits.ts";
import { misplaced, notOpened, tooLarge, tooMuchWaits } from "../refusals.ts";
import type { Applied } from "./applied.ts";
import { joined, type LogReader } from "./log-reader.ts";
import { integerOf, type LogStatements, type VerdictRow } from "./log-sql.ts";

const ALIVE = "select 1";

export interface WriterOptions {
  readonly log: string;
  readonly desk: SqlDesk;
  readonly sql: LogStatements;
  readonly reader: LogReader;
  readonly applied: Applied;
  /** One append for each transaction: for comparisons. */
  readonly ungrouped: boolean;
  readonly onCommitted: (tail: Opening) => void;
  readonly onUnknown: () => void;
}

/** What an epoch's statements name. */
export interface Opening {
  readonly epoch: number;
  readonly opened: number;
}

interface Tail {
  readonly epoch: number;
  opened: number;
  /** The end of what was appended here, acknowledged or not. */
  position: number;
  /** An append after it has no answer: it must be opened again. */
  isBroken: boolean;
}

interface Append {
  readonly kind: "append";
  readonly tail: Tail;
  readonly after: number;
  readonly lengths: readonly number[];
  readonly bytes: Uint8Array;
  readonly taken: readonly string[];
  readonly resolve: (answer: LogAppended) => void;
  readonly reject: (error: unknown) => void;
}

interface Open {
  readonly kind: "open";
  readonly epoch: number;
  readonly resolve: (answer: LogOpened) => void;
  readonly reject: (error: unknown) => void;
}

export interface WriterCounts {
  appends: number;
  /** Statements that were sent for them. */
  groups: number;
  unknown: number;
}

export class Writer {
  readonly counts: WriterCounts = { appends: 0, groups: 0, unknown: 0 };
  readonly #options: WriterOptions;
  #queue: (Append | Open)[] = [];
  #waitingBytes = 0;
  #working = false;
  #closed = false;
  #tail: Tail | null = null;
  #lane: SqlLane | null = null;
  #connecting: Promise<SqlLane> | null = null;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** The end of what this node has appended or has under way; 0 where it does not lead. */
  get end(): number {
    return this.#tail === null || this.#tail.isBroken ? 0 : this.#tail.position;
  }

  /** A session that is there before it is needed: whoever takes over does not wait for one. Never rejects. */
  async warm(): Promise<void> {
    try {
      if (!this.#closed) await this.#connected();
    } catch {
      // Then it is opened when it is needed, and what is wrong with it is told.
    }
  }

  open(epoch: number): Promise<LogOpened> {
    return new Promise((resolve, reject) => this.#enqueue({ kind: "open", epoch, resolve, reject }));
  }

  /** `taken`: ids of the inbox that are deleted in the same transaction. */
  async append(
    epoch: number,
    after: number,
    batch: readonly Uint8Array[],
    taken: readonly string[] = [],
  ): Promise<LogAppended> {
    assert(batch.length > 0 && batch.length <= BATCH_RECORDS_MAX, "a batch is bounded", () => String(batch.length));
    const { applied } = this.#options;
    if (epoch < applied.epoch) return { outcome: "fenced", epoch: applied.epoch };
    const tail = this.#tail;
    if (tail?.epoch !== epoch || tail.isBroken) throw notOpened(epoch);
    if (after !== tail.position) throw misplaced(after, tail.position);
    const lengths = batch.map((data) => data.length);
    const size = lengths.reduce((sum, length) => sum + length, 0);
    if (size > ENTRY_BYTES_MAX) throw tooLarge(size);
    if (this.#queue.length >= PENDING_PROPOSALS_MAX || this.#waitingBytes + size > UNCOMMITTED_BYTES_MAX)
      throw tooMuchWaits(this.#queue.length, this.#waitingBytes);
    tail.position += batch.length;
    this.#waitingBytes += size;
    this.counts.appends++;
    // The caller may use its buffers again.
    const bytes = batch.length === 1 ? batch[0]!.slice() : joined(batch);
    return new Promise((resolve, reject) =>
      this.#enqueue({ kind: "append", tail, after, lengths, bytes, taken, resolve, reject }),
    );
  }

  /** True: at some time after this call no higher epoch was in force. False: that is not known. */
  async confirm(epoch: number): Promise<boolean> {
    const { log, sql } = this.#options;
    const lane = this.#lane;
    if (lane === null || lane.hasEnded || this.#tail?.epoch !== epoch || this.#tail.isBroken) return false;
    try {
      const [row] = await lane.ask<{ epoch: string }>(sql.inForce, [log]);
      return row !== undefined && integerOf(row.epoch) === epoch;
    } catch {
      return false;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#tail = null;
    const lane = this.#lane;
    this.#lane = null;
    this.#rejectWaiting(() => true, this.#closedError());
    await lane?.end();
  }

  #enqueue(item: Append | Open): void {
    if (this.#closed) return item.reject(this.#closedError());
    this.#queue.push(item);
    if (this.#working) return;
    this.#working = true;
    void this.#work();
  }

  /** From the next turn on, so that what is appended in one turn goes together. */
  async #work(): Promise<void> {
    await Promise.resolve();
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      switch (next.kind) {
        case "open":
          this.#queue.shift();
          await this.#open(next);
          break;
        case "append":
          await this.#send(this.#nextGroup(next));
          break;
        default:
          assertNever(next, "a writer's queue");
      }
    }
    this.#working = false;
  }

  // ---- opening -------------------------------------------------------------------------------------

  async #open({ epoch, resolve, reject }: Open): Promise<void> {
    const { log, sql, applied, reader, desk } = this.#options;
    try {
      const lane = await this.#connected();
      const before = applied.position;
      const [row] = await lane.ask<VerdictRow>(sql.open, [log, epoch], WRITER_OPEN_MS_MAX);
      assert(row !== undefined, "a function answers with one row");
      const inForce = integerOf(row.epoch);
      if (!row.taken) {
        applied.heardOf(inForce);
        return resolve({ outcome: "fenced", epoch: inForce });
      }
      const position = integerOf(row.position);
      reader.checkEnd(position, before);
      // The same epoch, opening and length do not make it the same log: what follows is sealed onto our last record.
      await reader.compare(lane);
      while (applied.position < position) await reader.advance(lane);
      applied.heardOf(epoch);
      this.#begin(epoch, integerOf(row.opened), position);
      resolve({ outcome: "opened", head: { position, epoch } });
    } catch (error) {
      reject(desk.fault(error));
    }
  }

  #begin(epoch: number, opened: number, position: number): void {
    if (this.#closed) return;
    const tail = this.#tail;
    // Opened again, appends may wait already: the end is known better here.
    if (tail?.epoch === epoch && !tail.isBroken) tail.opened = opened;
    else this.#tail = { epoch, opened, position, isBroken: false };
  }

  // ---- appending -----------------------------------------------------------------------------------

  #nextGroup(first: Append): readonly Append[] {
    const { ungrouped } = this.#options;
    let records = 0;
    let bytes = 0;
    let count = 0;
    for (const item of this.#queue) {
      if (item.kind !== "append" || item.tail !== first.tail) break;
      records += item.lengths.length;
      bytes += item.bytes.length;
      if (count > 0 && (ungrouped || records > GROUP_RECORDS_MAX || bytes > GROUP_BYTES_MAX)) break;
      count++;
    }
    const group = this.#queue.slice(0, count) as Append[];
    this.#queue = this.#queue.slice(count);
    for (const item of group) this.#waitingBytes -= item.bytes.length;
    return group;
  }

  async #send(group: readonly Append[]): Promise<void> {
    const { log, sql } = this.#options;
    const { tail, after } = group[0]!;
    let lane: SqlLane;
    try {
      lane = await this.#connected();
    } catch (error) {
      return this.#refuse(group, error);
    }
    const taken = group.flatMap((one) => one.taken);
    const bytes = joined(group.map((one) => one.bytes));
    const lengths = group.flatMap((one) => one.lengths);
    const values = [log, tail.epoch, tail.opened, after, bytes, lengths, taken.length === 0 ? null : taken];
    this.counts.groups++;
    try {
      this.#answered(group, await lane.ask<VerdictRow>(sql.append, values));
    } catch (error) {
      if (await isRefusal(error, lane)) this.#refuse(group, error);
      else this.#unknown(group, lane);
    }
  }

  #answered(group: readonly Append[], [row]: readonly VerdictRow[]): void {
    assert(row !== undefined, "a function answers with one row");
    if (!row.taken) return this.#notTaken(group, row);
    try {
      this.#committed(group);
    } catch {
      // The fold has failed, and was told so: nobody hears "committed" of what this node can't apply.
      for (const one of group) one.resolve({ outcome: "unknown" });
    }
  }

  #committed(group: readonly Append[]): void {
    const { applied, onCommitted } = this.#options;
    for (const { tail, after, lengths, bytes, resolve } of group) {
      let start = 0;
      for (const [at, length] of lengths.entries()) {
        applied.take({ position: after + 1 + at, epoch: tail.epoch, data: bytes.subarray(start, start + length) });
        start += length;
      }
      resolve({ outcome: "committed", position: after + lengths.length });
    }
    const { epoch, opened } = group[0]!.tail;
    onCommitted({ epoch, opened });
  }

  #notTaken(group: readonly Append[], row: VerdictRow): void {
    const { tail, after } = group[0]!;
    const inForce = row.epoch === null ? 0 : integerOf(row.epoch);
    const waiting = this.#giveUp(tail);
    if (inForce > tail.epoch) {
      this.#options.applied.heardOf(inForce);
      for (const one of [...group, ...waiting]) one.resolve({ outcome: "fenced", epoch: inForce });
      // Who does not lead needs no session for it.
      const lane = this.#lane;
      this.#lane = null;
      void lane?.end();
      return;
    }
    // Opened by somebody else in the same epoch, or the server was promoted since.
    const isSameOpening = inForce === tail.epoch && row.opened !== null && integerOf(row.opened) === tail.opened;
    const error = isSameOpening ? misplaced(after, integerOf(row.position)) : notOpened(tail.epoch);
    for (const one of [...group, ...waiting]) one.reject(error);
  }

  /** Nothing was written, and the epoch goes on where this group began; what waits behind it names an end that is not reached. */
  #refuse(group: readonly Append[], error: unknown): void {
    const { tail, after } = group[0]!;
    const fault = this.#options.desk.fault(error);
    tail.position = after;
    for (const one of group) one.reject(fault);
    this.#rejectWaiting((item) => item.kind === "append" && item.tail === tail, fault);
  }

  #unknown(group: readonly Append[], lane: SqlLane): void {
    const { tail } = group[0]!;
    this.counts.unknown += group.length;
    lane.destroy();
    const waiting = this.#giveUp(tail);
    for (const one of group) one.resolve({ outcome: "unknown" });
    for (const one of waiting) one.reject(notOpened(tail.epoch));
    this.#options.onUnknown();
  }

  #giveUp(tail: Tail): readonly Append[] {
    tail.isBroken = true;
    return this.#removeWaiting((item) => item.kind === "append" && item.tail === tail) as Append[];
  }

  #rejectWaiting(which: (item: Append | Open) => boolean, error: TenureError): void {
    for (const item of this.#removeWaiting(which)) item.reject(error);
  }

  #removeWaiting(which: (item: Append | Open) => boolean): (Append | Open)[] {
    const removed = this.#queue.filter(which);
    this.#queue = this.#queue.filter((item) => !which(item));
    for (const item of removed) if (item.kind === "append") this.#waitingBytes -= item.bytes.length;
    return removed;
  }

  #connected(): Promise<SqlLane> {
    if (this.#lane !== null && !this.#lane.hasEnded) return Promise.resolve(this.#lane);
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  async #connect(): Promise<SqlLane> {
    const { desk, log, reader } = this.#options;
    const lane = await connected(desk, `tenure log ${log} (leader)`, {}, async (one) => {
      if (!this.#closed) await reader.compare(one);
    });
    if (this.#closed) {
      lane.destroy();
      throw this.#closedError();
    }
    this.#lane = lane;
    return lane;
  }

  #closedError(): TenureError {
    return new TenureError(
      "BACKEND_UNAVAILABLE",
      `log "${this.#options.log}" was closed. What was not sent yet is not written.`,
    );
  }
}

/**
 * Whether this says for certain that nothing was written. An append's commit is part of its one statement, so any error of it
 * may be one of the commit.
 */
async function isRefusal(error: unknown, lane: SqlLane): Promise<boolean> {
  const outcome = outcomeOfCommit(error);
  if (outcome !== "refused") return outcome === "unsent";
  try {
    if (!lane.hasEnded) await lane.ask(ALIVE);
    return !lane.hasEnded;
  } catch {
    return false;
  }
}
