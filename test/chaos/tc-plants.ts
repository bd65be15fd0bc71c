// Known mistakes, planted into every node of a run of `chaos tc`: the harness must report each of them.

import type { Edit } from "../../src/sim/mutants/patch.ts";

const LEADER = "core/lease/leader.ts";

export const TC_PLANTS: Readonly<Record<string, readonly Edit[]>> = {
  /** A leader that hears of no voter goes on. */
  "lease-never-ends": [
    {
      file: LEADER,
      find: "this.isOpened && this.#leftMs(now, LEASE_TRUST_MS) > 0;",
      replace: "this.isOpened && this.#leftMs(now, LEASE_TRUST_MS) >= 0;",
    },
    {
      file: LEADER,
      find: "if (this.#leftMs(now, LEASE_TTL_MS) === 0) this",
      replace: "if (this.#leftMs(now, LEASE_TTL_MS) < 0) this",
    },
  ],
};
