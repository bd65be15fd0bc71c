// Pauses between two attempts, for as long as a call may wait for a leader.

import { CALL_PAUSE_MS_MAX, CALL_PAUSE_MS_MIN } from "./limits.ts";

const PAUSE_FACTOR = 1.5;

/** Growing, until the time is over or the signal aborts: then false. */
export class Pauses {
  #nextMs = CALL_PAUSE_MS_MIN;
  readonly #limit: AbortSignal;

  constructor(limitMs: number) {
    this.#limit = AbortSignal.timeout(limitMs);
  }

  async take(callSignal: AbortSignal | undefined): Promise<boolean> {
    const signal = callSignal === undefined ? this.#limit : AbortSignal.any([callSignal, this.#limit]);
    if (signal.aborted) return false;
    const pauseMs = this.#nextMs;
    this.#nextMs = Math.min(CALL_PAUSE_MS_MAX, pauseMs * PAUSE_FACTOR);
    return await new Promise((resolve) => {
      const stop = (): void => {
        clearTimeout(timer);
        resolve(false);
      };
      const timer = setTimeout(() => {
        signal.removeEventListener("abort", stop);
        resolve(true);
      }, pauseMs);
      signal.addEventListener("abort", stop, { once: true });
    });
  }
}
