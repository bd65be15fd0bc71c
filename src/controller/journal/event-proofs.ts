// Proofs over the tree of events (RFC 6962), from the history. A proof names ranges of leaves; the hashes of whole blocks of
// leaves are kept once they are known (events never change), so that only the first proof reads all of the history, and the
// others what stands around their own leaf.
//
// One proof is made at a time: each reads, and reading takes the loop's time.

import { TenureError } from "../../core/kit/errors.ts";
import {
  bytesOfHash,
  consistencyRanges,
  type Hash,
  hexOf,
  inclusionRanges,
  leafHash,
  type LeafRange,
  MerkleFrontier,
} from "../../core/events/index.ts";
import type { Digest } from "../../ports/digest.ts";
import type { ConsistencyProof, InclusionProof } from "../../ports/events.ts";
import { Turns } from "../turns.ts";
import { PROOFS_WAITING_MAX } from "./limits.ts";

/** 32 bytes are kept for each of them: 160 kB at five million events. */
const BLOCK_LEAVES = 1_024;

export interface ProofHistory {
  read(from: number, max: number): AsyncIterable<readonly { readonly eventHash: string }[]>;
}

export class EventProofs {
  readonly #history: ProofHistory;
  readonly #digest: Digest;
  readonly #turns = new Turns({ atOnceMax: 1, waitingMax: PROOFS_WAITING_MAX, doing: "proofs are being made" });
  /** By their place: the first is of the leaves 0 to 1,023. */
  readonly #blocks = new Map<number, Hash>();

  constructor(history: ProofHistory, digest: Digest) {
    this.#history = history;
    this.#digest = digest;
  }

  /** The history is another one now. */
  clear(): void {
    this.#blocks.clear();
  }

  inclusion(sequence: number, treeSize: number): Promise<InclusionProof> {
    return this.#turns.take(async () => {
      const path = await this.#hashes(inclusionRanges(sequence - 1, treeSize));
      const leaf = await this.#hash({ from: sequence - 1, to: sequence });
      return { sequence, treeSize, leafHash: leaf, root: await this.#hash({ from: 0, to: treeSize }), path };
    });
  }

  consistency(fromSize: number, treeSize: number): Promise<ConsistencyProof> {
    return this.#turns.take(async () => {
      const path = await this.#hashes(consistencyRanges(fromSize, treeSize));
      const fromRoot = await this.#hash({ from: 0, to: fromSize });
      return { fromSize, treeSize, fromRoot, root: await this.#hash({ from: 0, to: treeSize }), path };
    });
  }

  async #hashes(ranges: readonly LeafRange[]): Promise<string[]> {
    const hashes: string[] = [];
    for (const range of ranges) hashes.push(await this.#hash(range));
    return hashes;
  }

  /** Of the subtree over these leaves; a single leaf is its own. */
  async #hash({ from, to }: LeafRange): Promise<string> {
    const tree = new MerkleFrontier(this.#digest);
    let at = from;
    // A range of a proof that is longer than a block begins where a block does.
    if (from % BLOCK_LEAVES === 0) {
      for (; at + BLOCK_LEAVES <= to; at += BLOCK_LEAVES) tree.appendSubtree(await this.#block(at), BLOCK_LEAVES);
    }
    await this.#appendLeaves(tree, at, to);
    return hexOf(tree.root());
  }

  async #block(from: number): Promise<Hash> {
    const place = from / BLOCK_LEAVES;
    const known = this.#blocks.get(place);
    if (known !== undefined) return known;
    const tree = new MerkleFrontier(this.#digest);
    await this.#appendLeaves(tree, from, from + BLOCK_LEAVES);
    const hash = tree.root();
    this.#blocks.set(place, hash);
    return hash;
  }

  async #appendLeaves(tree: MerkleFrontier, from: number, to: number): Promise<void> {
    let missing = to - from;
    if (missing === 0) return;
    for await (const batch of this.#history.read(from + 1, missing)) {
      for (const { eventHash } of batch) {
        tree.appendLeafHash(leafHash(bytesOfHash(eventHash), this.#digest));
        missing--;
      }
    }
    if (missing > 0) throw new TenureError("LOG_COMPACTED", "Some of these events are not here at this moment.");
  }
}
