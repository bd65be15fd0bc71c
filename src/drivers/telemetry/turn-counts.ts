// Turns of a loop, counted by how long they took: the longest exactly, the others in buckets that are 9 % wide each.
// `TurnsOfLate` keeps those of about the last minute, in slices of ten seconds: what is older than that is forgotten with
// its slice, so a figure is of 50 to 60 seconds.

import type { LoopTurns } from "../../ports/server-stats.ts";
import { FIRST_BUCKET_MS, TURNS_SLICE_MS } from "./limits.ts";

const BUCKETS_PER_DOUBLING = 8;
const BUCKETS = 160;
const SLICES = 6;

export class TurnCounts {
  readonly #counts = new Uint32Array(BUCKETS);
  #turns = 0;
  #longestMs = 0;

  record(tookMs: number): void {
    this.#turns++;
    if (tookMs > this.#longestMs) this.#longestMs = tookMs;
    const bucket =
      tookMs <= FIRST_BUCKET_MS ? 0 : Math.ceil(Math.log2(tookMs / FIRST_BUCKET_MS) * BUCKETS_PER_DOUBLING);
    this.#counts[Math.min(BUCKETS - 1, bucket)]!++;
  }

  add(other: TurnCounts): void {
    this.#turns += other.#turns;
    this.#longestMs = Math.max(this.#longestMs, other.#longestMs);
    for (let at = 0; at < BUCKETS; at++) this.#counts[at]! += other.#counts[at]!;
  }

  clear(): void {
    this.#counts.fill(0);
    this.#turns = 0;
    this.#longestMs = 0;
  }

  figures(): LoopTurns {
    return { turns: this.#turns, longestMs: this.#longestMs, p99Ms: this.#quantile(0.99) };
  }

  /** At most 9 % above what it was. */
  #quantile(part: number): number {
    let left = Math.ceil(part * this.#turns);
    for (let at = 0; at < BUCKETS; at++) {
      left -= this.#counts[at]!;
      if (left <= 0) return Math.min(this.#longestMs, FIRST_BUCKET_MS * 2 ** (at / BUCKETS_PER_DOUBLING));
    }
    return this.#longestMs;
  }
}

export class TurnsOfLate {
  readonly #slices = Array.from({ length: SLICES }, () => new TurnCounts());
  #slice = 0;

  record(nowMs: number, tookMs: number): void {
    this.#forget(nowMs);
    this.#slices[this.#slice % SLICES]!.record(tookMs);
  }

  counts(nowMs: number): TurnCounts {
    this.#forget(nowMs);
    const all = new TurnCounts();
    for (const slice of this.#slices) all.add(slice);
    return all;
  }

  #forget(nowMs: number): void {
    const slice = Math.floor(nowMs / TURNS_SLICE_MS);
    if (slice === this.#slice) return;
    const from = Math.max(this.#slice + 1, slice - SLICES + 1);
    for (let at = from; at <= slice; at++) this.#slices[at % SLICES]!.clear();
    this.#slice = slice;
  }
}
