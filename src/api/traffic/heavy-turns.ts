// Answers that take milliseconds of this process to make, one or two at a time: whoever asks for a thousand at once waits for
// its turn, and everybody else's requests are answered in between. Between two turns the loop goes round once. Who has
// waited for its turn for too long is OVERLOADED.

import type { Clock } from "../../ports/clock.ts";
import { HEAVY_AT_ONCE_MAX } from "../limits.ts";
import { Refusal } from "../refusal.ts";

export class HeavyTurns {
  readonly #clock: Clock;
  readonly #waitMs: number;
  readonly #what: string;
  readonly #waiting = new Set<() => void>();
  #underWay = 0;

  /** `what` waits, for the refusal: "page of events". */
  constructor(clock: Clock, waitMs: number, what: string) {
    this.#clock = clock;
    this.#waitMs = waitMs;
    this.#what = what;
  }

  async run<T>(make: () => Promise<T>): Promise<T> {
    if (this.#underWay < HEAVY_AT_ONCE_MAX) this.#underWay++;
    else await this.#turn();
    try {
      return await make();
    } finally {
      const [next] = this.#waiting;
      if (next === undefined) this.#underWay--;
      else {
        this.#waiting.delete(next);
        this.#clock.setTimer(this.#clock.monotonicMs(), next);
      }
    }
  }

  #turn(): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        timer.cancel();
        resolve();
      };
      const timer = this.#clock.setTimer(this.#clock.monotonicMs() + this.#waitMs, () => {
        // Else its turn has come in this very moment.
        if (!this.#waiting.delete(begin)) return;
        const text = `This ${this.#what} has waited for its turn for ${this.#waitMs} ms. Retry later, or ask another node.`;
        reject(new Refusal("OVERLOADED", text));
      });
      this.#waiting.add(begin);
    });
  }
}
