// The hash of an event: SHA-256 of its canonical bytes after a tag, so that nothing else can have the same one.

import type { Digest } from "../../ports/digest.ts";

const DOMAIN_TAG = "tenure:event:v1\n";
const TAG_BYTES = DOMAIN_TAG.length;
/** Tag and event side by side, for one call of the hash. Larger events get a buffer of their own. */
const scratch = new Uint8Array(TAG_BYTES + 64 * 1024);
scratch.set(new TextEncoder().encode(DOMAIN_TAG));

/** Of exactly these bytes, as 32 raw ones. */
export function eventDigestOf(bytes: Uint8Array, digest: Pick<Digest, "sha256">): Uint8Array {
  return digest.sha256(tagged(bytes));
}

/** Of exactly these bytes, as it is in `eventHash`. */
export function eventHashOf(bytes: Uint8Array, digest: Pick<Digest, "sha256Hex">): string {
  return digest.sha256Hex(tagged(bytes));
}

/** What is hashed, until the next call. */
function tagged(bytes: Uint8Array): Uint8Array {
  const length = TAG_BYTES + bytes.length;
  if (length <= scratch.length) {
    scratch.set(bytes, TAG_BYTES);
    return scratch.subarray(0, length);
  }
  const large = new Uint8Array(length);
  large.set(scratch.subarray(0, TAG_BYTES));
  large.set(bytes, TAG_BYTES);
  return large;
}
