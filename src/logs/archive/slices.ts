// Long computations in slices, with the event loop free in between: a node that is busy for long misses heartbeats
// (trap 56c). A slice ends by the clock, because what a step costs depends on the events.

import { giveWay } from "../../loops/time.ts";
import type { Clock } from "../../ports/clock.ts";
import { ARCHIVE_SLICE_MS } from "../limits.ts";

export class Slices {
  readonly #clock: Clock;
  #sinceMs: number;
  #longestMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  /** Of the slices so far. */
  get longestMs(): number {
    return this.#longestMs;
  }

  /** Starts a slice: called where the loop was free until now. */
  begin(): void {
    this.#sinceMs = this.#clock.monotonicMs();
  }

  get isOver(): boolean {
    const tookMs = this.#clock.monotonicMs() - this.#sinceMs;
    this.#longestMs = Math.max(this.#longestMs, tookMs);
    return tookMs >= ARCHIVE_SLICE_MS;
  }

  async pause(): Promise<void> {
    await giveWay(this.#clock);
    this.begin();
  }

  async run<T>(steps: Generator<unknown, T>): Promise<T> {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      if (this.isOver) await this.pause();
    }
  }
}
