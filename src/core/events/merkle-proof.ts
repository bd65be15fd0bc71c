// Proofs over the tree (RFC 6962, section 2.1): that an event is in it, and that a later tree begins with an earlier one.
// A proof is a list of the hashes of subtrees, the lowest first; each subtree is a range of leaves, so making a proof is
// naming the ranges here and hashing each (controller/event-proofs.ts). Checking one needs no leaves and no trust in who made it.

import { assert } from "../kit/assert.ts";
import { HASH_BYTES } from "./hex.ts";
import { type Hash, type Hasher, nodeHash } from "./merkle.ts";

/** Places of leaves: from `from` up to and without `to`. */
export interface LeafRange {
  readonly from: number;
  readonly to: number;
}

/** The ranges of the proof that the leaf `index` is in the tree of the first `size` leaves. */
export function inclusionRanges(index: number, size: number): readonly LeafRange[] {
  assert(index >= 0 && index < size, "a proven leaf is in the tree", () => `${index} of ${size}`);
  const ranges: LeafRange[] = [];
  let from = 0;
  let to = size;
  while (to - from > 1) {
    const middle = from + splitOf(to - from);
    if (index < middle) {
      ranges.push({ from: middle, to });
      to = middle;
    } else {
      ranges.push({ from, to: middle });
      from = middle;
    }
  }
  return ranges.toReversed();
}

/** The ranges of the proof that the tree of `second` leaves begins with that of `first`. */
export function consistencyRanges(first: number, second: number): readonly LeafRange[] {
  assert(first >= 0 && first <= second, "the later tree is not smaller", () => `${first} of ${second}`);
  if (first === 0 || first === second) return [];
  const ranges: LeafRange[] = [];
  let from = 0;
  let to = second;
  while (to !== first) {
    const middle = from + splitOf(to - from);
    if (first <= middle) {
      ranges.push({ from: middle, to });
      to = middle;
    } else {
      ranges.push({ from, to: middle });
      from = middle;
    }
  }
  // Where the earlier tree is a whole subtree of the later one, whoever checks has its hash: it is the earlier root.
  if (from > 0) ranges.push({ from, to });
  return ranges.toReversed();
}

export interface InclusionClaim {
  readonly leafHash: Hash;
  readonly index: number;
  readonly size: number;
  readonly root: Hash;
  readonly proof: readonly Hash[];
}

/** False for everything that proves nothing, whatever it holds. */
export function verifyInclusion({ leafHash, index, size, root, proof }: InclusionClaim, digest: Hasher): boolean {
  if (!isCount(index) || !isCount(size) || index >= size || !areHashes([leafHash, root, ...proof])) return false;
  let place = index;
  let last = size - 1;
  let hash = leafHash;
  for (const sibling of proof) {
    if (last === 0) return false;
    if (place % 2 === 1 || place === last) {
      hash = nodeHash(sibling, hash, digest);
      // An odd node at the edge goes up alone, past every level at which it has no neighbour.
      while (place % 2 === 0 && place !== 0) [place, last] = [half(place), half(last)];
    } else hash = nodeHash(hash, sibling, digest);
    [place, last] = [half(place), half(last)];
  }
  return last === 0 && areSame(hash, root);
}

export interface ConsistencyClaim {
  readonly first: number;
  readonly second: number;
  readonly firstRoot: Hash;
  readonly secondRoot: Hash;
  readonly proof: readonly Hash[];
}

/** False for everything that proves nothing, whatever it holds. */
export function verifyConsistency(claim: ConsistencyClaim, digest: Hasher): boolean {
  const { first, second, firstRoot, secondRoot, proof } = claim;
  if (!isCount(first) || !isCount(second) || first > second || !areHashes([firstRoot, secondRoot, ...proof]))
    return false;
  if (first === second) return proof.length === 0 && areSame(firstRoot, secondRoot);
  if (first === 0) return proof.length === 0 && areSame(firstRoot, digest.sha256(new Uint8Array(0)));
  let place = first - 1;
  let last = second - 1;
  while (place % 2 === 1) [place, last] = [half(place), half(last)];
  const path = place === 0 ? [firstRoot, ...proof] : proof;
  const [start, ...siblings] = path;
  if (start === undefined) return false;
  let earlier = start;
  let later = start;
  for (const sibling of siblings) {
    if (last === 0) return false;
    if (place % 2 === 1 || place === last) {
      earlier = nodeHash(sibling, earlier, digest);
      later = nodeHash(sibling, later, digest);
      while (place % 2 === 0 && place !== 0) [place, last] = [half(place), half(last)];
    } else later = nodeHash(later, sibling, digest);
    [place, last] = [half(place), half(last)];
  }
  return last === 0 && areSame(earlier, firstRoot) && areSame(later, secondRoot);
}

/** The largest power of two below `count`: where a tree of so many leaves is split. */
function splitOf(count: number): number {
  let split = 1;
  while (split * 2 < count) split *= 2;
  return split;
}

function half(value: number): number {
  return Math.floor(value / 2);
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function areHashes(hashes: readonly Hash[]): boolean {
  return hashes.every((hash) => hash.length === HASH_BYTES);
}

function areSame(left: Hash, right: Hash): boolean {
  return left.every((byte, at) => byte === right[at]);
}
