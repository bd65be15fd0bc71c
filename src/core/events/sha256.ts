// SHA-256 (FIPS 180-4) where there is no other that answers at once: in a page (crypto.subtle is there only over TLS or on this machine, and answers later),
// and in the client, which runs wherever fetch does. Pure.

const BLOCK_BYTES = 64;
const LENGTH_BYTES = 8;
const FIRST_PRIMES = 64;

/** The first 32 bits of the fractional parts of the roots of the first primes. */
function fractions(root: (prime: number) => number, count: number): Uint32Array {
  const found = new Uint32Array(count);
  for (let candidate = 2, at = 0; at < count; candidate++) {
    if (!isPrime(candidate)) continue;
    const value = root(candidate);
    found[at++] = Math.floor((value - Math.floor(value)) * 2 ** 32);
  }
  return found;
}

function isPrime(candidate: number): boolean {
  for (let divisor = 2; divisor * divisor <= candidate; divisor++) if (candidate % divisor === 0) return false;
  return true;
}

const START = fractions(Math.sqrt, 8);
const ROUNDS = fractions(Math.cbrt, FIRST_PRIMES);

export function sha256(message: Uint8Array): Uint8Array {
  const state = Uint32Array.from(START);
  const padded = paddedOf(message);
  const view = new DataView(padded.buffer);
  const words = new Uint32Array(FIRST_PRIMES);
  for (let at = 0; at < padded.length; at += BLOCK_BYTES) {
    for (let word = 0; word < 16; word++) words[word] = view.getUint32(at + 4 * word);
    block(state, words);
  }
  const hash = new Uint8Array(32);
  const out = new DataView(hash.buffer);
  state.forEach((word, at) => out.setUint32(4 * at, word));
  return hash;
}

/** With a one bit, zeros, and its length in bits at the end of a block. */
function paddedOf(message: Uint8Array): Uint8Array<ArrayBuffer> {
  const blocks = Math.ceil((message.length + 1 + LENGTH_BYTES) / BLOCK_BYTES);
  const padded = new Uint8Array(blocks * BLOCK_BYTES);
  padded.set(message);
  padded[message.length] = 0x80;
  const bits = new DataView(padded.buffer, padded.length - LENGTH_BYTES);
  bits.setUint32(0, Math.floor(message.length / 2 ** 29));
  bits.setUint32(4, message.length * 8);
  return padded;
}

function block(state: Uint32Array, words: Uint32Array): void {
  for (let at = 16; at < FIRST_PRIMES; at++) {
    const early = words[at - 15]!;
    const late = words[at - 2]!;
    const low = turned(early, 7) ^ turned(early, 18) ^ (early >>> 3);
    const high = turned(late, 17) ^ turned(late, 19) ^ (late >>> 10);
    words[at] = words[at - 16]! + low + words[at - 7]! + high;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
  for (let at = 0; at < FIRST_PRIMES; at++) {
    const one = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
    const chosen = (e & f) ^ (~e & g);
    const first = (h + one + chosen + ROUNDS[at]! + words[at]!) | 0;
    const other = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + other + majority) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, at) => (state[at] = state[at]! + word));
}

function turned(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}
