// The bounds of the engine.

import { INTRODUCED_MAX } from "../core/kit/limits.ts";

/** Peers whose requests for votes are counted. */
export const LIMITED_PEERS_MAX = 2 * INTRODUCED_MAX;
