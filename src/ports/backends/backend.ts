// What a backend of leadership has to do: your Postgres, your etcd, Tenure's own servers, or memory in tests. The
// elector (electors/elector.ts) decides when; a backend only does it, says when it sent what, and keeps no opinion
// about time. `tenure/testing` exports a conformance suite for whoever writes another one.

import type { Random } from "../../core/kit/random.ts";
import type { Instant, Timing } from "../../core/trust/window.ts";
import type { Clock } from "../clock.ts";
import type { Leader } from "../elector.ts";
import type { Logger } from "../logger.ts";

/** `Extras` is what this backend adds to a term: a fence where there is something to write to, nothing elsewhere. */
export interface Backend<Extras extends object = object> {
  /** "postgres", "etcd", "memory": for messages and logs. */
  readonly kind: string;
  /** `<host>-<pid>`: the middle of a default identity. */
  readonly host: string;
  readonly timing: Timing;
  /** The clock that the elector runs on; by default the system's. Only test backends bring their own. */
  readonly clock?: Clock | undefined;
  /** One elector's place at one scope. Does no I/O; throws CONFIG_INVALID for a scope that this backend can't name. */
  seat(claim: Claim): Seat<Extras>;
}

/** What a backend over TLS is given: PEM text or bytes, as node:tls takes them. */
export interface TlsFiles {
  readonly ca?: string | Uint8Array | undefined;
  readonly cert?: string | Uint8Array | undefined;
  readonly key?: string | Uint8Array | undefined;
  readonly servername?: string | undefined;
}

/** Who asks for what, and what the backend may use. */
export interface Claim {
  readonly scope: string;
  readonly identity: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /**
   * The hold on the scope has ended, known for sure, or it can never be used again: the session is gone, another
   * holds the scope, the server is a standby. Called at once, not only as the answer to the next beat. Calls
   * without a hold, and calls after the first for one hold, are ignored.
   */
  lost(epoch: number, reason: LossReason): void;
  /** Somebody leads, or led, in this epoch: a grant that is asked for later and is not above it is refused. */
  heard?(epoch: number): void;
}

/**
 * Calls come one at a time for each of acquire, beat and release, except `abandon`, which may come at any moment.
 * What rejects, rejects with a TenureError: `retryable` means that the elector tries again, with backoff.
 */
export interface Seat<Extras extends object = object> {
  /** What the backend calls the scope, for logs: a lock key, a key's name. */
  readonly scopeKey?: string | undefined;
  /**
   * Waits until the scope is ours, for as long as that takes. Whoever aborts the signal calls `abandon` too, and what was
   * abandoned rejects: it must not resolve with a hold that nobody will let go. The epoch is larger than any that was granted before for this scope, and whoever held it before can't write with it
   * from the moment that this resolves.
   */
  acquire(signal: AbortSignal): Promise<Grant>;
  /**
   * Proves the hold once more, and extends it. A rejection means: unknown, the hold may still be ours, ask again. Where
   * a request can be given up and sent again (etcd), the seat bounds it; where the session would be lost with it
   * (Postgres), it may stay unanswered, and the elector abandons it when the server timeout has passed.
   */
  beat(epoch: number): Promise<Beat>;
  /** Lets go, so that another can take over at once. Rejects where that is not certain; then it is abandoned. */
  release(epoch: number): Promise<void>;
  /**
   * Drops the hold, or whatever is under way, without waiting for an answer: the socket is destroyed, never reused
   * (trap 39). Afterwards the seat can acquire again, with a new session.
   */
  abandon(): void;
  /**
   * Tells the present leader at once and then each change, null for nobody; the same leader is not told twice in
   * a row. It goes on over lost connections. Returns the way to stop it.
   */
  watch(tell: (leader: Leader | null) => void, failed: (error: unknown) => void): () => void;
  /** Reads the present leader once. */
  leader(): Promise<Leader | null>;
  /** What a term of this backend can do next to the rest. */
  extras(term: Hold): Extras;
  /** Frees everything. Safe to call twice. Nothing is called after it. */
  close(): Promise<void>;
}

export interface Grant {
  readonly epoch: number;
  /** When the request left whose answer proves the hold (trap 44). */
  readonly sentAt: Instant;
}

export interface Beat {
  readonly sentAt: Instant;
  /** An operator asked this leader to step down. */
  readonly resignRequested?: boolean | undefined;
}

/** A term as the backend's extras see it. */
export interface Hold {
  readonly scope: string;
  readonly epoch: number;
  /** Throws NotLeaderError unless the gate is open for this epoch. */
  check(): number;
  /** A fence has refused this epoch: another leads, the term is over. */
  lost(reason: LossReason): void;
}

/**
 * `session-ended`: the connection broke or was terminated. `superseded`: another epoch is in force. `read-only`: the
 * server is a standby. `lease-gone`: the server says that the lease ended. `unlocked`: the session is alive, but the
 * lock is not held by it (a pooler, or somebody's unlock).
 */
export type LossReason = "session-ended" | "superseded" | "read-only" | "lease-gone" | "unlocked";
