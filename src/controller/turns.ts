// Work that is done a few at a time, because each costs the loop or memory: whoever comes later waits for a turn, in order, and
// where too many wait already it is refused at once.

import { TenureError } from "../core/kit/errors.ts";

export interface TurnsOptions {
  readonly atOnceMax: number;
  readonly waitingMax: number;
  /** What is done, for the refusal: "proofs are being made". */
  readonly doing: string;
}

export class Turns {
  readonly #options: TurnsOptions;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /** Throws OVERLOADED where too many wait. */
  async take<T>(work: () => Promise<T>): Promise<T> {
    const { atOnceMax, waitingMax, doing } = this.#options;
    if (this.#running < atOnceMax) this.#running++;
    else {
      if (this.#waiting.length >= waitingMax) {
        throw new TenureError("OVERLOADED", `So many ${doing} here that no more can wait. Retry, or ask another node.`);
      }
      // Whoever ends hands its turn over: nobody else can take it in between.
      await new Promise<void>((resume) => this.#waiting.push(resume));
    }
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
