// The book of jobs: the state of all of them, on every node. It is both the applied state and the leader's head: the leader
// evolves at once and keeps notes of what is not committed (table.ts), followers apply what is.
//
//             ┌── propose ──▶ head ahead of applied ──┐
//   head = applied ◀── commit of all, rollback ───────┘         apply: only while head = applied
//
// Invariants:
// - Events come in order, without gaps, by their sequence.
// - After any proposals, commits, rollbacks and applications the state is the one that applying the committed events makes.

import { assert } from "../../kit/assert.ts";
import { wholeOf } from "../../kit/pieces.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { Request } from "../../../ports/jobs.ts";
import type { DecideContext } from "../commands.ts";
import { evolve } from "./evolve.ts";
import type { JobsEvent } from "../events.ts";
import { recall } from "./idempotency.ts";
import { decodeBook } from "../snapshot/decode.ts";
import { encodeBook } from "../snapshot/encode.ts";
import { type Times, witnessedMs } from "./skips.ts";
import { type BookOptions, BookState } from "./state.ts";
import { BookView, type JobsView } from "./views.ts";

/** A state that nobody has seen yet. */
export interface PreparedBook {
  readonly state: BookState;
  readonly sequence: number;
}

export class JobsBook {
  /** What is committed: what reads show. */
  readonly applied: JobsView = new BookView(() => this.#state, "applied");
  /** What is proposed too: what answers of the leader rest on. */
  readonly head: JobsView = new BookView(() => this.#state, "head");
  readonly #options: BookOptions;
  #state: BookState;
  #appliedSequence: number;
  #headSequence: number;

  /** `sequence`: the event before the first that it is notified of. */
  constructor(options: BookOptions, sequence = 0) {
    this.#options = options;
    this.#state = new BookState(options);
    this.#appliedSequence = sequence;
    this.#headSequence = sequence;
  }

  /** For this room only. */
  get state(): BookState {
    return this.#state;
  }

  get appliedSequence(): number {
    return this.#appliedSequence;
  }

  get headSequence(): number {
    return this.#headSequence;
  }

  /** Events that did not fit and changed nothing. */
  get unfit(): number {
    return this.#state.unfit;
  }

  /** In how long the next delayed job becomes ready; below 0 where more were due than one turn takes. */
  readyInMs({ nowMs, wallMs }: Pick<DecideContext, "nowMs" | "wallMs">): number {
    const { nextTimedMs, nextDatedMs } = this.#state.ready;
    return Math.min(nextTimedMs - nowMs, nextDatedMs - wallMs);
  }

  /** Whether this job is in memory: it is live, or was finished lately. The views have all. */
  known(jobId: string): boolean {
    return this.#state.jobs.get(jobId) !== undefined;
  }

  /** By what is applied: a retry that is only proposed may never come to be. */
  hasApplied(jobId: string): boolean {
    return this.#state.jobs.applied(jobId) !== undefined;
  }

  /** Whether its key was used before, for whatever: it is answered by that, and by nothing that holds now. */
  remembers(request: Request, times: Times): boolean {
    return recall(this.#state, request, "", times).kind !== "new";
  }

  /** What of the time since `fromMs`, an event's, leaders have seen pass. */
  witnessedMs(fromMs: number, times: Times): number {
    return witnessedMs(this.#state, fromMs, times);
  }

  /** All that the events' clock has jumped over, as far as the head tells. */
  get skippedMs(): number {
    return this.#state.skippedMs;
  }

  /** Idempotency keys that are remembered, and those that went before their time in this life, for want of room. */
  get keys(): { readonly remembered: number; readonly droppedEarly: number } {
    const { keys, keysDroppedEarly: droppedEarly } = this.#state;
    return { remembered: keys.size, droppedEarly };
  }

  /** After this sequence no job was finished that is not here any more: it is here, or was forgotten by an event. */
  get droppedUpTo(): number {
    const { finished, lastFinishedBy } = this.#state;
    // Those that were finished first are dropped first.
    return finished.first === undefined ? lastFinishedBy : finished.first.finishedBy - 1;
  }

  /**
   * The one rule for jobs that are not here: views that have everything up to this sequence are right about each of them, also that
   * there is none. Views that have less may show a job as it was before its end, or one that was forgotten.
   * Asked in the turn in which the job was not found here: `applied` for reads, `head` for what the leader decides.
   */
  leftUpTo(look: "applied" | "head"): number {
    // What was taken back may be named still, and no views ever come to it.
    const last = look === "head" ? this.#headSequence : this.#appliedSequence;
    return Math.min(last, Math.max(this.droppedUpTo, this.#state.lastForgottenBy));
  }

  /** Views that have everything up to this sequence have all that this job has logged; 0: it goes on. */
  loggedUpTo(jobId: string): number {
    return this.#state.jobs.applied(jobId)?.finishedBy ?? this.leftUpTo("applied");
  }

  // ---- the leader ----------------------------------------------------------------------------------

  /** Events of one's own that are being appended. One that does not fit was decided on another head: our mistake. */
  propose(events: readonly JobsEvent[]): void {
    const { notes } = this.#state;
    for (const event of events) {
      this.#follows(event);
      notes.propose(event.sequence);
      const fits = evolve(this.#state, event);
      assert(fits, "what is proposed fits the head", () => `${event.eventType} ${event.entityId}`);
      this.#headSequence = event.sequence;
    }
    notes.propose(0);
  }

  /** What is proposed up to here is committed. */
  commit(upTo: number): void {
    assert(upTo >= this.#appliedSequence && upTo <= this.#headSequence, "what is committed was proposed", () =>
      String(upTo),
    );
    this.#state.notes.commit(upTo);
    this.#appliedSequence = upTo;
  }

  /** Undoes what is proposed after this sequence; by default all that is not committed. */
  rollback(to = this.#appliedSequence): void {
    assert(to >= this.#appliedSequence, "what is committed stays", () => String(to));
    this.#state.notes.rollback(to);
    this.#headSequence = Math.min(this.#headSequence, to);
  }

  // ---- every node ----------------------------------------------------------------------------------

  /** A committed event, while nothing is proposed. False: it did not fit, and changed nothing. */
  apply(event: JobsEvent): boolean {
    assert(this.#headSequence === this.#appliedSequence, "what is proposed is rolled back before others' events come");
    this.#follows(event);
    const fits = evolve(this.#state, event);
    this.#headSequence = event.sequence;
    this.#appliedSequence = event.sequence;
    return fits;
  }

  #follows({ sequence }: JobsEvent): void {
    assert(
      sequence === this.#headSequence + 1,
      "events come without gaps",
      () => `${sequence} behind ${this.#headSequence}`,
    );
  }

  // ---- snapshots -----------------------------------------------------------------------------------

  /** Of what is applied. Equal states are equal bytes, however they came to be. */
  snapshot(): Uint8Array {
    return wholeOf(this.slices());
  }

  /**
   * The same, bit by bit: what is written was fixed at the first `next`, also where the book goes on meanwhile, or is
   * restored to something else. A slice is good until the next `next`; whoever gives up calls `return`. `sliceBytes`: a slice
   * ends after the record with which it reaches this.
   */
  slices(sliceBytes?: number): Generator<Uint8Array, void, void> {
    return encodeBook(this.#state, this.#appliedSequence, sliceBytes);
  }

  /**
   * Throws SNAPSHOT_INVALID or FORMAT_UNSUPPORTED, and changes nothing then. Of no bytes at all: an empty book.
   * `nowMs`: the time of the last event in it, so that a job whose time has come is ready here as it was there, and does not
   * wait for its turn behind others that are older and less urgent.
   */
  restore(bytes: Uint8Array, nowMs = 0): void {
    const slices = this.prepare(bytes, nowMs);
    for (;;) {
      const step = slices.next();
      if (step.done === true) return this.adopt(step.value);
    }
  }

  /** The first part of a restore, which takes long, bit by bit: the book itself goes on meanwhile. */
  *prepare(bytes: Uint8Array, nowMs = 0): Generator<void, PreparedBook, void> {
    const state = new BookState(this.#options);
    state.ready.advance(Math.floor(nowMs), 0);
    const sequence = yield* decodeBook(state, bytes);
    // Which was the last, nobody knows any more.
    state.lastFinishedBy = sequence;
    state.lastForgottenBy = sequence;
    return { state, sequence };
  }

  /** The second part. */
  adopt({ state, sequence }: PreparedBook): void {
    this.#state = state;
    this.#appliedSequence = sequence;
    this.#headSequence = sequence;
  }

  /** SHA-256 of the snapshot. */
  stateHash(digest: Pick<Digest, "sha256">): Uint8Array {
    return digest.sha256(this.snapshot());
  }
}
