// Scopes that other processes lead through Tenure's own servers (`POST /v1/scopes/…`). The leader of the cluster decides;
// every node shows the applied state. What is refused rejects with a TenureError: NOT_LEADER, STALE_EPOCH (the hold is over,
// for sure), OUTCOME_UNKNOWN, or a retryable one.

export interface Scopes {
  /**
   * Waits until the scope is granted to this session, the signal aborts, or `waitMs` has passed: then `granted` is false.
   * The same session asking again while it holds gets its grant again: an answer may have been lost.
   */
  acquire(request: AcquireRequest, signal: AbortSignal): Promise<AcquireAnswer>;
  /** Extends the lease by its whole duration, from now. Answered only by a leader that a majority has just confirmed. */
  renew(scope: string, session: string, epoch: number): Promise<RenewAnswer>;
  /** Frees the scope at once. Of a hold that is over already it is no error. */
  resign(scope: string, session: string, epoch: number): Promise<void>;
  /** For operators. `force` takes the scope away at once; otherwise the holder is asked at its next renewal. Null: nobody holds it. */
  askResign(scope: string, force: boolean): Promise<{ readonly epoch: number } | null>;
  /** Applied state of this node, by name: at most `limit` after the name `after`, from the first where that is null. */
  list(after: string | null, limit: number): readonly ScopeView[];
  get(scope: string): ScopeView | null;
  /** Newest first, at most SCOPE_HISTORY_MAX. */
  history(scope: string): readonly ScopeTransition[];
  /** Resolves when the scope's epoch or holder differs from what is given, or the signal aborts; with the present view. */
  changed(
    scope: string,
    known: { readonly epoch: number; readonly held: boolean },
    signal: AbortSignal,
  ): Promise<ScopeView | null>;
}

export interface AcquireRequest {
  readonly scope: string;
  /** Random, made by the client for each campaign. */
  readonly session: string;
  readonly identity: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly ttlMs: number;
  readonly waitMs: number;
}

export type AcquireAnswer =
  | { readonly granted: true; readonly epoch: number; readonly ttlMs: number }
  /** Who holds it; null where nobody does at this moment. */
  | { readonly granted: false; readonly holder: ScopeHolder | null };

export interface RenewAnswer {
  readonly epoch: number;
  readonly ttlMs: number;
  readonly resignRequested: boolean;
}

export interface ScopeHolder {
  readonly epoch: number;
  readonly identity: string;
  readonly metadata: Readonly<Record<string, string>>;
}

export interface ScopeView {
  readonly scope: string;
  /** The last that was granted. */
  readonly epoch: number;
  readonly holder:
    | (ScopeHolder & { readonly ttlMs: number; readonly acquiredAtMs: number; readonly resignRequested: boolean })
    | null;
}

export interface ScopeTransition {
  /** Wall time of the leader that wrote it. */
  readonly atMs: number;
  readonly epoch: number;
  readonly identity: string;
  readonly reason: "acquired" | "resigned" | "expired" | "forced";
  /** How long the term was held; null for `acquired`. */
  readonly heldMs: number | null;
}
