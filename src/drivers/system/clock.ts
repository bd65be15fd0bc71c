// The machine's clocks and timers, bound when this file is loaded, so that a user's fake timers can't freeze a gate
// open. Plain globals and no imports: the library's root runs wherever JavaScript does.
//
// `monotonicMs` stands still while a Linux machine sleeps. Leases take the smaller of both clocks (core/trust), so wall
// time covers for it there.

import type { Clock, Timer } from "../../ports/clock.ts";
import { TIMEOUT_MS_MAX } from "./limits.ts";

const monotonicNow = performance.now.bind(performance);
const wallNow = Date.now;
const startTimer = setTimeout;
const stopTimer = clearTimeout;

export const systemClock: Clock = {
  monotonicMs: () => monotonicNow(),
  wallMs: () => wallNow(),
  setTimer: (atMs, fire) => new SystemTimer(atMs, fire),
};

class SystemTimer implements Timer {
  readonly #atMs: number;
  readonly #fire: () => void;
  #handle: ReturnType<typeof setTimeout> | undefined;

  constructor(atMs: number, fire: () => void) {
    this.#atMs = atMs;
    this.#fire = fire;
    this.#arm();
  }

  cancel(): void {
    stopTimer(this.#handle);
  }

  #arm(): void {
    const leftMs = this.#atMs - monotonicNow();
    // Rounded up: a timer that fires a fraction of a millisecond early would be armed again for nothing.
    const waitMs = Math.min(TIMEOUT_MS_MAX, Math.max(0, Math.ceil(leftMs)));
    this.#handle = startTimer(() => {
      if (monotonicNow() < this.#atMs) this.#arm();
      else this.#fire();
    }, waitMs);
  }
}
