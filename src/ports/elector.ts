// The library's face: what a user holds. Who leads, for which epoch, until when, and how to be told.

import type { EndReason } from "../core/trust/transitions.ts";
import type { Transition } from "../core/trust/transitions.ts";

export type { EndReason, Transition };

export interface Elector<Extras extends object = object> extends AsyncDisposable {
  readonly scope: string;
  readonly identity: string;
  /** Asked in the process, at once, against the clock at the moment of the call. */
  readonly gate: LeaderGate;
  /**
   * Runs `work` while this instance leads; campaigns until then. `work` returns while its term holds: resign, resolve.
   * It throws: resign, reject. Its term ends first: `term.signal` aborts, the outcome of `work` is dropped, and once
   * it has settled the campaign starts again, or this rejects with `onLost: "throw"`. Work that throws behind a closed gate
   * is judged when the gate opens or the term is over; if the gate itself refused it, it runs again in the same term.
   * With `onError: "retry"` an error that a retry may repair does not reject: this instance resigns, waits and campaigns again, and
   * `work` is given what it threw the last time as its second argument.
   */
  lead<R>(work: (term: Term & Extras, lastError?: unknown) => Promise<R> | R, options?: LeadOptions): Promise<R>;
  /** Campaigns until this instance leads. The caller ends the term, or loses it. */
  acquire(options?: { signal?: AbortSignal | undefined }): Promise<Term & Extras>;
  /** Who leads now, as the backend says; null for nobody. */
  leader(): Promise<Leader | null>;
  /** The present leader, then each change. A slow reader misses what was superseded meanwhile, never the latest. */
  observe(options?: { signal?: AbortSignal | undefined }): AsyncIterable<Leader | null>;
  /** Counters and gauges, for `tenure/prometheus` or one's own. */
  stats(): ElectorStats;
  /** Ends the term as an abort of `lead` does, then frees everything. Safe to call twice. */
  close(): Promise<void>;
}

export interface LeadOptions {
  /** Ends the campaign, or the term: `term.signal` aborts, `work` has `drainMs` to settle, then the scope is let go. */
  readonly signal?: AbortSignal | undefined;
  /** How long `work` may go on after its signal has aborted, before TERM_OVERRUN. Default 10 s. */
  readonly drainMs?: number | undefined;
  /** What to do when a term is lost: campaign again (default), or reject. */
  readonly onLost?: "recampaign" | "throw" | undefined;
  /**
   * What to do when `work` throws. "throw" (default): reject. "retry": run it again, in a new epoch and after a pause of 100 ms that
   * doubles to 5 s, if the error is one of a database or a network that went away (docs/errors.md), OUTCOME_UNKNOWN
   * included; reject with any other.
   */
  readonly onError?: "throw" | "retry" | undefined;
}

export interface Leader {
  readonly epoch: number;
  readonly identity: string;
  readonly metadata: Readonly<Record<string, string>>;
}

export interface LeaderGate {
  /** True only while this instance leads and its trust has not run out. */
  readonly isLeader: boolean;
  /** How long this instance may still act without another word from the backend; 0 when it may not. */
  readonly remainingMs: number;
  /** The epoch, or NotLeaderError. `forMs`: at least so much trust must be left. `effect`: a name for the metrics. */
  requireLeader(options?: CheckOptions): number;
  /** As `requireLeader`, and the epoch must still be this one. */
  ensureEpoch(epoch: number, options?: CheckOptions): void;
}

export interface CheckOptions {
  readonly forMs?: number | undefined;
  readonly effect?: string | undefined;
}

/** One leader's time. It ends once: by resigning, or by being lost. */
export interface Term extends AsyncDisposable {
  readonly scope: string;
  readonly epoch: number;
  /** Aborts exactly once: when the term is over, or when it must be wound up. */
  readonly signal: AbortSignal;
  /** Settles when the term is over, with the reason. Never rejects. */
  readonly ended: Promise<EndReason>;
  /** The epoch, or NotLeaderError when the gate is closed at this moment. */
  check(options?: CheckOptions): number;
  /** Ends the term and lets another go first. Safe to call twice. */
  resign(): Promise<void>;
}

export interface ElectorStats {
  readonly scope: string;
  readonly identity: string;
  readonly isLeader: boolean;
  readonly epoch: number;
  readonly acquiredTotal: number;
  readonly acquireAttemptsTotal: number;
  readonly lostTotal: Readonly<Record<string, number>>;
  readonly effectsBlockedTotal: Readonly<Record<string, number>>;
  /** Since the last proof of the hold was sent; null while not leading. */
  readonly heartbeatAgeMs: number | null;
  readonly acquireLatencyMs: HistogramSnapshot;
  readonly heartbeatUpdateMs: HistogramSnapshot;
  /** How much trust was left each time that a heartbeat renewed it; 0 where the gate had closed. */
  readonly deadlineSlackMs: HistogramSnapshot;
}

export interface HistogramSnapshot {
  readonly count: number;
  readonly sum: number;
  /** Cumulative, as Prometheus wants it: how many were at most `le`. */
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
}
