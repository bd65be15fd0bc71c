// Preloaded into processes of tests (`node --import`): a book that keeps few finished jobs in memory, so that what begins when it
// drops one begins after a few jobs. The same on all nodes of a cluster.

import { BOOK_LIMITS } from "../../src/core/jobs/index.ts";

export const FINISHED_KEPT = 5;

Object.assign(BOOK_LIMITS, { finishedMax: FINISHED_KEPT });
