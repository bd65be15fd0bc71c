import type { Mutant } from "./patch.ts";
export const SPREAD_MUTANTS: readonly Mutant[] = [];
