// The rolling hash of everything a run did: two 32-bit lanes, mixed in plain integer arithmetic because it
// runs on every event. It is a fingerprint for comparing two runs, not a cryptographic hash.
// Invariant: equal sequences of calls give equal digests; a different value, order or kind of call does not.

/** A leak shows in lengths and ends at the latest one message later, so long arrays are sampled. */
const SAMPLE_BYTES = 256;

const float64 = new Float64Array(1);
const words = new Uint32Array(float64.buffer);

export class TraceHash {
  #a = 0x9e3779b9 | 0;
  #b = 0x243f6a88 | 0;

  /** Small integers take one round, everything else the 64 bits of the double. */
  number(value: number): void {
    if ((value | 0) === value) {
      this.#mix(value | 0);
      return;
    }
    float64[0] = value;
    this.#mix(words[0] as number);
    this.#mix(words[1] as number);
  }

  text(value: string): void {
    this.#mix(value.length ^ 0x5bd1e995);
    for (let i = 0; i < value.length; i++) this.#mix(value.charCodeAt(i));
  }

  bytes(value: Uint8Array): void {
    const length = value.length;
    this.#mix(length ^ 0x1b873593);
    if (length <= 2 * SAMPLE_BYTES) {
      this.#range(value, 0, length);
    } else {
      this.#range(value, 0, SAMPLE_BYTES);
      this.#range(value, length - SAMPLE_BYTES, length);
    }
  }

  digest(): string {
    return hex(this.#a) + hex(this.#b);
  }

  #range(value: Uint8Array, from: number, to: number): void {
    let i = from;
    for (; i + 4 <= to; i += 4) {
      this.#mix(
        (value[i] as number) |
          ((value[i + 1] as number) << 8) |
          ((value[i + 2] as number) << 16) |
          ((value[i + 3] as number) << 24),
      );
    }
    for (; i < to; i++) this.#mix(value[i] as number);
  }

  #mix(value: number): void {
    let a = Math.imul(this.#a ^ value, 0x85ebca6b);
    a ^= a >>> 13;
    const b = Math.imul((this.#b + value) ^ a, 0xc2b2ae35);
    this.#a = a;
    this.#b = (((b << 15) | (b >>> 17)) + a) | 0;
  }
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, "0");
}
