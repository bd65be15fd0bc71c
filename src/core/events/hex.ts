// Hashes as people and JSON see them: 64 lower-case hexadecimal digits, and no other spelling.

import { assert } from "../kit/assert.ts";

export const HASH_BYTES = 32;
const DIGITS = "0123456789abcdef";
const PAIRS: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const [CODE_0, CODE_9, CODE_A, CODE_F] = [0x30, 0x39, 0x61, 0x66];
/** The digits' own bytes, for comparing without making a text. */
const DIGIT_CODES = Uint8Array.from(DIGITS, (digit) => digit.charCodeAt(0));

export function hexOf(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at++) text += PAIRS[bytes[at] as number] as string;
  return text;
}

export function isHash(value: unknown): value is string {
  if (typeof value !== "string" || value.length !== 2 * HASH_BYTES) return false;
  for (let at = 0; at < value.length; at++) if (!isDigit(value.charCodeAt(at))) return false;
  return true;
}

function isDigit(code: number): boolean {
  return (code >= CODE_0 && code <= CODE_9) || (code >= CODE_A && code <= CODE_F);
}

export function bytesOfHash(hex: string): Uint8Array {
  assert(isHash(hex), "a hash is 64 hexadecimal digits", () => hex);
  const bytes = new Uint8Array(HASH_BYTES);
  for (let at = 0; at < HASH_BYTES; at++) {
    bytes[at] = digitOf(hex.charCodeAt(2 * at)) * 16 + digitOf(hex.charCodeAt(2 * at + 1));
  }
  return bytes;
}

function digitOf(code: number): number {
  return code <= CODE_9 ? code - CODE_0 : code - CODE_A + 10;
}

/** Whether the hash is written out in `text` from `at` on. */
export function standsAt(hash: Uint8Array, text: Uint8Array, at: number): boolean {
  for (let i = 0; i < HASH_BYTES; i++) {
    const byte = hash[i] as number;
    if (text[at + 2 * i] !== DIGIT_CODES[byte >>> 4] || text[at + 2 * i + 1] !== DIGIT_CODES[byte & 15]) return false;
  }
  return true;
}
