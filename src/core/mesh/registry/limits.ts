// The bounds of the registry: all of it is in memory on every node, and in each snapshot.

/** Other sites that one site knows. */
export const SITES_MAX = 1_024;
/** Generations of one site whose first rings are kept, the last ones. */
export const LINES_PER_SITE_MAX = 32;
/** Lines whose forks are remembered: every line that can be pinned at once. */
export const FORKS_MAX = SITES_MAX * LINES_PER_SITE_MAX;
