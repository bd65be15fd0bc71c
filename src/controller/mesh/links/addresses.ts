// The addresses of a parent, and which of them is called next: in turn, but none before the time that it has named (Retry-After), for as long as
// another one may be called.

import type { Clock } from "../../../ports/clock.ts";
import { RETRY_AFTER_MS_MAX } from "../limits.ts";

export class Addresses {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #configured: string;
  #urls: readonly string[];
  /** Since the parent was reached last. */
  #failures = 0;
  readonly #notBeforeMs = new Map<string, number>();

  constructor(configured: string, clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
    this.#configured = configured;
    this.#urls = [configured];
  }

  /** How often all of them were tried: one may be down, or must not be called, while the next one answers. */
  get rounds(): number {
    return Math.floor(this.#failures / this.#urls.length);
  }

  next(): { readonly url: string; readonly waitMs: number } {
    const inTurn = this.#urls.map((_, at) => this.#urls[(this.#failures + at) % this.#urls.length]!);
    const url = inTurn.reduce((best, one) => (this.#waitMs(one) < this.#waitMs(best) ? one : best));
    return { url, waitMs: this.#waitMs(url) };
  }

  reached(): void {
    this.#failures = 0;
  }

  failed(): void {
    this.#failures++;
  }

  /** Where the parent's nodes are; what was configured is always among them. */
  learn(urls: readonly string[]): void {
    if (urls.length > 0) this.#urls = [...new Set([...urls, this.#configured])];
    for (const url of this.#notBeforeMs.keys()) if (this.#waitMs(url) === 0) this.#notBeforeMs.delete(url);
  }

  /** It was asked for by whoever is at this address. */
  wait(url: string, ms: number): void {
    this.#notBeforeMs.set(url, this.#clock.monotonicMs() + Math.min(ms, RETRY_AFTER_MS_MAX));
  }

  #waitMs(url: string): number {
    return Math.max(0, (this.#notBeforeMs.get(url) ?? 0) - this.#clock.monotonicMs());
  }
}
