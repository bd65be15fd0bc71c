// Callers who wait: for an entry of theirs to be applied, for a read's index to be known and applied, or for
// the end of a transfer. Everybody gets exactly one answer.
//
//   proposal ──▶ committed | unknown
//   read     ──▶ asked ──(index known)──▶ reaching ──(applied)──▶ index
//                  └── refused, given up, closed ──┴──▶ null
//   transfer ──▶ its result
//
// Invariants:
// - When this node stops leading, the fate of what it proposed is `unknown` and is never called a failure
//   (trap 66): the entry may well be committed by the next leader.
// - Nobody waits behind `close`: who asks later is answered at once.
// - Proposals and reads are bounded here. Transfers are by the core, which has one at a time.

import type { PeerKey } from "../core/kit/ids.ts";
import { PENDING_PROPOSALS_MAX, PENDING_READS_MAX } from "../core/kit/limits.ts";
import type { Random } from "../core/kit/random.ts";
import type { ReadState, TransferResult } from "../core/raft/index.ts";
import type { ProposeOutcome } from "../ports/consensus.ts";

interface Proposal {
  readonly index: number;
  readonly term: number;
  readonly settle: (outcome: ProposeOutcome) => void;
}

type SettleRead = (index: number | null) => void;

/** 2^32 places to start from, and as many reads in one life before the next place: all of it below 2^53. */
const CONTEXT_STARTS = 2 ** 32;
const CONTEXTS_PER_START = 2 ** 20;

export class Waiters {
  readonly #self: PeerKey;
  /** Ascending by index: a leader's proposals are appended in order. */
  #proposals: Proposal[] = [];
  readonly #asked = new Map<number, SettleRead>();
  readonly #reaching = new Map<number, { readonly index: number; readonly settle: SettleRead }>();
  #transfers: ((result: TransferResult) => void)[] = [];
  #nextContext: number;
  #isClosed = false;

  /**
   * Contexts start at random: an answer to a read of our former life may still be under way, in the same
   * term and to the same peer, and its index is too old for any read of this life.
   */
  constructor(self: PeerKey, random: Random) {
    this.#self = self;
    this.#nextContext = random.below(CONTEXT_STARTS) * CONTEXTS_PER_START;
  }

  // ---- proposals -----------------------------------------------------------------------------------

  get hasRoomForProposal(): boolean {
    return this.#proposals.length < PENDING_PROPOSALS_MAX;
  }

  proposal(index: number, term: number): Promise<ProposeOutcome> {
    if (this.#isClosed) return Promise.resolve({ outcome: "unknown" });
    return new Promise((settle) => {
      this.#proposals.push({ index, term, settle });
    });
  }

  /** The entry at `index` was applied: `term` is its term, `result` what the state machine returned. */
  applied(index: number, term: number, result: unknown): void {
    while (this.#proposals.length > 0 && this.#proposals[0]!.index <= index) {
      const proposal = this.#proposals.shift()!;
      const isOurs = proposal.index === index && proposal.term === term;
      proposal.settle(isOurs ? { outcome: "committed", index, term, result } : { outcome: "unknown" });
    }
  }

  leadershipLost(): void {
    const lost = this.#proposals;
    this.#proposals = [];
    for (const proposal of lost) proposal.settle({ outcome: "unknown" });
  }

  // ---- reads ---------------------------------------------------------------------------------------

  /** `answer` is the index up to which everything is applied, or null. Null for the whole: too many wait. */
  read(): { readonly context: number; readonly answer: Promise<number | null> } | null {
    if (this.#isClosed || this.#asked.size + this.#reaching.size >= PENDING_READS_MAX) return null;
    const context = this.#nextContext++;
    const answer = new Promise<number | null>((settle) => this.#asked.set(context, settle));
    return { context, answer };
  }

  /** The core's answer; index 0 means that it refused. */
  readAnswered({ context, index }: ReadState, applied: number): void {
    const settle = this.#asked.get(context);
    if (settle === undefined) return;
    this.#asked.delete(context);
    if (index === 0) settle(null);
    else if (index <= applied) settle(index);
    else this.#reaching.set(context, { index, settle });
  }

  giveUpRead(context: number): void {
    this.#asked.get(context)?.(null);
    this.#reaching.get(context)?.settle(null);
    this.#asked.delete(context);
    this.#reaching.delete(context);
  }

  /** Everything up to `index` is applied. */
  reached(index: number): void {
    for (const [context, one] of this.#reaching) {
      if (one.index > index) continue;
      this.#reaching.delete(context);
      one.settle(one.index);
    }
  }

  // ---- transfers -----------------------------------------------------------------------------------

  transfer(): Promise<TransferResult> {
    if (this.#isClosed) return Promise.resolve(this.#stopped());
    return new Promise((settle) => {
      this.#transfers.push(settle);
    });
  }

  transferEnded(result: TransferResult): void {
    const settlers = this.#transfers;
    this.#transfers = [];
    for (const settle of settlers) settle(result);
  }

  // ---- the end -------------------------------------------------------------------------------------

  close(): void {
    this.#isClosed = true;
    this.leadershipLost();
    for (const context of [...this.#asked.keys(), ...this.#reaching.keys()]) this.giveUpRead(context);
    this.transferEnded(this.#stopped());
  }

  #stopped(): TransferResult {
    const message = "this node stopped before it heard of an end";
    return { success: false, isUnknown: true, message, oldLeaderId: this.#self, newLeaderId: null };
  }
}
