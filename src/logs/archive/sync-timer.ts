// When the next batch of events is synced: never put off, because appends come faster than a timer fires.

import type { Clock, Timer } from "../../ports/clock.ts";

export class SyncTimer {
  readonly #clock: Clock;
  readonly #fire: () => void;
  #armed: { readonly timer: Timer; readonly atMs: number } | null = null;

  constructor(clock: Clock, fire: () => void) {
    this.#clock = clock;
    this.#fire = fire;
  }

  /** After so long at the latest. */
  within(delayMs: number): void {
    const atMs = this.#clock.monotonicMs() + delayMs;
    if (this.#armed !== null && this.#armed.atMs <= atMs) return;
    this.cancel();
    const timer = this.#clock.setTimer(atMs, () => {
      this.#armed = null;
      this.#fire();
    });
    this.#armed = { timer, atMs };
  }

  cancel(): void {
    this.#armed?.timer.cancel();
    this.#armed = null;
  }
}
