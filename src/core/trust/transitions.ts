// What happens to an instance's leadership, as one ordered list: none is dropped, none is merged.

/** Why a term ended. */
export type EndReason =
  /** `resign`, the end of `work`, the abort of its signal, or `close`. */
  | "resigned"
  /** An operator asked for it (`tenure scope resign`). */
  | "asked"
  /** No proof of the hold for the whole server timeout: it must be taken for lost. */
  | "expired"
  /** The connection broke or was terminated. */
  | "session-ended"
  /** Another epoch is in force. */
  | "superseded"
  /** The server is a standby. */
  | "read-only"
  /** The server says that the lease ended. */
  | "lease-gone"
  /** The session lives, but does not hold the lock. */
  | "unlocked";

/**
 * `campaigning` → `leading` → (`suspended` → `resumed`)* → `ended`. While suspended the gate is closed, because no
 * beat was answered in time; the scope is probably still held, and the epoch stays.
 */
export type Transition =
  | { readonly kind: "campaigning"; readonly scope: string; readonly identity: string; readonly atMs: number }
  | (OfTerm & { readonly kind: "leading" })
  | (OfTerm & { readonly kind: "suspended" })
  | (OfTerm & { readonly kind: "resumed" })
  | (OfTerm & { readonly kind: "ended"; readonly reason: EndReason; readonly heldMs: number });

interface OfTerm {
  readonly scope: string;
  readonly identity: string;
  readonly epoch: number;
  /** Wall time. */
  readonly atMs: number;
}
