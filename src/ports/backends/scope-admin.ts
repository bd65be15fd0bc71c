// What an operator asks of a backend: who leads what, who led before, and that a leader step down. The command line
// (`tenure scope …`) knows no more of a backend than this.

export interface ScopeAdmin {
  /** Every scope that this backend has heard of, by name; `identity` is null where nobody leads. */
  list(): Promise<ScopeRecord[]>;
  /** One of them, without asking for the others; null for a scope that this backend has not heard of. */
  find(scope: string): Promise<ScopeRecord | null>;
  /** The last transitions of one scope, newest first; empty for a scope that nobody has led. */
  history(scope: string): Promise<TransitionRecord[]>;
  /**
   * Asks the leader to resign, or takes the scope from it at once (`force`): then it may believe in its term for a
   * moment longer, and only a fence keeps its writes out. Resolves with the epoch that was asked, null if nobody leads.
   */
  askResign(scope: string, force: boolean): Promise<{ readonly epoch: number } | null>;
  /** Where leadership is a lock of sessions: which lock, and which sessions. Null for a scope that is not known. */
  details?(scope: string): Promise<ScopeDetails | null>;
  close(): Promise<void>;
}

export interface ScopeRecord {
  readonly scope: string;
  /** The last that was granted. */
  readonly epoch: number;
  readonly identity: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  /** Wall time of the holder. */
  readonly acquiredAtMs: number | null;
  /** On this machine's clock, so that its age is right whatever the backend's clock says. */
  readonly heartbeatAtMs: number | null;
  /** The backend knows that the session of `identity` is gone; nobody has followed yet. */
  readonly isGone?: boolean | undefined;
}

export interface ScopeDetails {
  /** 64-bit integers, in decimal. */
  readonly lockKey: string;
  readonly fenceKey: string;
  /** An operator has asked the present leader to step down. */
  readonly isAskedToResign: boolean;
  /** Who has the lock: one at most. */
  readonly sessions: readonly SessionRecord[];
  /** Who waits for the lock at this moment. Those who poll do not show. */
  readonly waiters: readonly SessionRecord[];
  /** Who is inside of a fenced transaction, or raises the epoch. */
  readonly fenced: readonly SessionRecord[];
}

export interface SessionRecord {
  /** Null for a prepared transaction, which has no session. */
  readonly pid: number | null;
  readonly user: string | null;
  readonly applicationName: string | null;
  readonly client: string | null;
  /** The name of a prepared transaction. */
  readonly prepared: string | null;
}

export interface TransitionRecord {
  /** Wall time of whoever wrote it. */
  readonly atMs: number;
  readonly epoch: number;
  readonly identity: string;
  /** `acquired`, or why the term ended. */
  readonly reason: string;
  /** How long the term was held; null while it is not over, or where nobody knows. */
  readonly heldMs: number | null;
}
