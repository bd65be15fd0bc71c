// Tells a logger of an outage as people want to hear of it: when it begins, once a minute while it lasts, and when it is over.
//
//   well ──failed──▶ out, told ──failed for another minute, or with another code──▶ out, told again … ──works──▶ well, told

import type { TenureError } from "../../core/kit/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LogFields, Logger } from "../../ports/logger.ts";
import { OUTAGE_AGAIN_MS } from "../limits.ts";

export interface OutageLogOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly fields: LogFields;
  /** What is so while it fails, and when it works again. */
  readonly texts: { readonly out: string; readonly well: string };
}

interface Outage {
  readonly sinceMs: number;
  readonly toldMs: number;
  readonly code: string;
  readonly failures: number;
}

export class OutageLog {
  readonly #options: OutageLogOptions;
  #outage: Outage | null = null;

  constructor(options: OutageLogOptions) {
    this.#options = options;
  }

  failed({ code, message }: TenureError): void {
    const { clock, logger, fields, texts } = this.#options;
    const nowMs = clock.monotonicMs();
    const {
      sinceMs,
      toldMs,
      code: known,
      failures,
    } = this.#outage ?? { sinceMs: nowMs, toldMs: -Infinity, code, failures: 0 };
    const isTold = known !== code || nowMs - toldMs >= OUTAGE_AGAIN_MS;
    this.#outage = { sinceMs, toldMs: isTold ? nowMs : toldMs, code, failures: failures + 1 };
    if (!isTold) return;
    logger.warn(
      { ...fields, code, error: message, failures: failures + 1, sinceMs: Math.round(nowMs - sinceMs) },
      texts.out,
    );
  }

  works(): void {
    const outage = this.#outage;
    if (outage === null) return;
    this.#outage = null;
    const { clock, logger, fields, texts } = this.#options;
    const lastedMs = Math.round(clock.monotonicMs() - outage.sinceMs);
    logger.info({ ...fields, failures: outage.failures, lastedMs }, texts.well);
  }
}
