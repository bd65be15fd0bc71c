// What goes wrong between an agent and its servers, for the log: a server that is gone is asked again every few moments, and
// one line for each would hide all others. The same again is counted, and told after a while.

import { TenureError } from "../core/kit/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { COMPLAINT_AGAIN_MS } from "./limits.ts";

export class Complaints {
  readonly #logger: Logger;
  readonly #clock: Clock;
  #last = "";
  #toldMs = 0;
  #untold = 0;

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  tell(error: Error): void {
    const code = TenureError.is(error) ? error.code : error.name;
    const nowMs = this.#clock.monotonicMs();
    if (code === this.#last && nowMs - this.#toldMs < COMPLAINT_AGAIN_MS) {
      this.#untold++;
      return;
    }
    this.#logger.warn({ event: "connection", code, untold: this.#untold }, error.message);
    this.#last = code;
    this.#toldMs = nowMs;
    this.#untold = 0;
  }
}
