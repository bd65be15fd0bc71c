// Seeded random streams. A stream is forked by name, never by order of arrival, so adding a draw in one
// place does not change what another place draws, and one seed decides a whole run.
// The generator is sfc32: 128 bits of state, passes PractRand, and is a handful of integer operations.

export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** Uniform integer in [0, below). */
  below(below: number): number;
  /** Uniform in [from, to). */
  between(from: number, to: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
  /** An independent stream that depends on this stream's seed and on `name` alone. */
  fork(name: string): Random;
}

export function seededRandom(seed: number | string): Random {
  return new Sfc32(String(seed));
}

class Sfc32 implements Random {
  readonly #path: string;
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(path: string) {
    this.#path = path;
    this.#a = hashText(path, 0x9e3779b9);
    this.#b = hashText(path, 0x243f6a88);
    this.#c = hashText(path, 0xb7e15162);
    for (let i = 0; i < 12; i++) this.next();
  }

  next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 4294967296;
  }

  below(below: number): number {
    return Math.floor(this.next() * below);
  }

  between(from: number, to: number): number {
    return from + this.next() * (to - from);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new RangeError("pick from an empty list");
    return item;
  }

  fork(name: string): Random {
    return new Sfc32(`${this.#path}/${name}`);
  }
}

/** MurmurHash3's finish over a running multiply-xor: enough to spread neighbouring seeds apart. */
function hashText(text: string, salt: number): number {
  let hash = salt;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x85ebca6b);
    hash ^= hash >>> 13;
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
