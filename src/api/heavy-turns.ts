// Answers that take milliseconds of this process to make, one or two at a time: whoever asks for a thousand at once waits for
// its turn, and everybody else's requests are answered in between. Between two turns the loop goes round once.

import type { Clock } from "../ports/clock.ts";

/** Two: while one waits for the disk the other is made. */
const AT_ONCE_MAX = 2;

export class HeavyTurns {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  #underWay = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async run<T>(make: () => Promise<T>): Promise<T> {
    if (this.#underWay < AT_ONCE_MAX) this.#underWay++;
    else await new Promise<void>((begin) => this.#waiting.push(begin));
    try {
      return await make();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#underWay--;
      else this.#clock.setTimer(this.#clock.monotonicMs(), next);
    }
  }
}
