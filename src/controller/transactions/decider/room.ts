// How many transactions one node runs, or forwards, at one moment, and of how many bytes: their operations are held in memory until they are
// decided, and no island is asked to prepare them any more.

import { overloaded, tooManyBytes } from "./refusals.ts";
import { TXN_RUNNING_BYTES_MAX, TXN_RUNNING_MAX } from "./limits.ts";

export class Room {
  #count = 0;
  #bytes = 0;

  /** Throws OVERLOADED. What it returns gives the place back, once. */
  take(bytes: number): () => void {
    if (this.#count >= TXN_RUNNING_MAX) throw overloaded(this.#count);
    if (this.#bytes + bytes > TXN_RUNNING_BYTES_MAX) throw tooManyBytes(this.#bytes, bytes);
    this.#count++;
    this.#bytes += bytes;
    return () => {
      this.#count--;
      this.#bytes -= bytes;
    };
  }
}
