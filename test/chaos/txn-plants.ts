// Known mistakes, planted into every node of a run of `chaos txn`: the harness must report each of them.

import type { Edit } from "../../src/sim/mutants/patch.ts";

export const TXN_PLANTS: Readonly<Record<string, readonly Edit[]>> = {};
