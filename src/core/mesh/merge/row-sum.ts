// The projection hash: the sum, modulo 2^256, of the SHA-256 of every row's canonical text. It is the same in any order, and a row that
// changes is taken out and put in again in the same time however many rows there are.
//
// What it is good for: two honest replays of the same events, or two sites with the same events, whose rows differ in anything have equal
// sums with a probability of about 2^-256. A sum, and not an exclusive or, so that a row that is counted twice shows.
// What it is no proof of: somebody who chooses the rows can look for sets with equal sums (generalised birthday). Nothing is decided
// from it; what proves a history is the signed Merkle tree.

import type { Digest } from "../../../ports/digest.ts";

const WORDS = 8;
const DOMAIN = "tenure:mesh-row:v1\n";

export class RowSum {
  /** Lowest word first. */
  readonly #words = new Uint32Array(WORDS);

  /** `hex`: as `hex()` gave it. */
  static of(hex: string): RowSum {
    const sum = new RowSum();
    for (let at = 0; at < WORDS; at++) sum.#words[at] = wordAt(hex, at);
    return sum;
  }

  add(hash: string): void {
    let carry = 0;
    for (let at = 0; at < WORDS; at++) {
      const next = (this.#words[at] as number) + wordAt(hash, at) + carry;
      this.#words[at] = next;
      carry = next > 0xffffffff ? 1 : 0;
    }
  }

  subtract(hash: string): void {
    let borrow = 0;
    for (let at = 0; at < WORDS; at++) {
      const next = (this.#words[at] as number) - wordAt(hash, at) - borrow;
      this.#words[at] = next;
      borrow = next < 0 ? 1 : 0;
    }
  }

  hex(): string {
    let digits = "";
    for (const word of this.#words) digits = word.toString(16).padStart(8, "0") + digits;
    return digits;
  }
}

/** `kind` and `text`: of the row, whose text says its id and its line. */
export function rowHash(kind: string, text: string, digest: Pick<Digest, "sha256Hex">): string {
  return digest.sha256Hex(`${DOMAIN}${kind}\n${text}`);
}

/** The digits of the word with this number, lowest first. */
function wordAt(hex: string, at: number): number {
  return Number.parseInt(hex.slice(8 * (WORDS - 1 - at), 8 * (WORDS - at)), 16);
}
