// How many streams of events and logs one node keeps open: each holds a connection, a page and a cursor for as long as its
// reader likes. Whoever opens one takes a place, and gives it back once, however the stream ends.

import { Refusal } from "../refusal.ts";

export class StreamPlaces {
  readonly #max: number;
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Throws OVERLOADED. Call what it returns when the stream is over; a second call does nothing. `freed` is called with the first. */
  take(freed: () => void = () => undefined): () => void {
    if (this.#taken >= this.#max) {
      throw new Refusal("OVERLOADED", `${this.#max} streams of events and logs are open here. Ask another node.`);
    }
    this.#taken++;
    let isFree = false;
    return () => {
      if (isFree) return;
      isFree = true;
      this.#taken--;
      freed();
    };
  }
}
