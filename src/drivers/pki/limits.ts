// The bounds of certificates.

/** A machine whose clock is a little behind must not refuse a certificate that was made a moment ago. */
export const BACKDATE_MS = 5 * 60 * 1_000;

export const CERTIFICATES_READ_MAX = 1_000;
