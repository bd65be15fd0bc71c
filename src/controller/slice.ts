// What one turn of the loop may use for work that has no end of its own (docs/decisions/0023-turns-by-time.md). Counting what is
// done bounds nothing: what one item costs depends on the item and on the machine. So the clock is asked after each.

import { TURN_SLICE_MS } from "../core/kit/limits.ts";
import type { Clock } from "../ports/clock.ts";

export class Slice {
  readonly #clock: Clock;
  readonly #untilMs: number;

  /** It begins now. */
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#untilMs = clock.monotonicMs() + TURN_SLICE_MS;
  }

  /** Whoever works goes on in another turn. */
  get isOver(): boolean {
    return this.#clock.monotonicMs() >= this.#untilMs;
  }
}
