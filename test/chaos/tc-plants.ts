// Known mistakes, planted into every node of a run of `chaos tc`: the harness must report each of them.

import type { Edit } from "../../src/sim/mutants/patch.ts";

export const TC_PLANTS: Readonly<Record<string, readonly Edit[]>> = {
  /** A leader whose own voter answers goes on, whoever else does. */
  "own-vote-suffices": [
    {
      file: "core/lease/leader.ts",
      find: "const proved = earlier(own, provedBy(this.#roster.voters, this.#proofs));",
      replace: "const proved = own;",
    },
  ],
};
