// Base64 (RFC 4648, section 4, padded) as notes and rings spell bytes. One value has one text: whatever is not the text that
// `toBase64` makes, letter by letter, is refused.

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/** Of a letter, by its code; of anything else above 63. */
const WORTH = new Uint8Array(128).fill(0xff);
for (let at = 0; at < LETTERS.length; at++) WORTH[LETTERS.charCodeAt(at)] = at;

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 3) {
    const have = Math.min(3, bytes.length - at);
    const group = ((bytes[at] as number) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    text += letter(group >>> 18) + letter(group >>> 12);
    text += (have > 1 ? letter(group >>> 6) : "=") + (have > 2 ? letter(group) : "=");
  }
  return text;
}

/** Null for what is not the text of so many bytes. */
export function fromBase64(text: string, lengthBytes: number): Uint8Array | null {
  const bytes = bytesOfBase64(text);
  return bytes?.length === lengthBytes ? bytes : null;
}

/** Null for what is not the text of any bytes. The text's length is the caller's business to bound. */
export function bytesOfBase64(text: string): Uint8Array | null {
  if (text.length % 4 !== 0) return null;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const lengthBytes = (text.length / 4) * 3 - padding;
  const bytes = new Uint8Array(lengthBytes);
  for (let at = 0, into = 0; at < text.length; at += 4, into += 3) {
    const group =
      (worth(text, at) << 18) | (worth(text, at + 1) << 12) | (worth(text, at + 2) << 6) | worth(text, at + 3);
    // Past the end of the array nothing is written.
    bytes[into] = group >>> 16;
    bytes[into + 1] = group >>> 8;
    bytes[into + 2] = group;
  }
  // Other letters, missing padding and bits that are left over have no such text.
  return toBase64(bytes) === text ? bytes : null;
}

function letter(bits: number): string {
  return LETTERS[bits & 63] as string;
}

function worth(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code < WORTH.length ? (WORTH[code] as number) & 63 : 0;
}
