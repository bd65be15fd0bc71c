// Whole proofs from leaves in memory, for tests. The server makes the same proofs from its archive: controller/event-proofs.ts.

import { consistencyRanges, inclusionRanges, type LeafRange } from "./merkle-proof.ts";
import { type Hash, type Hasher, MerkleFrontier } from "./merkle.ts";

export function inclusionProof(leaves: readonly Hash[], index: number, size: number, digest: Hasher): readonly Hash[] {
  return inclusionRanges(index, size).map((range) => rangeHash(leaves, range, digest));
}

export function consistencyProof(
  leaves: readonly Hash[],
  first: number,
  second: number,
  digest: Hasher,
): readonly Hash[] {
  return consistencyRanges(first, second).map((range) => rangeHash(leaves, range, digest));
}

function rangeHash(leaves: readonly Hash[], { from, to }: LeafRange, digest: Hasher): Hash {
  const frontier = new MerkleFrontier(digest);
  for (const hash of leaves.slice(from, to)) frontier.appendLeafHash(hash);
  return frontier.root();
}
