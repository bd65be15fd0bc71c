// The bounds of the engine.

import { INTRODUCED_MAX } from "../core/kit/limits.ts";

/** A large file is synced each time this much of it is written. */
export const FILE_UNSYNCED_BYTES_MAX = 4 * 1024 * 1024;
/** Peers whose requests for votes are counted. */
export const LIMITED_PEERS_MAX = 2 * INTRODUCED_MAX;
