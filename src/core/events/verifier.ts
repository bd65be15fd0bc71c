// Goes through a chain from a checkpoint on, event by event, in constant memory.
//
//   intact ──▶ suspect ──▶ broken
//      └──────────────────────┘
//
// An event does not hold its own hash: that another byte of it is not what was sealed shows at the next one, whose
// `previousHash` does not fit. Which of the two was changed is decided by the event after both (or by the head that the
// caller knows): where that one confirms the second, it was the first. So a link that does not fit makes the chain suspect
// for one event. Everything else that is wrong names its event at once.
//
// Promise: any one change (a byte, a gap, a swap, a duplicate, a cut) is found and named, up to the last event; the last one
// itself only where the caller knows the head. Nothing is canonicalised or serialised here: the bytes are hashed as they are.

import { assert } from "../kit/assert.ts";
import type { Digest } from "../../ports/digest.ts";
import { type ChainHead, checkHead } from "./chain.ts";
import { EventScanner } from "./event-scanner.ts";
import { eventDigestOf } from "./event.ts";
import { bytesOfHash, hexOf, standsAt } from "./hex.ts";
import type { MerkleFrontier } from "./merkle.ts";

export interface VerifyResult {
  readonly valid: boolean;
  readonly firstBrokenSequence?: number | undefined;
  readonly reason?: string | undefined;
  /** The last event that was read and fits. */
  readonly head: ChainHead;
}

type State =
  | { readonly kind: "intact" }
  /** The link between this sequence and the one before it does not fit; the heads up to that one, and up to the one before. */
  | { readonly kind: "suspect"; readonly sequence: number; readonly head: ChainHead; readonly before: ChainHead }
  | { readonly kind: "broken"; readonly sequence: number; readonly reason: string; readonly head: ChainHead };

const INTACT: State = { kind: "intact" };

export interface VerifierOptions {
  readonly checkpoint: ChainHead;
  readonly digest: Pick<Digest, "sha256">;
  /** Of the chain up to the checkpoint; each event that is fed is appended to it. It means something where all is valid. */
  readonly tree?: MerkleFrontier | undefined;
}

export class Verifier {
  readonly #digest: Pick<Digest, "sha256">;
  readonly #tree: MerkleFrontier | undefined;
  readonly #scanner = new EventScanner();
  /** Beyond doubt. */
  readonly #checkpoint: number;
  #state: State = INTACT;
  #sequence: number;
  #hash: Uint8Array | null;
  #timestamp: number;
  /** Of the event before the last one. */
  #hashBefore: Uint8Array | null = null;
  #timestampBefore = 0;

  constructor({ checkpoint, digest, tree }: VerifierOptions) {
    checkHead(checkpoint);
    assert(tree === undefined || tree.size === checkpoint.sequence, "a tree and its chain have the same size");
    this.#digest = digest;
    this.#tree = tree;
    this.#checkpoint = checkpoint.sequence;
    this.#sequence = checkpoint.sequence;
    this.#hash = checkpoint.hash === null ? null : bytesOfHash(checkpoint.hash);
    this.#timestamp = checkpoint.timestamp;
  }

  /** The event that is stored under `sequence`. False: the verdict is known, and nothing more needs to be fed. */
  feed(sequence: number, bytes: Uint8Array): boolean {
    if (this.#state.kind === "broken") return false;
    const problem = this.#problemOf(sequence, bytes);
    if (this.#state.kind === "suspect") return this.#judge(this.#state, problem === null && this.#isLinked(bytes));
    if (problem !== null) return this.#break(this.#sequence + 1, problem);
    if (!this.#isLinked(bytes))
      this.#state = { kind: "suspect", sequence, head: this.#head(), before: this.#headBefore() };
    this.#hashBefore = this.#hash;
    this.#timestampBefore = this.#timestamp;
    this.#hash = eventDigestOf(bytes, this.#digest);
    this.#timestamp = this.#scanner.timestamp;
    this.#sequence = sequence;
    if (this.#tree !== undefined) this.#tree.append(this.#hash);
    return true;
  }

  /** `expected`: the head as the caller knows it from elsewhere. Without it, a cut at the end can't be seen. */
  end(expected?: ChainHead): VerifyResult {
    const last = this.#head();
    if (this.#state.kind === "suspect") {
      this.#judge(this.#state, expected === undefined || expected.hash === last.hash);
    } else if (this.#state.kind === "intact" && expected !== undefined) {
      if (expected.sequence > last.sequence) {
        this.#break(last.sequence + 1, `the log ends here, and ${expected.sequence} events were expected`);
      } else if (expected.sequence < last.sequence) {
        this.#break(expected.sequence + 1, `the log goes on, and ${expected.sequence} events were expected`);
      } else if (expected.hash !== last.hash) {
        this.#break(last.sequence, "its hash is not that of the expected head", this.#headBefore());
      }
    }
    const state = this.#state;
    if (state.kind !== "broken") return { valid: true, head: last };
    return { valid: false, firstBrokenSequence: state.sequence, reason: state.reason, head: state.head };
  }

  /** What is wrong with these bytes alone, or with their place. */
  #problemOf(sequence: number, bytes: Uint8Array): string | null {
    const next = this.#sequence + 1;
    if (sequence !== next) return `the log has ${sequence} here, and ${next} was expected`;
    const problem = this.#scanner.scan(bytes);
    if (problem !== null) return problem;
    if (this.#scanner.sequence !== next) return `it calls itself sequence ${this.#scanner.sequence}`;
    // A changed timestamp of the event before would look as if this one were wrong: its link, which is suspect, is asked first.
    if (this.#scanner.timestamp <= this.#timestamp && this.#isLinked(bytes))
      return "its timestamp is not behind the one before it";
    return null;
  }

  #isLinked(bytes: Uint8Array): boolean {
    const { previousHashAt } = this.#scanner;
    if (this.#hash === null) return previousHashAt < 0;
    return previousHashAt >= 0 && standsAt(this.#hash, bytes, previousHashAt);
  }

  /** `isConfirmed`: the second of the two events that do not fit is as it was sealed. */
  #judge({ sequence, head, before }: State & { kind: "suspect" }, isConfirmed: boolean): false {
    const changed = "its bytes are not those that the next event links to";
    this.#state =
      isConfirmed && head.sequence > this.#checkpoint
        ? { kind: "broken", sequence: head.sequence, reason: changed, head: before }
        : { kind: "broken", sequence, reason: `its previousHash is not the hash of sequence ${head.sequence}`, head };
    return false;
  }

  #break(sequence: number, reason: string, head = this.#head()): false {
    this.#state = { kind: "broken", sequence, reason, head };
    return false;
  }

  #head(): ChainHead {
    return { sequence: this.#sequence, hash: hexOrNull(this.#hash), timestamp: this.#timestamp };
  }

  #headBefore(): ChainHead {
    const sequence = Math.max(this.#sequence - 1, 0);
    return { sequence, hash: hexOrNull(this.#hashBefore), timestamp: this.#timestampBefore };
  }
}

function hexOrNull(hash: Uint8Array | null): string | null {
  return hash === null ? null : hexOf(hash);
}
