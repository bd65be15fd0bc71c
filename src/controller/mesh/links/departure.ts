// How the links of a site end that leaves its mesh: links that exist stay until the other end has the site's word, or for LEAVE_WAIT_MS; then all of
// them end, and nobody is dialled. A leader that begins after its site has left dials nobody.
//
//            left                    every linked site has the word, or time is up
//   dialling ────▶ saying it ───────────────────────────────────────────────────────▶ away ── joined ──▶ dialling
//                    └─ joined ──▶ dialling: no link has ended

import type { Clock } from "../../../ports/clock.ts";
import { LEAVE_WAIT_MS } from "../limits.ts";

export interface DepartureOptions {
  readonly clock: Pick<Clock, "monotonicMs">;
  /** The place in the own line where this site has left; null: it takes part. */
  readonly leftAt: () => number | null;
  /** Linked sites that have so much of the own line; `isAll`: no other site is linked. */
  readonly heardBy: (sequence: number) => { readonly heard: readonly string[]; readonly isAll: boolean };
  /** Dials every parent, until the signal aborts. */
  readonly dial: (signal: AbortSignal) => void;
  readonly endAll: () => void;
}

export class Departure {
  readonly #options: DepartureOptions;
  #dialling: AbortController | null = null;
  #sinceMs: number | null = null;
  #isAway = false;
  #away = Promise.withResolvers<readonly string[]>();

  constructor(options: DepartureOptions) {
    this.#options = options;
  }

  /** Resolves when no link is left, with the sites that have the word; or when this leadership ends or the site joins again, with none. */
  get done(): Promise<readonly string[]> {
    return this.#away.promise;
  }

  /** Called after each change, and every second. */
  review(): void {
    const { leftAt, clock, heardBy, endAll } = this.#options;
    const sequence = leftAt();
    if (sequence === null) return this.#takePart();
    if (this.#isAway) return;
    this.#sinceMs ??= clock.monotonicMs();
    const { heard, isAll } = heardBy(sequence);
    if (!isAll && clock.monotonicMs() - this.#sinceMs < LEAVE_WAIT_MS) return;
    this.#isAway = true;
    this.#dialling?.abort();
    this.#dialling = null;
    endAll();
    this.#away.resolve(heard);
  }

  end(): void {
    this.#dialling?.abort();
    this.#away.resolve([]);
  }

  #takePart(): void {
    if (this.#sinceMs !== null) {
      // Whoever waits for the end of a departure that was taken back.
      this.#away.resolve([]);
      this.#away = Promise.withResolvers();
    }
    this.#isAway = false;
    this.#sinceMs = null;
    if (this.#dialling !== null) return;
    this.#dialling = new AbortController();
    this.#options.dial(this.#dialling.signal);
  }
}
