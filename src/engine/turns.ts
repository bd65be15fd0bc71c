// When the engine acts next: at the end of this turn of the event loop, so that everything that arrives in it shares one
// Ready; or in a later one, when much is left to apply and messages and timers must come in between.

import type { Clock, Timer } from "../ports/clock.ts";

export class Turns {
  readonly #clock: Clock;
  readonly #act: () => void;
  #isScheduled = false;
  #later: Timer | null = null;

  constructor(clock: Clock, act: () => void) {
    this.#clock = clock;
    this.#act = act;
  }

  soon(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    void Promise.resolve().then(() => this.#begin());
  }

  later(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#later = this.#clock.setTimer(this.#clock.monotonicMs(), () => this.#begin());
  }

  /** No later one comes; what is due in this turn must look for itself. */
  cancel(): void {
    this.#later?.cancel();
  }

  #begin(): void {
    this.#isScheduled = false;
    this.#act();
  }
}
