// The bounds of clocks and time zones.

/** setTimeout takes 31 bits and fires at once beyond them. */
export const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** Zones that people really use. */
export const ZONES_KEPT_MAX = 128;
/** Of each zone: somewhat more than a year. */
export const DAYS_KEPT_MAX = 400;
/** Public keys of other sites that are kept ready to verify with; begun anew when it is full. */
export const PUBLIC_KEYS_KEPT_MAX = 1_024;
