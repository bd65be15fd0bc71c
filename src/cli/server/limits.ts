// The bounds of `tenure server`.

/** A disk that hangs must not keep a node from being stopped. */
export const STOP_MS_MAX = 20_000;
/** Of one variable Linux takes 128 KiB, and characters may be several bytes. */
export const SPEC_LENGTH_MAX = 30_000;
export const CONTROLLER_ALIVE_MS = 500;
/** Of each of the two halves of V8's room for new objects. */
export const SEMI_SPACE_MB_MAX = 16;
