// The bounds of a server's assembly.

/** Cron lines that are kept as they were read, about a kilobyte each; past it the oldest goes. */
export const CRONS_KEPT_MAX = 1_024;
