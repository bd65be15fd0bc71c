// The bounds of the registry: all of it is in memory on every node, and in each snapshot.

/** Other sites that one site knows. */
export const SITES_MAX = 1_024;
/** Generations of one site whose first rings are kept, the last ones. */
export const LINES_PER_SITE_MAX = 32;
/** Addresses of one site. */
export const SITE_URLS_MAX = 32;
export const SITE_URL_BYTES_MAX = 1_024;
export const SITE_NAME_BYTES_MAX = 128;
export const SITE_VERSION_BYTES_MAX = 64;
/** What else a site says of itself, as JSON. */
export const SITE_METADATA_BYTES_MAX = 4 * 1024;
/** Lines whose forks are remembered: every line that can be pinned at once. */
export const FORKS_MAX = SITES_MAX * LINES_PER_SITE_MAX;
