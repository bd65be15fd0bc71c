// The root of a tree as RFC 6962 defines it, by recursion over lists: slow, and nothing to get wrong.

import { hexOf } from "../../events/hex.ts";
import type { Digest } from "../../../ports/digest.ts";

export function rootOf(leaves: readonly Uint8Array[], digest: Pick<Digest, "sha256">): string {
  return hexOf(tree(leaves, digest));
}

function tree(leaves: readonly Uint8Array[], digest: Pick<Digest, "sha256">): Uint8Array {
  if (leaves.length === 0) return digest.sha256(new Uint8Array(0));
  if (leaves.length === 1) return digest.sha256(Uint8Array.of(0, ...leaves[0]!));
  let split = 1;
  while (2 * split < leaves.length) split *= 2;
  const left = tree(leaves.slice(0, split), digest);
  return digest.sha256(Uint8Array.of(1, ...left, ...tree(leaves.slice(split), digest)));
}
