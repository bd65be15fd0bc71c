// The leader's view of one peer: what it has, what it is sent next, whether it answers.
//
//   probe      one append at a time, until an answer shows where the logs agree
//   replicate  a stream: `next` runs ahead of the answers, bounded by the inflights
//   snapshot   the peer needs entries that are compacted; nothing is sent until it has the snapshot
//
//   probe ──accepted──▶ replicate ──rejected (by itself) or unreachable──▶ probe
//   probe, replicate ──entries compacted──▶ snapshot ──accepted──▶ replicate, ──failed──▶ probe
//
// All other transitions are called for by the leader (leader.ts). A new leader makes new objects, so all of this
// holds within one term:
// - match < next. Entries between the two may be on their way.
// - `match` never falls: what was acknowledged is durable there, so a rejection of it is stale (trap 7).
// - In snapshot, next is above pendingSnapshot; in every other state pendingSnapshot is 0.

import { assert, assertNever } from "../../kit/assert.ts";
import { Inflights, type InflightLimits } from "./inflights.ts";

export type ProgressState = "probe" | "replicate" | "snapshot";

export interface ProgressOptions {
  /** Where the first probe starts: after the leader's last entry, as the paper has it. */
  readonly next: number;
  /** A new peer counts as just heard from: it gets the time to answer before it is missed. */
  readonly nowMs: number;
  readonly inflightLimits: InflightLimits;
}

export class Progress {
  readonly inflights: Inflights;
  /** The newest heartbeat round that this peer has answered. */
  ackedRound = 0;
  lastContactMs: number;
  /** Since when it has had all there is; Infinity while it has not. */
  caughtUpSinceMs = Infinity;
  priority = 0;
  /** As its last answer to a heartbeat said; nobody is before the first one. */
  willing = false;
  diskStalled = false;
  unhealthy = false;
  /** The commit index that this peer was last told. */
  sentCommit = 0;
  /** The commit index one beat ago: whoever has that much is caught up, however busy the leader is. */
  commitAtBeat = Infinity;
  snapshotSentMs = -Infinity;

  #state: ProgressState = "probe";
  #match = 0;
  #next: number;
  #pendingSnapshot = 0;
  #probeSent = false;

  constructor(options: ProgressOptions) {
    assert(options.next >= 1, "next is an index", () => String(options.next));
    this.#next = options.next;
    this.lastContactMs = options.nowMs;
    this.inflights = new Inflights(options.inflightLimits);
  }

  get state(): ProgressState {
    return this.#state;
  }

  get match(): number {
    return this.#match;
  }

  get next(): number {
    return this.#next;
  }

  get pendingSnapshot(): number {
    return this.#pendingSnapshot;
  }

  /** An append is out and nothing more follows until it is answered, or a heartbeat is. */
  get probeSent(): boolean {
    return this.#probeSent;
  }

  /** Coming from a snapshot, the peer is taken to have it: the probe finds out. */
  becomeProbe(): void {
    const next = Math.max(this.#match, this.#pendingSnapshot) + 1;
    this.#enter("probe", next);
  }

  becomeReplicate(): void {
    this.#enter("replicate", this.#match + 1);
  }

  becomeSnapshot(index: number): void {
    assert(index >= this.#match, "snapshot is not behind the match", () => `${index} below ${this.#match}`);
    this.#enter("snapshot", index + 1);
    this.#pendingSnapshot = index;
  }

  /** The snapshot did not arrive: probe from what is known, but only after the next heartbeat's answer. */
  snapshotFailed(): void {
    assert(this.#state === "snapshot", "only a pending snapshot fails", () => this.#state);
    this.#enter("probe", this.#match + 1);
    this.#probeSent = true;
  }

  isPaused(): boolean {
    return this.#state === "snapshot" || this.#probeSent;
  }

  /**
   * A heartbeat was answered. Where the inflights are full, one empty append may follow: if all that
   * filled them was lost, its rejection is what gets the stream going again.
   */
  resume(): void {
    this.#probeSent = false;
  }

  /** An append with `count` entries up to `lastIndex` was sent; `count` is 0 for one that only probes. */
  sentEntries(count: number, bytes: number, lastIndex: number): void {
    assert(lastIndex === this.#next - 1 + count, "entries are sent from next on", () => {
      return `${count} up to ${lastIndex}, next is ${this.#next}`;
    });
    switch (this.#state) {
      case "probe":
        if (count > 0) this.#probeSent = true;
        return;
      case "replicate":
        if (count > 0) {
          this.inflights.add(lastIndex, bytes);
          this.#next = lastIndex + 1;
        }
        this.#probeSent = this.inflights.isFull;
        return;
      case "snapshot":
        assert(false, "nothing is appended while a snapshot is pending");
        return;
      default:
        assertNever(this.#state, "sentEntries");
    }
  }

  /** The peer holds everything up to `index`. False where that is no news. */
  ackTo(index: number): boolean {
    this.inflights.freeUpTo(index);
    if (index <= this.#match) return false;
    this.#match = index;
    this.#next = Math.max(this.#next, index + 1);
    this.#probeSent = false;
    this.#check();
    return true;
  }

  /**
   * The peer refused the append after `rejectedIndex`; its log may agree with ours up to `hintIndex`.
   * False where the answer is stale: late, repeated or overtaken.
   */
  maybeDecrementNext(rejectedIndex: number, hintIndex: number): boolean {
    if (rejectedIndex <= this.#match) return false;
    switch (this.#state) {
      case "replicate":
        // Which of the streamed appends were lost is unknown: start again from what is matched. Staying in
        // replicate would leave inflights behind that are ahead of next.
        this.becomeProbe();
        return true;
      case "probe":
        // Probes go one at a time, so only a refusal of the one that is out can be fresh.
        if (rejectedIndex !== this.#next - 1) return false;
        this.#next = Math.max(Math.min(rejectedIndex, hintIndex + 1), this.#match + 1);
        this.#probeSent = false;
        this.#check();
        return true;
      case "snapshot":
        // It refused what was sent before the snapshot, which replaces its log anyway.
        return false;
      default:
        return assertNever(this.#state, "maybeDecrementNext");
    }
  }

  #enter(state: ProgressState, next: number): void {
    this.#state = state;
    this.#next = next;
    this.#pendingSnapshot = 0;
    this.#probeSent = false;
    this.inflights.clear();
    this.#check();
  }

  #check(): void {
    assert(this.#next > this.#match, "next is above match", () => `next ${this.#next}, match ${this.#match}`);
  }
}
