// Known mistakes, planted into every node of a run of `chaos tc`: the harness must report each of them. They are those of the simulator.

import type { Edit } from "../../src/sim/mutants/patch.ts";
import { TC_MUTANTS } from "../../src/sim/mutants/tc-list.ts";

const NAMES = ["registry-shown-early", "quorum-over-unexpired"] as const;

export const TC_PLANTS: Readonly<Record<string, readonly Edit[]>> = Object.fromEntries(
  NAMES.map((name) => [name, TC_MUTANTS.find((mutant) => mutant.name === name)!.edits]),
);
