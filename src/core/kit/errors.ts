// One registry of error codes. HTTP status, CLI exit code, the specification's number and whether a
// retry helps are looked up here and nowhere else; docs/errors.md lists the same, and a test compares.

interface ErrorKind {
  /** HTTP status of an answer that carries this code. */
  readonly http: number;
  /** Exit code of a command that ends with it. */
  readonly exit: number;
  /** The same request may succeed later, here or on another node, without anybody repairing anything. */
  readonly retryable: boolean;
  /** The number of the election specification (4001–4006), where it has one. */
  readonly number: number | null;
}

export const ERRORS = {
  NOT_LEADER: { http: 409, exit: 69, retryable: true, number: null },
  ERR_ELECTION_FAILED: { http: 503, exit: 69, retryable: true, number: 4001 },
  ERR_NO_LEADER: { http: 503, exit: 69, retryable: true, number: 4002 },
  ERR_LEADER_TRANSFER_FAILED: { http: 409, exit: 69, retryable: true, number: 4003 },
  ERR_SPLIT_BRAIN: { http: 500, exit: 70, retryable: false, number: 4004 },
  ERR_TERM_STALE: { http: 409, exit: 69, retryable: false, number: 4005 },
  ERR_VOTE_DENIED: { http: 409, exit: 69, retryable: true, number: 4006 },
  TRANSFER_IN_PROGRESS: { http: 503, exit: 75, retryable: true, number: null },
  TRANSFER_TARGET_INVALID: { http: 400, exit: 64, retryable: false, number: null },
  UNCOMMITTED_LIMIT: { http: 503, exit: 75, retryable: true, number: null },
  ENTRY_TOO_LARGE: { http: 413, exit: 64, retryable: false, number: null },
  CONF_CHANGE_PENDING: { http: 503, exit: 75, retryable: true, number: null },
  CONF_CHANGE_INVALID: { http: 400, exit: 64, retryable: false, number: null },
  READS_LIMIT: { http: 503, exit: 75, retryable: true, number: null },
  MESSAGE_REFUSED: { http: 400, exit: 65, retryable: false, number: null },
  NOT_PROMOTABLE: { http: 409, exit: 69, retryable: false, number: null },
  CONFIG_INVALID: { http: 400, exit: 78, retryable: false, number: null },
  STAMP_MISMATCH: { http: 500, exit: 78, retryable: false, number: null },
  FORMAT_UNSUPPORTED: { http: 500, exit: 78, retryable: false, number: null },
  DISK_DAMAGED: { http: 500, exit: 74, retryable: false, number: null },
  DATA_DIRECTORY_IN_USE: { http: 500, exit: 78, retryable: false, number: null },
  DISK_FULL: { http: 507, exit: 75, retryable: true, number: null },
  SNAPSHOT_INVALID: { http: 400, exit: 65, retryable: false, number: null },
  HISTORY_REWRITTEN: { http: 409, exit: 69, retryable: false, number: null },
  LOG_COMPACTED: { http: 410, exit: 69, retryable: false, number: null },
  EVENTS_LOST: { http: 410, exit: 69, retryable: false, number: null },
  CLUSTER_MISMATCH: { http: 409, exit: 78, retryable: false, number: null },
  CLUSTER_PAUSED: { http: 503, exit: 75, retryable: true, number: null },
  CERTIFICATE_INVALID: { http: 500, exit: 78, retryable: false, number: null },
  TLS_REQUIRED: { http: 400, exit: 78, retryable: false, number: null },
  MEMBER_UNKNOWN: { http: 404, exit: 69, retryable: false, number: null },
  MEMBER_EXISTS: { http: 409, exit: 69, retryable: false, number: null },
  NOT_CAUGHT_UP: { http: 503, exit: 75, retryable: true, number: null },
  TOO_STALE: { http: 503, exit: 75, retryable: true, number: null },
  CALLER_UNCONFIRMED: { http: 503, exit: 75, retryable: true, number: null },
  UNAUTHENTICATED: { http: 401, exit: 77, retryable: false, number: null },
  BAD_REQUEST: { http: 400, exit: 64, retryable: false, number: null },
  REQUEST_TIMEOUT: { http: 408, exit: 75, retryable: true, number: null },
  NOT_FOUND: { http: 404, exit: 69, retryable: false, number: null },
  NOT_SUPPORTED: { http: 501, exit: 69, retryable: false, number: null },
  METHOD_NOT_ALLOWED: { http: 405, exit: 64, retryable: false, number: null },
  PAYLOAD_TOO_LARGE: { http: 413, exit: 64, retryable: false, number: null },
  RATE_LIMITED: { http: 429, exit: 75, retryable: true, number: null },
  OVERLOADED: { http: 503, exit: 75, retryable: true, number: null },
  INTERNAL: { http: 500, exit: 70, retryable: false, number: null },
  FSYNC_FAILED: { http: 500, exit: 74, retryable: false, number: null },
  OUTCOME_UNKNOWN: { http: 503, exit: 75, retryable: false, number: null },
  STALE_EPOCH: { http: 409, exit: 69, retryable: false, number: null },
  VERSION_CONFLICT: { http: 409, exit: 69, retryable: false, number: null },
  JOB_FINISHED: { http: 409, exit: 69, retryable: false, number: null },
  IDEMPOTENCY_MISMATCH: { http: 422, exit: 64, retryable: false, number: null },
  QUOTA_EXCEEDED: { http: 507, exit: 75, retryable: true, number: null },
  CONTROLLER_CONFLICT: { http: 409, exit: 69, retryable: false, number: null },
  MESH_DISABLED: { http: 501, exit: 78, retryable: false, number: null },
  KEY_EXISTS: { http: 409, exit: 69, retryable: false, number: null },
  SCHEDULE_INVALID: { http: 400, exit: 64, retryable: false, number: null },
  CHAIN_GAP: { http: 409, exit: 69, retryable: false, number: null },
  LINE_UNKNOWN: { http: 403, exit: 77, retryable: false, number: null },
  EVENT_INVALID: { http: 400, exit: 65, retryable: false, number: null },
  CHAIN_BROKEN: { http: 500, exit: 74, retryable: false, number: null },
  TX_MISUSED: { http: 500, exit: 70, retryable: false, number: null },
  TERM_OVERRUN: { http: 500, exit: 70, retryable: false, number: null },
  ELECTOR_BUSY: { http: 409, exit: 70, retryable: false, number: null },
  ELECTOR_CLOSED: { http: 503, exit: 70, retryable: false, number: null },
  BACKEND_UNAVAILABLE: { http: 503, exit: 69, retryable: true, number: null },
  BACKEND_READ_ONLY: { http: 503, exit: 69, retryable: true, number: null },
  BACKEND_UNSUPPORTED: { http: 500, exit: 78, retryable: false, number: null },
  RUNTIME_UNSUPPORTED: { http: 500, exit: 78, retryable: false, number: null },
  POOLER_IN_PATH: { http: 500, exit: 78, retryable: false, number: null },
  PERMISSION_DENIED: { http: 403, exit: 77, retryable: false, number: null },
  SCHEMA_MISSING: { http: 500, exit: 78, retryable: false, number: null },
  SCOPE_CLASH: { http: 409, exit: 78, retryable: false, number: null },
  // Of transaction coordinators, spelt as their specification has it.
  tc_unavailable: { http: 503, exit: 69, retryable: true, number: null },
  tc_cluster_unavailable: { http: 503, exit: 69, retryable: true, number: null },
  tc_not_leader: { http: 409, exit: 69, retryable: true, number: null },
  tc_term_stale: { http: 409, exit: 69, retryable: false, number: null },
  tc_lease_active: { http: 409, exit: 69, retryable: true, number: null },
  tc_roster_stale: { http: 409, exit: 69, retryable: false, number: null },
  tc_cluster_mismatch: { http: 409, exit: 78, retryable: false, number: null },
  tc_term_required: { http: 400, exit: 64, retryable: false, number: null },
  invalid_term: { http: 400, exit: 64, retryable: false, number: null },
  invalid_ttl: { http: 400, exit: 64, retryable: false, number: null },
  missing_roster: { http: 400, exit: 64, retryable: false, number: null },
  invalid_roster: { http: 400, exit: 64, retryable: false, number: null },
  missing_candidate_id: { http: 400, exit: 64, retryable: false, number: null },
  invalid_candidate_id: { http: 400, exit: 64, retryable: false, number: null },
  missing_leader_id: { http: 400, exit: 64, retryable: false, number: null },
  invalid_leader_id: { http: 400, exit: 64, retryable: false, number: null },
  missing_self_endpoint: { http: 400, exit: 64, retryable: false, number: null },
  invalid_self_endpoint: { http: 400, exit: 64, retryable: false, number: null },
  missing_backend_hash: { http: 400, exit: 64, retryable: false, number: null },
  invalid_backend_hash: { http: 400, exit: 64, retryable: false, number: null },
  missing_endpoint: { http: 400, exit: 64, retryable: false, number: null },
  invalid_endpoint: { http: 400, exit: 64, retryable: false, number: null },
  tc_identity_mismatch: { http: 403, exit: 77, retryable: false, number: null },
  tc_client_required: { http: 403, exit: 77, retryable: false, number: null },
  tc_server_required: { http: 403, exit: 77, retryable: false, number: null },
  tc_forbidden: { http: 403, exit: 77, retryable: false, number: null },
  tc_cluster_identity_missing: { http: 403, exit: 77, retryable: false, number: null },
  tc_rm_replication_failed: { http: 502, exit: 69, retryable: true, number: null },
  tc_rm_unavailable: { http: 503, exit: 69, retryable: true, number: null },
  txn_conflict: { http: 409, exit: 69, retryable: false, number: null },
  txn_pending: { http: 409, exit: 75, retryable: true, number: null },
  txn_locked: { http: 409, exit: 75, retryable: true, number: null },
  txn_expired: { http: 409, exit: 69, retryable: false, number: null },
  txn_backend_mismatch: { http: 409, exit: 78, retryable: false, number: null },
  txn_fanout_failed: { http: 502, exit: 75, retryable: true, number: null },
  txn_not_found: { http: 404, exit: 69, retryable: false, number: null },
  missing_txn_id: { http: 400, exit: 64, retryable: false, number: null },
  invalid_txn_id: { http: 400, exit: 64, retryable: false, number: null },
  missing_operations: { http: 400, exit: 64, retryable: false, number: null },
  invalid_operations: { http: 400, exit: 64, retryable: false, number: null },
  missing_participants: { http: 400, exit: 64, retryable: false, number: null },
  invalid_participants: { http: 400, exit: 64, retryable: false, number: null },
  missing_state: { http: 400, exit: 64, retryable: false, number: null },
  invalid_state: { http: 400, exit: 64, retryable: false, number: null },
  invalid_home: { http: 400, exit: 64, retryable: false, number: null },
  invalid_require: { http: 400, exit: 64, retryable: false, number: null },
  invalid_timeout: { http: 400, exit: 64, retryable: false, number: null },
  missing_header: { http: 400, exit: 64, retryable: false, number: null },
  invalid_header: { http: 400, exit: 64, retryable: false, number: null },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERRORS;

/** Recognises an error of another copy of this package too: bundlers and version ranges make copies. */
const BRAND: unique symbol = Symbol.for("tenure.error") as never;

/** A handled error of the world. `message` says what happened, why, and what to do next. */
export class TenureError extends Error {
  readonly code: ErrorCode;
  /** Of BAD_REQUEST: which part of the request is wrong, where it is known. */
  readonly field: string | undefined;
  readonly [BRAND] = true;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown; field?: string | undefined }) {
    super(message, options);
    this.name = "TenureError";
    this.code = code;
    this.field = options?.field;
  }

  get retryable(): boolean {
    return ERRORS[this.code].retryable;
  }

  /** Never throws: values that users throw come here too, and a proxy may refuse to be looked at. */
  static is(value: unknown): value is TenureError {
    try {
      return typeof value === "object" && value !== null && BRAND in value;
    } catch {
      return false;
    }
  }
}

/** The gate is closed at the moment of the call. */
export class NotLeaderError extends TenureError {
  readonly reason: NotLeaderReason;
  /** Who leads, as far as this instance has heard. */
  readonly leader: { readonly epoch: number; readonly identity: string } | null;

  constructor(reason: NotLeaderReason, message: string, leader: NotLeaderError["leader"] = null) {
    super("NOT_LEADER", message);
    this.name = "NotLeaderError";
    this.reason = reason;
    this.leader = leader;
  }

  static override is(value: unknown): value is NotLeaderError {
    return TenureError.is(value) && value.code === "NOT_LEADER";
  }
}

/**
 * `not-leading`: no term is held. `suspended`: the term may still be held, but the last proof of it is too old.
 * `too-short`: less trust is left than the effect needs. `other-epoch`: this instance leads, in another epoch.
 */
export type NotLeaderReason = "not-leading" | "suspended" | "too-short" | "other-epoch";

/** The database or the log has refused a write: its epoch is not the one in force. Nothing was written. */
export class StaleEpochError extends TenureError {
  readonly scope: string;
  readonly epoch: number;

  constructor(scope: string, epoch: number, options?: { cause?: unknown }) {
    super(
      "STALE_EPOCH",
      `epoch ${epoch} of scope "${scope}" is over, or was never given out. Nothing was written; stop this work and campaign again.`,
      options,
    );
    this.name = "StaleEpochError";
    this.scope = scope;
    this.epoch = epoch;
  }

  static override is(value: unknown): value is StaleEpochError {
    return TenureError.is(value) && value.code === "STALE_EPOCH";
  }
}

/** A value has another version than the one that the write was for. Nothing was written. */
export class VersionConflictError extends TenureError {
  /** Of the value. */
  readonly value: string;
  /** What it has; null: there is no such value. */
  readonly version: number | null;

  constructor(value: string, version: number | null) {
    const now = version === null ? "there is no such value" : `it has version ${version}`;
    super(
      "VERSION_CONFLICT",
      `the value "${value}" is not as it was expected: ${now}. Nothing was written; read it, and decide again.`,
    );
    this.name = "VersionConflictError";
    this.value = value;
    this.version = version;
  }

  static override is(value: unknown): value is VersionConflictError {
    return TenureError.is(value) && value.code === "VERSION_CONFLICT";
  }
}
