// The tree over a site's events (RFC 6962): one root stands for all of them, and a short proof for one of them, or for that
// a later tree only added to an earlier one. A leaf's input is the event's hash as 32 raw bytes; its place is the sequence
// less one.
//
// Invariants (trap 62):
// - Leaves are hashed behind a 0 byte and nodes behind a 1 byte, so that no node can be passed off as a leaf.
// - An odd node goes up as it is and is never paired with itself, so that no two lists have the same root.
// - The frontier holds one hash for each bit that is set in its size, of the largest subtree first: 53 at most.

import { assert } from "../kit/assert.ts";
import { ByteReader, ByteWriter, DecodeError } from "../kit/bytes.ts";
import type { Digest } from "../../ports/digest.ts";
import { HASH_BYTES } from "./hex.ts";

export type Hash = Uint8Array;
export type Hasher = Pick<Digest, "sha256">;

const FRONTIER_VERSION = 1;
const LEAF_PREFIX = 0;
const NODE_PREFIX = 1;

/** Refilled for each hash: the digest reads it before it returns. */
const node = new Uint8Array(1 + 2 * HASH_BYTES);
const leaf = new Uint8Array(1 + HASH_BYTES);
node[0] = NODE_PREFIX;
leaf[0] = LEAF_PREFIX;

export function leafHash(input: Uint8Array, digest: Hasher): Hash {
  if (input.length === HASH_BYTES) {
    leaf.set(input, 1);
    return digest.sha256(leaf);
  }
  const prefixed = new Uint8Array(1 + input.length);
  prefixed[0] = LEAF_PREFIX;
  prefixed.set(input, 1);
  return digest.sha256(prefixed);
}

export function nodeHash(left: Hash, right: Hash, digest: Hasher): Hash {
  node.set(left, 1);
  node.set(right, 1 + HASH_BYTES);
  return digest.sha256(node);
}

/** All that is needed to go on appending to a tree and to know its root: O(log n) hashes. */
export class MerkleFrontier {
  readonly #digest: Hasher;
  /** Of the whole subtrees, the largest and leftmost first. */
  readonly #subtrees: Hash[];
  #size: number;

  constructor(digest: Hasher) {
    this.#digest = digest;
    this.#subtrees = [];
    this.#size = 0;
  }

  /** Leaves so far. */
  get size(): number {
    return this.#size;
  }

  append(input: Uint8Array): void {
    this.appendLeafHash(leafHash(input, this.#digest));
  }

  appendLeafHash(hash: Hash): void {
    this.appendSubtree(hash, 1);
  }

  /** A whole subtree of so many leaves, a power of two; it stands where one of its kind can: behind a multiple of them. */
  appendSubtree(hash: Hash, leaves: number): void {
    assert(this.#size % leaves === 0, "a subtree stands behind a multiple of its leaves");
    let grown = hash;
    for (let size = this.#size / leaves; size % 2 === 1; size = (size - 1) / 2) {
      grown = nodeHash(this.#subtrees.pop() as Hash, grown, this.#digest);
    }
    this.#subtrees.push(grown);
    this.#size += leaves;
  }

  root(): Hash {
    let at = this.#subtrees.length - 1;
    if (at < 0) return this.#digest.sha256(new Uint8Array(0));
    let root = this.#subtrees[at] as Hash;
    while (--at >= 0) root = nodeHash(this.#subtrees[at] as Hash, root, this.#digest);
    return root;
  }

  /** Independent of this one from here on: what a snapshot keeps while appending goes on. */
  copy(): MerkleFrontier {
    return MerkleFrontier.#of(this.#digest, this.#size, this.#subtrees);
  }

  encode(): Uint8Array {
    const writer = new ByteWriter(16 + this.#subtrees.length * (HASH_BYTES + 4));
    writer.u8(FRONTIER_VERSION);
    writer.uint53(this.#size);
    for (const hash of this.#subtrees) writer.bytes(hash);
    return writer.finish();
  }

  /** Throws a DecodeError where the bytes are not those of a frontier. */
  static decode(bytes: Uint8Array, digest: Hasher): MerkleFrontier {
    const reader = new ByteReader(bytes);
    const version = reader.u8();
    if (version !== FRONTIER_VERSION) throw new DecodeError("malformed", `a tree of format ${version}`);
    const size = reader.uint53();
    const subtrees: Hash[] = [];
    for (let rest = size; rest > 0; rest = Math.floor(rest / 2)) {
      if (rest % 2 === 0) continue;
      const hash = reader.bytes(HASH_BYTES);
      if (hash.length !== HASH_BYTES) throw new DecodeError("malformed", `a hash of ${hash.length} bytes`);
      subtrees.push(hash.slice());
    }
    if (reader.remainingBytes > 0) throw new DecodeError("malformed", "bytes follow the tree");
    return MerkleFrontier.#of(digest, size, subtrees);
  }

  static #of(digest: Hasher, size: number, subtrees: readonly Hash[]): MerkleFrontier {
    const frontier = new MerkleFrontier(digest);
    frontier.#size = size;
    frontier.#subtrees.push(...subtrees);
    assert(frontier.#subtrees.length <= 53, "a frontier has one hash for each bit of its size");
    return frontier;
  }
}
