// Withheld events: their text never leaves their site. They travel as `{hash}`, which is all that the chain and the tree need, and the
// site signs which positions of a page they have, so that a relay can't hide another event as one of them.
//
// Invariant: it is decided by the type alone, never by size or content.

import { hexOf } from "../../events/hex.ts";
import type { Digest } from "../../../ports/digest.ts";

const START = new Uint8Array(32);
const U32_SPAN = 2 ** 32;
const SEQUENCE_BYTES = 8;

export function isWithheld(eventType: string): boolean {
  return eventType === "build:log" || eventType.startsWith("key:");
}

/** Over the withheld sequences of a page, in their order: w = SHA-256(w ‖ sequence as 8 bytes, big endian), from 32 zero bytes on. */
export function withheldHash(sequences: Iterable<number>, digest: Pick<Digest, "sha256">): string {
  const input = new Uint8Array(START.length + SEQUENCE_BYTES);
  const view = new DataView(input.buffer);
  let hash: Uint8Array = START;
  for (const sequence of sequences) {
    input.set(hash);
    view.setUint32(START.length, Math.floor(sequence / U32_SPAN));
    view.setUint32(START.length + 4, sequence % U32_SPAN);
    hash = digest.sha256(input);
  }
  return hexOf(hash);
}
