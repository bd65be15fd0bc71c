// How long a command that ended by itself waits before it is started again (`tenure run --forever`): doubling from
// the first delay to the last; a run that was long enough to be called healthy begins again with the first.

const DELAY_FIRST_MS = 100;
const DELAY_LAST_MS = 5_000;
const HEALTHY_AFTER_MS = 10_000;

export class Restarts {
  #nextMs = DELAY_FIRST_MS;

  /** The delay after a run of so long. */
  delayMs(ranMs: number): number {
    if (ranMs >= HEALTHY_AFTER_MS) this.#nextMs = DELAY_FIRST_MS;
    const delayMs = this.#nextMs;
    this.#nextMs = Math.min(DELAY_LAST_MS, delayMs * 2);
    return delayMs;
  }
}
