// All transactions that an island knows, folded from the log: what is applied on this node. Equal on every node at the same position.
//
// Invariants:
// - What is prepared locks each value and scope that it names, alone; what is committed or rolled back never becomes anything else.
// - What is needed still is never forgotten. Outcomes that nobody needs any more are, the smallest ids first, past a number, a size and an age;
//   `horizon` is the largest id that ever was. An unknown id up to there may be one of these, and is not taken for a new one.
// - No step looks at all of them: sums are kept, and outcomes that are only kept for those who repeat a call are packed.

import { ByteReader, ByteWriter, DecodeError } from "../kit/bytes.ts";
import type { Pieces } from "../kit/pieces.ts";
import { ById } from "./by-id.ts";
import { readFence, readLive, readSettled, writeFence, writeLive, writeSettled } from "./codec/records.ts";
import { type TxnEvent, txnIdOf } from "./events.ts";
import { raisedFence } from "./fence.ts";
import { createdMs, firstText } from "./id.ts";
import { readId, readOptional, writeId, writeOptional } from "./codec/fields.ts";
import {
  TXN_SETTLED_BYTES_MAX,
  TXN_SETTLED_MAX,
  TXN_SETTLED_MS,
  TXNS_FORGOTTEN_PER_RECORD_MAX,
  TXNS_OPEN_MAX,
  TXNS_PACK_BYTES,
  TXNS_PIECE_BYTES,
  TXNS_STAGED_MAX,
} from "./limits.ts";
import type { BackendHash, TcFence, TxnOpen, TxnReserved, TxnState } from "./model.ts";
import { evolveTxn, isSameTxn, locksOf, waitsFor, WEIGHT, weighTxn } from "./txn-state.ts";
import type { LockKey, TxnsReader } from "./view.ts";

/** An outcome that nobody needs any more. */
interface Packed {
  readonly id: string;
  readonly settledAtMs: number;
  readonly bytes: Uint8Array;
}

interface Parts {
  readonly horizon: string | null;
  readonly fence: TcFence | null;
  readonly live: readonly TxnState[];
  readonly settled: readonly Packed[];
}

export class TxnsFold implements TxnsReader {
  /** Staged, prepared, or committed and needed still. */
  #live = new ById<TxnState>(({ header }) => header.id);
  #settled = new ById<Packed>(({ id }) => id);
  #settledBytes = 0;
  readonly #locks = new Locks();
  /** Those with jobs to deliver, in the order of their places. */
  #undelivered = new Set<string>();
  #sums = [...weighTxn(null)];
  #horizon: string | null = null;
  #fence: TcFence | null = null;
  readonly #packer = new ByteWriter(TXNS_PACK_BYTES);

  get horizon(): string | null {
    return this.#horizon;
  }

  get fence(): TcFence | null {
    return this.#fence;
  }

  get staged(): number {
    return this.#sums[WEIGHT.staged]!;
  }

  get prepared(): number {
    return this.#sums[WEIGHT.prepared]!;
  }

  get unsettled(): number {
    return this.#sums[WEIGHT.unsettled]!;
  }

  get bytes(): number {
    return this.#sums[WEIGHT.bytes]!;
  }

  get reserved(): TxnReserved {
    return reservedOf(this.#sums);
  }

  settledFrom(ms: number): number {
    return this.#settled.countFrom(firstText(ms));
  }

  /** Jobs that are to be delivered. */
  get undeliveredJobs(): number {
    return this.#sums[WEIGHT.jobs]!;
  }

  /** All that are kept, outcomes that nobody needs any more included. */
  get size(): number {
    return this.#live.size + this.#settled.size;
  }

  /** There is nothing to keep in a snapshot. */
  get isEmpty(): boolean {
    return this.size === 0 && this.#horizon === null && this.#fence === null;
  }

  get(id: string): TxnState | undefined {
    const live = this.#live.get(id);
    if (live !== undefined) return live;
    const packed = this.#settled.get(id);
    return packed === undefined ? undefined : unpacked(packed);
  }

  /** The transaction that locks it; null: none. */
  lockedBy(key: LockKey): string | null {
    return this.#locks.get(key);
  }

  /** All, by id, after the id `after`. Nothing may change meanwhile. */
  *from(after: string | null): Generator<TxnState, void, void> {
    const live = this.#live.from(after);
    const settled = this.#settled.from(after);
    let [one, other] = [live.next(), settled.next()];
    while (one.done !== true || other.done !== true) {
      if (other.done === true || (one.done !== true && one.value.header.id < other.value.id)) {
        yield one.value as TxnState;
        one = live.next();
      } else {
        yield unpacked(other.value);
        other = settled.next();
      }
    }
  }

  /** Those that are staged, prepared, or committed and needed still: TXNS_OPEN_MAX + TXNS_STAGED_MAX at most. Nothing may change meanwhile. */
  live(after: string | null): Generator<TxnState, void, void> {
    return this.#live.from(after);
  }

  /** Prepared here, or committed here as home and not done everywhere: by id, at most `limit` after the id `after`. */
  openOf(
    self: BackendHash,
    after: string | null,
    limit: number,
  ): { readonly open: readonly TxnOpen[]; readonly next: string | null } {
    const open: TxnOpen[] = [];
    for (const state of this.#live.from(after)) {
      const { header, phase } = state;
      if (phase !== "prepared" && (phase !== "committed" || header.home !== self)) continue;
      if (open.length >= limit) return { open, next: open.at(-1)!.header.id };
      open.push({ header, phase, waitsFor: waitsFor(state) });
    }
    return { open, next: null };
  }

  /** Those with jobs that are to be delivered, in the order of their places. Nothing may change meanwhile. */
  *undelivered(): Generator<TxnState, void, void> {
    for (const id of this.#undelivered) yield this.#live.get(id)!;
  }

  /** Whether the event makes sense here. */
  fits(event: TxnEvent): boolean {
    if (event.kind === "txn-fence") return true;
    const before = this.get(txnIdOf(event));
    switch (event.kind) {
      case "txn-staged":
        return before === undefined;
      case "txn-prepared":
        if (before !== undefined && (before.phase !== "staged" || !isSameTxn(before, event.header))) return false;
        return locksOf(event.operations).every((key) => this.#locks.get(key) === null);
      case "txn-decided":
        if (before?.phase === "prepared") return isSameTxn(before, event.header);
        return before === undefined || before.phase === "staged";
      case "txn-delivered":
        return before !== undefined && before.outbox.length > 0;
      case "txn-settled":
        if (before?.phase !== "committed" || before.isSettled) return false;
        return event.by === null ? before.outbox.length === 0 : !before.settledBy.includes(event.by);
      default:
        return before?.phase === "staged";
    }
  }

  /** One that fits. */
  evolve(event: TxnEvent, place: number): void {
    if ("fence" in event && event.fence !== null) this.#fence = raisedFence(this.#fence, event.fence);
    if (event.kind !== "txn-fence") {
      const id = txnIdOf(event);
      const before = this.#live.get(id);
      this.#put(id, before, evolveTxn(before, event, place), event.atMs);
    }
    this.#forget(event.atMs);
  }

  /** Fixed in this turn, made as it is asked for. */
  snapshot(): Pieces {
    return pieces({
      horizon: this.#horizon,
      fence: this.#fence,
      live: this.#live.all(),
      settled: this.#settled.all(),
    });
  }

  restore(bytes: Uint8Array): void {
    // A copy of this part: what is read is views of it, and it may be a part of a whole snapshot.
    const { horizon, fence, live, settled } = readAll(new ByteReader(bytes.slice()));
    this.#live = new ById(({ header }) => header.id, live);
    this.#settled = new ById(({ id }) => id, settled);
    this.#settledBytes = settled.reduce((sum, one) => sum + one.bytes.length, 0);
    this.#horizon = horizon;
    this.#fence = fence;
    this.#sums = [...weighTxn(null)];
    this.#locks.clear();
    for (const state of live) this.#count(state, 1);
    for (const state of live) if (state.phase === "prepared") this.#locks.add(state);
    const byPlace = live.filter(({ outbox }) => outbox.length > 0).toSorted((one, other) => one.place - other.place);
    this.#undelivered = new Set(byPlace.map(({ header }) => header.id));
  }

  #put(id: string, before: TxnState | undefined, after: TxnState | null, atMs: number): void {
    if (before !== undefined) this.#count(before, -1);
    if (before?.phase === "prepared") this.#locks.remove(before);
    if (after === null || after.isSettled) this.#live.delete(id);
    else this.#live.set(after);
    if (after === null) return;
    this.#count(after, 1);
    if (after.phase === "prepared") this.#locks.add(after);
    if (after.outbox.length > 0) this.#undelivered.add(id);
    else this.#undelivered.delete(id);
    if (after.isSettled) this.#pack(after, atMs);
  }

  #pack(state: TxnState, settledAtMs: number): void {
    writeSettled(this.#packer, state, settledAtMs);
    const bytes = this.#packer.finish();
    this.#settled.set({ id: state.header.id, settledAtMs, bytes });
    this.#settledBytes += bytes.length;
  }

  /** By what the record says of the time: every node forgets the same. */
  #forget(atMs: number): void {
    for (let count = 0; count < TXNS_FORGOTTEN_PER_RECORD_MAX; count++) {
      const first = this.#settled.first;
      if (first === undefined) return;
      const isOver = this.#settled.size > TXN_SETTLED_MAX || this.#settledBytes > TXN_SETTLED_BYTES_MAX;
      // One that is made in the future, by this record's time, is kept: forgotten, it would end all ids before it.
      if (!isOver && (first.settledAtMs + TXN_SETTLED_MS > atMs || createdMs(first.id) > atMs)) return;
      this.#settled.delete(first.id);
      this.#settledBytes -= first.bytes.length;
      if (this.#horizon === null || this.#horizon < first.id) this.#horizon = first.id;
    }
  }

  #count(state: TxnState, sign: 1 | -1): void {
    const weights = weighTxn(state);
    for (let at = 0; at < weights.length; at++) this.#sums[at]! += sign * weights[at]!;
  }
}

/** Which transaction locks what. */
class Locks {
  readonly #values = new Map<string, string>();
  readonly #scopes = new Map<string, string>();

  get(key: LockKey): string | null {
    return ("value" in key ? this.#values.get(key.value) : this.#scopes.get(key.scope)) ?? null;
  }

  add({ header, operations }: TxnState): void {
    for (const key of locksOf(operations)) {
      if ("value" in key) this.#values.set(key.value, header.id);
      else this.#scopes.set(key.scope, header.id);
    }
  }

  remove({ operations }: TxnState): void {
    for (const key of locksOf(operations)) {
      if ("value" in key) this.#values.delete(key.value);
      else this.#scopes.delete(key.scope);
    }
  }

  clear(): void {
    this.#values.clear();
    this.#scopes.clear();
  }
}

export function reservedOf(sums: readonly number[]): TxnReserved {
  return { values: sums[WEIGHT.values]!, bytes: sums[WEIGHT.valueBytes]!, scopes: sums[WEIGHT.scopes]! };
}

function unpacked({ bytes }: Packed): TxnState {
  return readSettled(new ByteReader(bytes));
}

// ---- the snapshot: horizon?, fence?, those that are needed still, outcomes (packed) ---------------------------

function* pieces({ horizon, fence, live, settled }: Parts): Generator<Uint8Array, void, void> {
  const writer = new ByteWriter(TXNS_PACK_BYTES);
  writeOptional(writer, horizon, (id) => writeId(writer, id));
  writeOptional(writer, fence, (one) => writeFence(writer, one));
  writer.u32(live.length);
  for (const state of live) {
    writeLive(writer, state);
    if (writer.lengthBytes >= TXNS_PIECE_BYTES) yield writer.lend();
  }
  writer.u32(settled.length);
  for (const { bytes } of settled) {
    writer.bytes(bytes);
    if (writer.lengthBytes >= TXNS_PIECE_BYTES) yield writer.lend();
  }
  if (writer.lengthBytes > 0) yield writer.lend();
}

function readAll(reader: ByteReader): Parts {
  if (reader.remainingBytes === 0) return { horizon: null, fence: null, live: [], settled: [] };
  const horizon = readOptional(reader, () => readId(reader));
  const fence = readOptional(reader, () => readFence(reader));
  const live = readMany(reader, TXNS_OPEN_MAX + TXNS_STAGED_MAX, () => readLive(reader));
  const settled = readMany(reader, TXN_SETTLED_MAX, () => readPacked(reader));
  if (reader.remainingBytes > 0) throw wrong(`${reader.remainingBytes} bytes after the transactions`);
  inOrder(live.map(({ header }) => header.id));
  inOrder(settled.map(({ id }) => id));
  const locked = live.flatMap(({ phase, operations }) => (phase === "prepared" ? locksOf(operations) : []));
  if (new Set(locked.map((key) => JSON.stringify(key))).size < locked.length) throw wrong("one thing is locked twice");
  return { horizon, fence, live, settled };
}

function readPacked(reader: ByteReader): Packed {
  const bytes = reader.bytes(TXNS_PACK_BYTES);
  const front = new ByteReader(bytes);
  const settledAtMs = front.uint53();
  return { id: readId(front), settledAtMs, bytes };
}

function readMany<T>(reader: ByteReader, max: number, read: () => T): readonly T[] {
  const count = reader.u32();
  if (count > max) throw wrong(`${count} transactions where ${max} are allowed`);
  return Array.from({ length: count }, read);
}

function inOrder(ids: readonly string[]): void {
  if (ids.some((id, at) => at > 0 && id <= ids[at - 1]!)) throw wrong("transactions out of order");
}

function wrong(detail: string): DecodeError {
  return new DecodeError("malformed", detail);
}
