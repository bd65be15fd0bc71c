// One loop that waits for something to do, and others that ring. A ring while nobody waits is kept, so none is missed.

import type { Clock, Timer } from "../ports/clock.ts";

export class Bell {
  readonly #clock: Clock;
  #rung = false;
  #wake: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Forgets a ring that nobody has waited for. */
  silence(): void {
    this.#rung = false;
  }

  /** Until it rings, or for so long. */
  waitFor(ms: number): Promise<void> {
    return this.wait(this.#clock.monotonicMs() + ms);
  }

  /** Until it rings, or until `atMs` of the monotonic clock. */
  async wait(atMs: number | null): Promise<void> {
    if (!this.#rung) {
      await new Promise<void>((resolve) => {
        const timer: Timer | null = atMs === null ? null : this.#clock.setTimer(atMs, () => this.#wake?.());
        this.#wake = () => {
          timer?.cancel();
          this.#wake = null;
          resolve();
        };
      });
    }
    this.#rung = false;
  }
}
