// One timer for the next deadline. One that would fire early is left alone: whoever it wakes finds nothing due and arms it
// again, and so a deadline that moves back at every message costs no timer.

import type { Clock, Timer } from "../ports/clock.ts";

export class Alarm {
  readonly #clock: Clock;
  readonly #fire: (lateMs: number) => void;
  #timer: Timer | null = null;
  #atMs = Infinity;

  constructor(clock: Clock, fire: (lateMs: number) => void) {
    this.#clock = clock;
    this.#fire = fire;
  }

  arm(deadlineMs: number): void {
    if (deadlineMs >= this.#atMs) return;
    this.#timer?.cancel();
    this.#atMs = deadlineMs;
    // What was due already when it was asked for is nobody's delay.
    const dueMs = Math.max(deadlineMs, this.#clock.monotonicMs());
    this.#timer = this.#clock.setTimer(deadlineMs, () => {
      const lateMs = this.#clock.monotonicMs() - dueMs;
      this.cancel();
      this.#fire(lateMs);
    });
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#atMs = Infinity;
  }
}
