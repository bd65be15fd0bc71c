// Says a complaint once, and again only after a while: a database that is away for an hour must not fill the log, and
// must not be forgotten either. Complaints about different things do not make each other new.

import type { Clock } from "../ports/clock.ts";
import { ELECTOR_COMPLAINT_AGAIN_MS } from "./limits.ts";

export class Complaints {
  readonly #clock: Clock;
  /** By what could not be done; there are three or four of these. */
  readonly #said = new Map<string, { readonly why: string; readonly atMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  worthSaying(what: string, why: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    const last = this.#said.get(what);
    if (last?.why === why && nowMs < last.atMs + ELECTOR_COMPLAINT_AGAIN_MS) return false;
    this.#said.set(what, { why, atMs: nowMs });
    return true;
  }

  /** It works again: the next complaint is a new one. */
  forget(): void {
    this.#said.clear();
  }
}
