// The planted mistakes in the mesh: each must be found by its simulation.

import { type Mutant } from "./patch.ts";

export const MESH_MUTANTS: readonly Mutant[] = [];
