// Large requests, one in each turn of the loop: to decide and write a thousand jobs takes some thirty milliseconds, and several
// of them that arrive together would keep the node from its heartbeats for as long as all of them take.

import type { Clock } from "../ports/clock.ts";

export class Pace {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  /** Somebody was let through in this turn. */
  #isTaken = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves in a turn in which nobody else is let through, in the order in which they came. */
  async turn(): Promise<void> {
    if (this.#isTaken) return new Promise((resume) => void this.#waiting.push(resume));
    this.#isTaken = true;
    this.#next();
  }

  #next(): void {
    this.#clock.setTimer(this.#clock.monotonicMs(), () => {
      const resume = this.#waiting.shift();
      if (resume === undefined) {
        this.#isTaken = false;
        return;
      }
      resume();
      this.#next();
    });
  }
}
