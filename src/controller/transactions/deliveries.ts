// Gives jobs of committed transactions to the jobs' log, in the order of their places: one batch after the other, and nothing of the next one before the
// last one is there. The jobs' book knows the last that it was given, so that what is repeated is there once.

import type { Random } from "../../core/kit/random.ts";
import { pause, retryInMs } from "../../loops/time.ts";
import type { Clock } from "../../ports/clock.ts";
import { TXN_RETRY_MS_MAX, TXN_RETRY_MS_MIN } from "./limits.ts";

export interface DeliveriesOptions {
  readonly clock: Clock;
  readonly random: Random;
  /**
   * Delivers the first ones. `none`: there are none. Rejects where it came to nothing, or perhaps to something; then `few` of them are tried: there may be
   * room in the jobs' log for some, and not for all.
   */
  deliver(few: boolean): Promise<"some" | "none">;
}

export class Deliveries {
  readonly #options: DeliveriesOptions;
  readonly #over = new AbortController();
  #isRunning = false;
  #isAgain = false;

  constructor(options: DeliveriesOptions) {
    this.#options = options;
  }

  /** There may be some. */
  wake(): void {
    if (this.#isRunning) this.#isAgain = true;
    else void this.#run();
  }

  end(): void {
    this.#over.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#over;
    this.#isRunning = true;
    let failures = 0;
    while (!signal.aborted) {
      this.#isAgain = false;
      try {
        if ((await this.#options.deliver(failures > 0)) === "none" && !this.#isAgain) break;
        failures = 0;
      } catch {
        // Whatever it was: what is in the jobs' log already is given again, and taken once.
        await this.#pause(failures++);
      }
    }
    this.#isRunning = false;
  }

  async #pause(failures: number): Promise<void> {
    const { clock, random } = this.#options;
    await pause(clock, retryInMs(random, failures, TXN_RETRY_MS_MIN, TXN_RETRY_MS_MAX), this.#over.signal);
  }
}
