// What one node holds of the history: all sealed segments that there are, and where each of them is.
//
//   writing ──▶ whole ──▶ missing ──▶ whole …       damage was found; a peer's copy was installed
//   missing ──▶ whole                               told by a snapshot, then fetched
//
// Invariants:
// - Segments are in order and without gaps, from the event after `start` on.
// - `start` only moves forward, to the end of a segment.
// - Lost segments are missing ones that every member has said it lacks. They stay lost until their bytes are here: a copy may
//   turn up, on a disk that comes back or in a new member.

import { assert } from "../kit/assert.ts";
import { BEFORE_FIRST, type ChainPoint } from "./chain.ts";
import { isSameEntry, segmentOf, type Catalog, type Manifest, type SegmentEntry } from "./manifest.ts";

export type SegmentState = "writing" | "whole" | "missing";

export class Holdings {
  #start: ChainPoint = BEFORE_FIRST;
  #checkpoint: ChainPoint | null = null;
  #segments: SegmentEntry[] = [];
  readonly #states = new Map<number, SegmentState>();
  readonly #lost = new Set<number>();
  /** Null: something has changed since they were counted. */
  #bytes: number | null = null;

  static of(catalog: Catalog): Holdings {
    const holdings = new Holdings();
    holdings.#start = catalog.start;
    holdings.#checkpoint = catalog.checkpoint;
    for (const entry of catalog.segments) holdings.add(entry, catalog.whole.has(entry.first) ? "whole" : "missing");
    return holdings;
  }

  get start(): ChainPoint {
    return this.#start;
  }

  /** The last point up to which an operator let history go; not before `start`. */
  get checkpoint(): ChainPoint | null {
    return this.#checkpoint;
  }

  get segments(): readonly SegmentEntry[] {
    return this.#segments;
  }

  /** Of the last sealed segment, or of the start. */
  get lastSequence(): number {
    return this.#segments.at(-1)?.last ?? this.#start.sequence;
  }

  get lastHash(): string | null {
    return this.#segments.at(-1)?.lastHash ?? this.#start.hash;
  }

  /** Of the files that are here. It is asked with every job that is submitted. */
  get bytes(): number {
    this.#bytes ??= this.whole().reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0);
    return this.#bytes;
  }

  stateOf(entry: SegmentEntry): SegmentState {
    return this.#states.get(entry.first) ?? "missing";
  }

  find(sequence: number): SegmentEntry | undefined {
    return segmentOf(this.#segments, sequence);
  }

  /** The hash of the event before a segment, as the segment before it or the start says. */
  hashBefore(entry: SegmentEntry): string | null {
    return entry.first === this.#start.sequence + 1 ? this.#start.hash : (this.find(entry.first - 1)?.lastHash ?? null);
  }

  /** The hash of an event that a segment ends with; null for any other. */
  hashAt(sequence: number): string | null {
    const entry = this.find(sequence);
    return entry?.last === sequence ? entry.lastHash : null;
  }

  missing(): SegmentEntry[] {
    return this.#segments.filter((entry) => this.stateOf(entry) === "missing");
  }

  lost(): SegmentEntry[] {
    return this.#lost.size === 0 ? [] : this.#segments.filter((entry) => this.isLost(entry));
  }

  isLost(entry: SegmentEntry): boolean {
    return this.#lost.has(entry.first) && this.stateOf(entry) === "missing";
  }

  /** No member has it. */
  lose(entry: SegmentEntry): void {
    const own = this.find(entry.first);
    if (own !== undefined && isSameEntry(own, entry) && this.stateOf(own) === "missing") this.#lost.add(own.first);
  }

  whole(): SegmentEntry[] {
    return this.#segments.filter((entry) => this.stateOf(entry) === "whole");
  }

  add(entry: SegmentEntry, state: SegmentState): void {
    assert(entry.first === this.lastSequence + 1, "segments come without gaps", () => `${entry.first}`);
    this.#segments.push(entry);
    this.#states.set(entry.first, state);
    this.#bytes = null;
  }

  dropLast(): void {
    const last = this.#segments.pop();
    if (last !== undefined) this.#forget(last.first);
    this.#bytes = null;
  }

  set(entry: SegmentEntry, state: SegmentState): void {
    const own = this.find(entry.first);
    if (own !== undefined && isSameEntry(own, entry)) {
      this.#states.set(entry.first, state);
      this.#lost.delete(entry.first);
    }
    this.#bytes = null;
  }

  /** Takes over what a snapshot says. Segments that are the same stay; returns those that were here and are others'. */
  adopt({ start, segments }: Manifest, checkpoint: ChainPoint | null): SegmentEntry[] {
    const old = new Map(this.#segments.map((entry) => [entry.first, entry]));
    const states = new Map(this.#states);
    this.#start = start;
    this.#checkpoint = checkpoint;
    this.#segments = [];
    this.#states.clear();
    this.#bytes = null;
    for (const entry of segments) {
      const own = old.get(entry.first);
      const isOwn = own !== undefined && isSameEntry(own, entry);
      // What was being written is written no more.
      this.add(entry, isOwn && states.get(entry.first) === "whole" ? "whole" : "missing");
      if (isOwn) old.delete(entry.first);
      else this.#lost.delete(entry.first);
    }
    for (const first of old.keys()) this.#lost.delete(first);
    return [...old.values()];
  }

  #forget(first: number): void {
    this.#states.delete(first);
    this.#lost.delete(first);
  }

  /** Releases the segments that end at or before the checkpoint, and returns them; `start` is after the last of them. */
  cut(checkpoint: ChainPoint, start: ChainPoint): SegmentEntry[] {
    assert(start.sequence <= checkpoint.sequence, "history is cut behind the checkpoint");
    assert(start.sequence >= this.#start.sequence, "history is not uncut");
    const gone = this.#segments.filter((entry) => entry.last <= start.sequence);
    this.#segments = this.#segments.filter((entry) => entry.last > start.sequence);
    assert((gone.at(-1)?.last ?? this.#start.sequence) === start.sequence, "whole segments are cut");
    for (const { first } of gone) this.#forget(first);
    this.#bytes = null;
    this.#start = start;
    this.#checkpoint = checkpoint;
    return gone;
  }

  catalog(): Catalog {
    const whole = new Set(this.whole().map(({ first }) => first));
    // What is being written is in no file yet that a restart could believe without reading it.
    const segments = this.#segments.filter((entry) => this.stateOf(entry) !== "writing");
    return { start: this.#start, checkpoint: this.#checkpoint, segments, whole };
  }
}
