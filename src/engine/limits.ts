// The bounds of the engine.

import { INTRODUCED_MAX } from "../core/kit/limits.ts";

/** Peers whose requests for votes are counted. */
export const LIMITED_PEERS_MAX = 2 * INTRODUCED_MAX;
/** What is copied and checksummed in one turn, however fast that is. */
export const STORAGE_TURN_BYTES_MAX = 128 * 1024;
/** Of an attachment, checksummed between two yields. */
export const ENVELOPE_SLICE_BYTES = 1024 * 1024;
