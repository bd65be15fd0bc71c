// The time of a leader's events, and of the durations that the log knows of: backoffs, retentions, idempotency keys.
//
// It begins where the last committed event left it, follows the wall clock forwards, and goes on with the monotonic clock where
// the wall clock is behind or is set back. So a leader whose clock is behind neither holds back what the one before it has
// delayed, nor lets it go at once; and what it delays itself is counted from the same time.
//
// Invariants: it never goes back, never stands still while time passes, and is never below the last committed event's.

import type { Clock } from "../ports/clock.ts";

export class EventTime {
  readonly #clock: Clock;
  #timeMs: number;
  #monotonicMs: number;

  /** `sinceMs`: of the last committed event. */
  constructor(clock: Clock, sinceMs: number) {
    this.#clock = clock;
    // Whole: an event gets its fractions when it is sealed.
    this.#timeMs = Math.max(1, Math.ceil(sinceMs));
    this.#monotonicMs = clock.monotonicMs();
  }

  /** In whole milliseconds. */
  nowMs(): number {
    const monotonicMs = this.#clock.monotonicMs();
    const passedMs = this.#timeMs + Math.max(0, monotonicMs - this.#monotonicMs);
    this.#monotonicMs = monotonicMs;
    this.#timeMs = Math.max(passedMs, this.#clock.wallMs());
    return Math.floor(this.#timeMs);
  }
}
