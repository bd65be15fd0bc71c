// What an elector has counted; `tenure/prometheus` prints it.

import { EFFECT_NAMES_MAX } from "../core/kit/limits.ts";
import type { HistogramSnapshot } from "../ports/elector.ts";

/** From one millisecond, a scope that was free, to a minute of waiting. */
const BUCKETS_MS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000];

class Histogram {
  readonly #counts = new Array<number>(BUCKETS_MS.length + 1).fill(0);
  #sum = 0;

  record(valueMs: number): void {
    const found = BUCKETS_MS.findIndex((le) => valueMs <= le);
    const bucket = found === -1 ? BUCKETS_MS.length : found;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum += valueMs;
  }

  snapshot(): HistogramSnapshot {
    let count = 0;
    const buckets = BUCKETS_MS.map((le, i) => {
      count += this.#counts[i] ?? 0;
      return { le, count };
    });
    return { count: count + (this.#counts[BUCKETS_MS.length] ?? 0), sum: this.#sum, buckets };
  }
}

export class Counters {
  acquired = 0;
  attempts = 0;
  readonly lost = new Map<string, number>();
  readonly blocked = new Map<string, number>();
  readonly acquireLatencyMs = new Histogram();
  readonly heartbeatUpdateMs = new Histogram();
  readonly deadlineSlackMs = new Histogram();

  countLost(reason: string): void {
    this.lost.set(reason, (this.lost.get(reason) ?? 0) + 1);
  }

  /** Effects are named by the user: a name for each payment would otherwise grow for ever. */
  countBlocked(effect: string): void {
    const name = this.blocked.has(effect) || this.blocked.size < EFFECT_NAMES_MAX ? effect : "other";
    this.blocked.set(name, (this.blocked.get(name) ?? 0) + 1);
  }
}
