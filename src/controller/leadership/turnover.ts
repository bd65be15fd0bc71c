// Leadership on its way from one node to the next: requests wait for it where they have arrived, for a moment, instead of
// being refused and sent again. Who waited goes on with whatever has become of it, once.

import { TenureError } from "../../core/kit/errors.ts";
import { TURNOVER_WAIT_MS } from "../../core/kit/timeouts.ts";
import type { Clock } from "../../ports/clock.ts";

const TURNOVER_WAITERS_MAX = 8_192;

export class Turnover {
  readonly #clock: Clock;
  readonly #isUnderWay: () => boolean;
  readonly #waiting = new Set<() => void>();

  constructor(clock: Clock, isUnderWay: () => boolean) {
    this.#clock = clock;
    this.#isUnderWay = isUnderWay;
  }

  /** For a change that is under way: resolves when it is over, or has been under way for too long. */
  async over(): Promise<void> {
    if (this.#waiting.size >= TURNOVER_WAITERS_MAX) {
      const message = `${TURNOVER_WAITERS_MAX} requests wait for a change of leaders. Nothing was done; retry in a moment.`;
      throw new TenureError("OVERLOADED", message);
    }
    await new Promise<void>((resolve) => {
      const done = (): void => {
        timer.cancel();
        this.#waiting.delete(done);
        resolve();
      };
      const timer = this.#clock.setTimer(this.#clock.monotonicMs() + TURNOVER_WAIT_MS, done);
      this.#waiting.add(done);
    });
  }

  /** To be called whenever it may be over. */
  look(): void {
    if (this.#waiting.size > 0 && !this.#isUnderWay()) this.end();
  }

  end(): void {
    for (const done of this.#waiting) done();
  }
}
