// The chain and the tree of core/events, as the archive walks along them.

import type { Chain, ChainPoint, ChainWalk, CommittedEvent } from "../../core/archive/index.ts";
import { bytesOfHash, eventHashOf, MerkleFrontier, Verifier } from "../../core/events/index.ts";
import { assert } from "../../core/kit/assert.ts";
import { decoded } from "../../core/kit/bytes.ts";
import type { Digest } from "../../ports/digest.ts";

export function eventChain(digest: Digest): Chain {
  return {
    hash: (bytes) => eventHashOf(bytes, digest),
    follow: (from) => {
      const tree = treeAt(from, digest);
      return tree === null ? null : new EventWalk(from, tree, digest);
    },
  };
}

function treeAt({ sequence, frontier }: ChainPoint, digest: Digest): MerkleFrontier | null {
  if (sequence === 0) return frontier.length === 0 ? new MerkleFrontier(digest) : null;
  const tree = decoded(
    () => MerkleFrontier.decode(frontier, digest),
    () => null,
  );
  return tree?.size === sequence ? tree : null;
}

class EventWalk implements ChainWalk {
  readonly #digest: Digest;
  readonly #tree: MerkleFrontier;
  /** Where `take` stands; what was checked is in the verifier. */
  #sequence: number;
  #hash: string | null;
  #timestamp: number;
  #verifier: Verifier | null = null;

  constructor(from: ChainPoint, tree: MerkleFrontier, digest: Digest) {
    this.#digest = digest;
    this.#tree = tree;
    this.#sequence = from.sequence;
    this.#hash = from.hash;
    this.#timestamp = from.timestamp;
  }

  check(bytes: Uint8Array): boolean {
    this.#verifier ??= new Verifier({ checkpoint: this.#head(), digest: this.#digest, tree: this.#tree });
    return this.#verifier.feed(++this.#sequence, bytes);
  }

  fault(expected: ChainPoint | null): { readonly sequence: number; readonly why: string } | null {
    const result = this.#verifier?.end(expected ?? undefined);
    if (result === undefined || result.valid) return null;
    return { sequence: result.firstBrokenSequence ?? this.#sequence, why: result.reason ?? "it is broken" };
  }

  take({ event }: CommittedEvent): void {
    this.#settle();
    assert(event.sequence === this.#sequence + 1, "events are archived in order", () => `${event.sequence}`);
    this.#tree.append(bytesOfHash(event.eventHash));
    this.#sequence = event.sequence;
    this.#hash = event.eventHash;
    this.#timestamp = event.timestamp;
  }

  point(): ChainPoint {
    this.#settle();
    const frontier = this.#sequence === 0 ? new Uint8Array(0) : this.#tree.encode();
    return { ...this.#head(), frontier };
  }

  /** Goes on from what was checked. */
  #settle(): void {
    if (this.#verifier === null) return;
    const { head, valid } = this.#verifier.end();
    assert(valid, "nobody goes on behind a broken chain");
    this.#sequence = head.sequence;
    this.#hash = head.hash;
    this.#timestamp = head.timestamp;
    this.#verifier = null;
  }

  #head(): { sequence: number; hash: string | null; timestamp: number } {
    return { sequence: this.#sequence, hash: this.#hash, timestamp: this.#timestamp };
  }
}
