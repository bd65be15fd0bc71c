// Preloaded into processes of tests (`node --import`): segments of history that end after a few events, so that a test has
// several of them after a few dozen jobs. Where segments end must be the same on all nodes, and in the commands that work on
// their directories.

import { SEGMENT_LIMITS } from "../../src/core/archive/index.ts";

export const SEGMENT_EVENTS = 64;

Object.assign(SEGMENT_LIMITS, { eventsMax: SEGMENT_EVENTS });
