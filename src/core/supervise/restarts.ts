// How long a command that ended by itself waits before it is started again (`tenure run --forever`): doubling from
// the first delay to the last; a run that was long enough to be called healthy begins again with the first.

import { RESTART_MS_MAX, RESTART_MS_MIN, RUN_HEALTHY_AFTER_MS } from "./limits.ts";

export class Restarts {
  #nextMs = RESTART_MS_MIN;

  /** The delay after a run of so long. */
  delayMs(ranMs: number): number {
    if (ranMs >= RUN_HEALTHY_AFTER_MS) this.#nextMs = RESTART_MS_MIN;
    const delayMs = this.#nextMs;
    this.#nextMs = Math.min(RESTART_MS_MAX, delayMs * 2);
    return delayMs;
  }
}
