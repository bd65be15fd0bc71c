// Durations counted in buckets, as Prometheus wants them.

import type { HistogramSnapshot } from "../../ports/elector.ts";

/** From one millisecond, a scope that was free, to a minute of waiting. */
const BUCKETS_MS: readonly number[] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000];

export class Histogram {
  readonly #boundsMs: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  constructor(boundsMs: readonly number[] = BUCKETS_MS) {
    this.#boundsMs = boundsMs;
    this.#counts = new Array<number>(boundsMs.length + 1).fill(0);
  }

  record(valueMs: number): void {
    const found = this.#boundsMs.findIndex((le) => valueMs <= le);
    const bucket = found === -1 ? this.#boundsMs.length : found;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum += valueMs;
  }

  snapshot(): HistogramSnapshot {
    let count = 0;
    const buckets = this.#boundsMs.map((le, i) => {
      count += this.#counts[i] ?? 0;
      return { le, count };
    });
    return { count: count + (this.#counts[this.#boundsMs.length] ?? 0), sum: this.#sum, buckets };
  }
}
