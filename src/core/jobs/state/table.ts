// One kind of records by key, in the two states that a leader has: the head, which is what it has proposed, and what is
// applied, which is what is committed. They are one map, and a note for each change that is not committed yet.
//
//   propose: set ─▶ note(before) ──commit──▶ the note is dropped, the change is applied
//                               └─rollback─▶ the note is undone, newest first
//
// Invariants:
// - Records are never changed, only replaced: a note holds the one before, and a snapshot under way the one it has to write.
// - Notes are in the order of their events; each key's notes are chained, oldest first.
// - Without notes, head and applied are the same. A follower makes none.

import { Shards } from "../../kit/keyed/shards.ts";

interface Note {
  readonly table: Undoable;
  readonly key: string;
  readonly before: object | undefined;
  readonly sequence: number;
  /** Of the same key. */
  previous: Note | null;
  next: Note | null;
  /** The newest of this key; kept at the oldest only. */
  newest: Note;
}

interface Undoable {
  undo(note: Note): void;
  settle(note: Note): void;
}

/** The notes of all tables of one book. */
export class Notes {
  #queue: Note[] = [];
  #first = 0;
  /** The event that is being proposed; 0 where changes are applied at once. */
  #sequence = 0;

  get size(): number {
    return this.#queue.length - this.#first;
  }

  get sequence(): number {
    return this.#sequence;
  }

  propose(sequence: number): void {
    this.#sequence = sequence;
  }

  add(note: Note): void {
    this.#queue.push(note);
  }

  commit(upTo: number): void {
    for (; this.#first < this.#queue.length; this.#first++) {
      const note = this.#queue[this.#first] as Note;
      if (note.sequence > upTo) break;
      note.table.settle(note);
    }
    if (this.#first < this.#queue.length / 2) return;
    this.#queue = this.#queue.slice(this.#first);
    this.#first = 0;
  }

  rollback(to: number): void {
    for (let note = this.#queue.at(-1); this.size > 0 && note !== undefined; note = this.#queue.at(-1)) {
      if (note.sequence <= to) return;
      this.#queue.pop();
      note.table.undo(note);
    }
  }
}

/** What was changed since a snapshot was begun, as it was then. */
export type Kept<V> = Shards<V | undefined>;

/** Reported while the record is there, the one before or the one after: of one that goes, before it has gone. */
export type Change<V> = (before: V | undefined, after: V | undefined) => void;

/** Where the records are: a map, or what is one to its users. */
export interface Records<V> {
  readonly size: number;
  get(key: string): V | undefined;
  set(key: string, record: V): unknown;
  delete(key: string): unknown;
  /** In no order, and to be walked through while records come and go. */
  keys(): Iterable<string>;
  values(): Iterable<V>;
}

export class Table<V extends object> implements Undoable {
  readonly #records: Records<V>;
  readonly #notes: Notes;
  readonly #changed: Change<V>;
  /** The oldest note of each key that has one. */
  readonly #oldest = new Shards<Note>();
  readonly #snapshots = new Set<Kept<V>>();

  constructor(notes: Notes, changed: Change<V>, records: Records<V> = new Map<string, V>()) {
    this.#notes = notes;
    this.#changed = changed;
    this.#records = records;
  }

  /** Of the head. */
  get size(): number {
    return this.#records.size;
  }

  get(key: string): V | undefined {
    return this.#records.get(key);
  }

  /** Of the head, in no order. */
  values(): Iterable<V> {
    return this.#records.values();
  }

  set(key: string, after: V | undefined): void {
    const before = this.#records.get(key);
    if (this.#notes.sequence > 0) this.#note(key, before);
    else this.#keep(key, before);
    this.#put(key, before, after);
  }

  applied(key: string): V | undefined {
    const note = this.#oldest.get(key);
    return note === undefined ? this.#records.get(key) : (note.before as V | undefined);
  }

  /** Keys whose head may differ from what is applied. */
  noted(): Iterable<string> {
    return this.#oldest.keys();
  }

  /** Of the head, in no order. */
  keys(): Iterable<string> {
    return this.#records.keys();
  }

  *appliedKeys(): Generator<string, void, void> {
    for (const key of this.#records.keys()) if (!this.#oldest.has(key)) yield key;
    for (const { key, before } of this.#oldest.values()) if (before !== undefined) yield key;
  }

  *appliedValues(): Generator<V, void, void> {
    for (const key of this.appliedKeys()) {
      const record = this.applied(key);
      if (record !== undefined) yield record;
    }
  }

  // ---- snapshots under way -------------------------------------------------------------------------

  get snapshotsUnderWay(): number {
    return this.#snapshots.size;
  }

  beginSnapshot(): Kept<V> {
    const kept: Kept<V> = new Shards<V | undefined>();
    this.#snapshots.add(kept);
    return kept;
  }

  endSnapshot(kept: Kept<V>): void {
    this.#snapshots.delete(kept);
  }

  /** As it was applied when this snapshot was begun. */
  asBegun(kept: Kept<V>, key: string): V | undefined {
    return kept.has(key) ? kept.get(key) : this.applied(key);
  }

  #keep(key: string, before: V | undefined): void {
    if (this.#snapshots.size === 0) return;
    for (const kept of this.#snapshots) if (!kept.has(key)) kept.set(key, before);
  }

  // ---- notes ---------------------------------------------------------------------------------------

  #note(key: string, before: V | undefined): void {
    const oldest = this.#oldest.get(key);
    const previous = oldest?.newest ?? null;
    const note: Note = {
      table: this,
      key,
      before,
      sequence: this.#notes.sequence,
      previous,
      next: null,
      newest: null!,
    };
    note.newest = note;
    if (oldest === undefined) this.#oldest.set(key, note);
    else {
      (previous as Note).next = note;
      oldest.newest = note;
    }
    this.#notes.add(note);
  }

  settle({ key, before, next, newest }: Note): void {
    this.#keep(key, before as V | undefined);
    if (next === null) {
      this.#oldest.delete(key);
      return;
    }
    next.previous = null;
    next.newest = newest;
    this.#oldest.set(key, next);
  }

  undo({ key, before, previous }: Note): void {
    if (previous === null) this.#oldest.delete(key);
    else {
      previous.next = null;
      (this.#oldest.get(key) as Note).newest = previous;
    }
    this.#put(key, this.#records.get(key), before as V | undefined);
  }

  #put(key: string, before: V | undefined, after: V | undefined): void {
    if (after !== undefined) this.#records.set(key, after);
    this.#changed(before, after);
    if (after === undefined) this.#records.delete(key);
  }
}
