// Bounds of the gate.

/** Unclear lines of one peer that are remembered: more than a site has had. */
export const UNCLEAR_LINES_MAX = 1_024;
