// Hashes as people and JSON see them: 64 lower-case hexadecimal digits, and no other spelling.

import { assert } from "../kit/assert.ts";

export const HASH_BYTES = 32;
const DIGITS = "0123456789abcdef";
const PAIRS: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
/** The digits' own bytes, for comparing without making a text. */
const DIGIT_CODES = Uint8Array.from(DIGITS, (digit) => digit.charCodeAt(0));
/** What a digit is worth, by its code; of anything else above 15. */
const WORTH = new Uint8Array(128).fill(0xff);
DIGIT_CODES.forEach((code, worth) => (WORTH[code] = worth));

export function hexOf(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at++) text += PAIRS[bytes[at] as number] as string;
  return text;
}

export function isHash(value: unknown): value is string {
  if (typeof value !== "string" || value.length !== 2 * HASH_BYTES) return false;
  let all = 0;
  for (let at = 0; at < value.length; at++) all |= worthOf(value.charCodeAt(at));
  return all <= 15;
}

export function bytesOfHash(hex: string): Uint8Array {
  const bytes = new Uint8Array(HASH_BYTES);
  let all = 0;
  for (let at = 0; at < HASH_BYTES; at++) {
    const [high, low] = [worthOf(hex.charCodeAt(2 * at)), worthOf(hex.charCodeAt(2 * at + 1))];
    all |= high | low;
    bytes[at] = 16 * high + low;
  }
  assert(all <= 15 && hex.length === 2 * HASH_BYTES, "a hash is 64 hexadecimal digits", () => hex);
  return bytes;
}

function worthOf(code: number): number {
  return code < WORTH.length ? (WORTH[code] as number) : 0xff;
}

/** Whether the hash is written out in `text` from `at` on. */
export function standsAt(hash: Uint8Array, text: Uint8Array, at: number): boolean {
  for (let i = 0; i < HASH_BYTES; i++) {
    const byte = hash[i] as number;
    if (text[at + 2 * i] !== DIGIT_CODES[byte >>> 4] || text[at + 2 * i + 1] !== DIGIT_CODES[byte & 15]) return false;
  }
  return true;
}
