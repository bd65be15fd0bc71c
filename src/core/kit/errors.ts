// One registry of error codes. HTTP status, CLI exit code, the specification's number and whether a
// retry helps are looked up here and nowhere else; docs/errors.md lists the same, and a test compares.

interface ErrorKind {
  /** HTTP status of an answer that carries this code. */
  readonly http: number;
  /** Exit code of a command that ends with it. */
  readonly exit: number;
  /** The same request may succeed later, here or on another node, without anybody mending anything. */
  readonly retryable: boolean;
  /** The number of the election specification (4001–4006), where it has one. */
  readonly number: number | null;
}

export const ERRORS = {
  NOT_LEADER: { http: 409, exit: 69, retryable: true, number: null },
  ERR_NO_LEADER: { http: 503, exit: 69, retryable: true, number: 4002 },
  ERR_LEADER_TRANSFER_FAILED: { http: 409, exit: 69, retryable: true, number: 4003 },
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
  FSYNC_FAILED: { http: 500, exit: 74, retryable: false, number: null },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERRORS;

/** A handled error of the world. `message` says what happened, why, and what to do next. */
export class TenureError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.name = "TenureError";
    this.code = code;
  }

  get retryable(): boolean {
    return ERRORS[this.code].retryable;
  }

  static is(value: unknown): value is TenureError {
    return value instanceof TenureError;
  }
}
