// The bounds of the values' service.

/** Changes that a node keeps for those who watch; who was away for longer lists again. */
export const VALUE_CHANGES_KEPT = 4_096;
export const VALUE_CHANGES_BYTES_KEPT = 8 * 1024 * 1024;
export const VALUE_WATCHERS_MAX = 10_000;
