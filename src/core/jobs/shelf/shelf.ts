// All jobs of the book by id, in compact form: those that wait are bytes outside of the heap, because there may be millions
// of them, and a garbage collection that has to look at each holds up the whole node. Those that run or are finished are
// objects: they are few, and change often.
//
//   set(pending) ─▶ packed ──set(assigned)──▶ object ──set(pending again)──▶ packed
//
// Invariants:
// - A job keeps its slot from its first `set` to its `delete`, and its pack with it: whoever has the slot can read the id.
// - A slot that was given back while somebody holds the shelf is taken by no other job before they let go.
// - A slot whose job was changed, or has gone, since somebody began to hold the shelf bears a count that says so.
// - Two reads of a packed job may give two objects. They are equal, and never changed.

import { hashOf } from "../../kit/keyed/text-map.ts";
import { RECENT_JOBS_KEPT, RECENT_JOB_BYTES_MAX, SLOTS_FREED_MAX } from "../limits.ts";
import type { JobRecord } from "../state/records.ts";
import { IdIndex } from "./id-index.ts";
import { isFresh, JobBytes } from "./job-bytes.ts";
import { Packs } from "./packs.ts";
import { Slots } from "./slots.ts";

export class Shelf {
  readonly slots = new Slots();
  readonly #bytes = new JobBytes();
  readonly #packs = new Packs(this.slots);
  readonly #ids = new IdIndex(
    (slot) => this.slots.hashOf(slot),
    (slot, id) => this.#bytes.hasId(this.#packs.chunkOf(slot), this.#packs.startOf(slot), id),
  );
  readonly #objects = new Map<number, JobRecord>();
  readonly #recentSlots = new Int32Array(RECENT_JOBS_KEPT).fill(-1);
  readonly #recent: (JobRecord | undefined)[] = new Array<JobRecord | undefined>(RECENT_JOBS_KEPT).fill(undefined);
  /** Who was looked for last: whoever changes a job has looked for it just before. */
  #sought = { id: "", hash: hashOf(""), slot: -1 };
  #size = 0;
  #holders = 0;
  /** How often the shelf was held. */
  #holds = 0;
  /** To be freed when nobody holds the shelf any more: a few at a time, for there may be many. */
  readonly #left: number[] = [];

  get size(): number {
    return this.#size;
  }

  /** Slots that were left, and still have their bytes. */
  get left(): number {
    return this.#left.length;
  }

  /** Below 0: there is no such job. */
  slotOf(id: string): number {
    return this.#seek(id).slot;
  }

  get(id: string): JobRecord | undefined {
    const slot = this.slotOf(id);
    return slot < 0 ? undefined : this.at(slot);
  }

  at(slot: number): JobRecord {
    const object = this.#objects.get(slot);
    if (object !== undefined) return object;
    const place = slot & (RECENT_JOBS_KEPT - 1);
    if (this.#recentSlots[place] === slot) return this.#recent[place] as JobRecord;
    const { slots } = this;
    const record = this.#bytes.unpack(this.#packs.get(slot), slots.numberOf(slot), slots.priorityOf(slot));
    this.#remember(slot, record);
    return record;
  }

  /** It waits, and was never assigned. */
  isFresh(slot: number): boolean {
    return !this.#objects.has(slot) && isFresh(this.#packs.chunkOf(slot)[this.#packs.startOf(slot)] as number);
  }

  /** Also of a job that has gone, as long as the shelf is held. */
  idAt(slot: number): string {
    return this.#bytes.idOf(this.#packs.get(slot));
  }

  set(id: string, record: JobRecord): void {
    const { slot: known, hash } = this.#seek(id);
    if (known < 0) return this.#add(record, hash);
    this.slots.setChangedAt(known, this.#holds);
    if (!isPacked(record)) {
      this.#objects.set(known, record);
      this.#forget(known);
      return;
    }
    this.#objects.delete(known);
    this.#drop(known);
    this.#packs.put(known, this.#bytes.pack(record));
    this.#remember(known, record);
  }

  delete(id: string): void {
    const { slot, hash } = this.#seek(id);
    if (slot < 0) return;
    this.#sought.slot = -1;
    this.#size--;
    this.#ids.remove(slot, hash);
    this.#objects.delete(slot);
    this.#forget(slot);
    this.slots.leave(slot);
    this.slots.setChangedAt(slot, this.#holds);
    this.#left.push(slot);
    this.#freeSome();
  }

  *keys(): Generator<string, void, void> {
    // To be walked through while jobs come and go: each that is there all the time is met once.
    for (let slot = 0; slot < this.slots.end; slot++) if (this.slots.isTaken(slot)) yield this.idAt(slot);
  }

  *values(): Generator<JobRecord, void, void> {
    for (let slot = 0; slot < this.slots.end; slot++) if (this.slots.isTaken(slot)) yield this.at(slot);
  }

  /** Until `letGo` no slot is given to another job. Returns what `isSameSince` takes. */
  hold(): number {
    this.#holders++;
    return ++this.#holds;
  }

  /** As if it were changed now. */
  touch(id: string): void {
    const slot = this.slotOf(id);
    if (slot >= 0) this.slots.setChangedAt(slot, this.#holds);
  }

  /** Nothing has become of a job that was here when somebody began to hold the shelf. */
  isSameSince(held: number, slot: number): boolean {
    return this.slots.changedAt(slot) < held;
  }

  letGo(): void {
    this.#holders--;
  }

  #add(record: JobRecord, hash: number): void {
    this.#freeSome();
    const { number, priority } = record.ticket;
    const slot = this.slots.take(number, priority, hash);
    this.slots.setChangedAt(slot, this.#holds);
    this.#size++;
    this.#packs.put(slot, this.#bytes.pack(record));
    this.#ids.add(slot, hash);
    // It was looked for, and was not there.
    this.#sought.slot = slot;
    if (isPacked(record)) this.#remember(slot, record);
    else this.#objects.set(slot, record);
  }

  #seek(id: string): { readonly hash: number; readonly slot: number } {
    const sought = this.#sought;
    if (sought.id === id) return sought;
    sought.id = id;
    sought.hash = hashOf(id);
    sought.slot = this.#ids.find(id, sought.hash);
    return sought;
  }

  #freeSome(): void {
    if (this.#holders > 0) return;
    for (let freed = 0; freed < SLOTS_FREED_MAX; freed++) {
      const slot = this.#left.pop();
      if (slot === undefined) return;
      this.#drop(slot);
      this.slots.free(slot);
    }
  }

  #drop(slot: number): void {
    this.#bytes.release(this.#packs.get(slot));
    this.#packs.drop(slot);
  }

  #remember(slot: number, record: JobRecord): void {
    if (record.ticket.bytes > RECENT_JOB_BYTES_MAX) return this.#forget(slot);
    const place = slot & (RECENT_JOBS_KEPT - 1);
    this.#recentSlots[place] = slot;
    this.#recent[place] = record;
  }

  #forget(slot: number): void {
    const place = slot & (RECENT_JOBS_KEPT - 1);
    if (this.#recentSlots[place] !== slot) return;
    this.#recentSlots[place] = -1;
    this.#recent[place] = undefined;
  }
}

function isPacked({ state }: JobRecord): boolean {
  return state === "pending";
}
