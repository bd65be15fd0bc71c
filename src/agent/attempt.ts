// One job in this agent's hands.
//
//   running ──the handler settles──▶ settled (its log may still be on the way) ──answered──▶ over
//      └─ aborted: cancelled, timed-out, lease-lost, stopping; the handler goes on until it settles
//
// Invariants: the lease's end is counted from when a renewal was sent, on the earlier of both clocks (core/trust: monotonic time
// does not pass while a machine sleeps, trap 45), and only moves on; the signal aborts a margin before it (trap 51), and within a
// moment of a machine's waking up; an attempt is over once.

import { deadlineOf, type Instant, latest, remainingMs } from "../core/trust/window.ts";
import type { Clock, Timer } from "../ports/clock.ts";
import type { GivenLease, LeaseRef } from "../ports/jobs.ts";
import { LEASE_CHECK_MS_MAX } from "./limits.ts";
import { LogBuffer } from "./log-buffer.ts";
import { type AbortReason, JobAborted, type Outcome } from "./outcome.ts";

/** Share of a lease that is left unused at its end: for clocks that differ and an abort that takes a moment. */
const MARGIN_SHARE = 0.1;
/** Timers follow the monotonic clock alone: so often somebody looks at both. A share of a lease, at most a second. */
const LOOK_SHARE = 0.1;

export class Attempt {
  readonly lease: GivenLease;
  readonly ref: LeaseRef;
  readonly logs = new LogBuffer();
  /** The last that was said, not sent yet. */
  progress: { readonly share: number | null; readonly message: string | null } | null = null;
  /** Null: the handler has not settled. */
  outcome: Outcome | null = null;
  isOver = false;
  /** The cluster has said that the lease is over. */
  isLost = false;
  /** A result is on the way. */
  isSending = false;
  /** The leader changed: the lease is renewed there before its result is sent (design D16). */
  needsRenewal = false;
  #isReplaced = false;
  readonly #clock: Clock;
  /** Made for whoever asks: many handlers never do. */
  #abort: AbortController | null = null;
  #lost: AbortController | null = null;
  #lostBy: JobAborted | null = null;
  #leaderEpoch: number;
  /** When the last renewal that was confirmed, or the call that brought it, was sent. */
  #sentAt: Instant;
  #timers: Timer[] = [];
  #aborted: JobAborted | null = null;

  constructor(clock: Clock, lease: GivenLease, sentAt: Instant) {
    this.#clock = clock;
    this.lease = lease;
    const { jobId, jobEpoch, leaseId } = lease;
    this.ref = { jobId, jobEpoch, leaseId };
    this.#leaderEpoch = lease.leaderEpoch;
    this.#sentAt = sentAt;
    this.#watchLease();
    const { timeoutMs } = lease.spec;
    if (timeoutMs !== null) {
      const text = `The attempt took longer than the ${timeoutMs} ms that the job allows.`;
      this.#timers.push(clock.setTimer(clock.monotonicMs() + timeoutMs, () => this.abort("timed-out", text)));
    }
  }

  get signal(): AbortSignal {
    if (this.#abort === null) {
      this.#abort = new AbortController();
      if (this.#aborted !== null) this.#abort.abort(this.#aborted);
    }
    return this.#abort.signal;
  }

  /** Aborts when the job may be another agent's, also after a gentler reason to end it. */
  get lost(): AbortSignal {
    if (this.#lost === null) {
      this.#lost = new AbortController();
      if (this.#lostBy !== null) this.#lost.abort(this.#lostBy);
    }
    return this.#lost.signal;
  }

  get aborted(): JobAborted | null {
    return this.#aborted;
  }

  get leaderEpoch(): number {
    return this.#leaderEpoch;
  }

  /** The lease is over, or so nearly that nothing may be begun under it. */
  get isTooLate(): boolean {
    return this.#leftMs() === 0;
  }

  /** What it prints must be there before its result: afterwards nobody takes it. */
  get isReadyToReport(): boolean {
    return this.outcome !== null && !this.isOver && !this.isSending && !this.needsRenewal && this.logs.isEmpty;
  }

  renewed(sentAt: Instant, leaderEpoch: number): void {
    this.#sentAt = latest(this.#sentAt, sentAt);
    this.#leaderEpoch = Math.max(this.#leaderEpoch, leaderEpoch);
    this.needsRenewal = false;
  }

  /** The first reason counts. */
  abort(reason: AbortReason, message: string): void {
    if (this.outcome !== null || this.isOver) return;
    const aborted = new JobAborted(reason, message);
    if (reason === "lease-lost") {
      this.#lostBy ??= aborted;
      this.#lost?.abort(aborted);
    }
    if (this.#aborted !== null) return;
    this.#aborted = aborted;
    this.#abort?.abort(aborted);
  }

  settle(outcome: Outcome): void {
    this.outcome ??= outcome;
    this.#stopTimers();
    this.logs.release();
  }

  /** The cluster refused what it said first. */
  get isReplaced(): boolean {
    return this.#isReplaced;
  }

  replace(outcome: Outcome): void {
    this.#isReplaced = true;
    this.outcome = outcome;
  }

  finish(): void {
    this.isOver = true;
    this.#stopTimers();
    this.logs.release();
  }

  #leftMs(): number {
    const until = deadlineOf(this.#sentAt, this.lease.ttlMs * (1 - MARGIN_SHARE));
    return remainingMs(until, this.#clock.monotonicMs(), this.#clock.wallMs());
  }

  #watchLease(): void {
    const inMs = Math.min(this.#leftMs(), this.lease.ttlMs * LOOK_SHARE, LEASE_CHECK_MS_MAX);
    const timer = this.#clock.setTimer(this.#clock.monotonicMs() + inMs, () => {
      this.#timers = this.#timers.filter((one) => one !== timer);
      if (!this.isTooLate) return this.#watchLease();
      const text = `The lease of job ${this.ref.jobId} could not be renewed in time: another agent may get it.`;
      this.abort("lease-lost", text);
    });
    this.#timers.push(timer);
  }

  #stopTimers(): void {
    for (const timer of this.#timers) timer.cancel();
    this.#timers = [];
  }
}
