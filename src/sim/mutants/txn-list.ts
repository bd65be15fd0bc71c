// The planted mistakes of transactions over islands.

import type { Mutant } from "./patch.ts";

export const TXN_MUTANTS: readonly Mutant[] = [];
