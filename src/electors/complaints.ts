// Says the same complaint once, and again only after a while: a database that is away for an hour must not fill the
// log, and must not be forgotten either.

import type { Clock } from "../ports/clock.ts";

const REPEAT_AFTER_MS = 30_000;

export class Complaints {
  readonly #clock: Clock;
  #last = "";
  #saidMs = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  worthSaying(text: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (text === this.#last && nowMs < this.#saidMs + REPEAT_AFTER_MS) return false;
    this.#last = text;
    this.#saidMs = nowMs;
    return true;
  }

  /** It works again: the next complaint is a new one. */
  forget(): void {
    this.#last = "";
  }
}
