// Known mistakes, planted into every node of a run of `chaos txn`: the harness must report each of them.

import type { Edit } from "../../src/sim/mutants/patch.ts";

export const TXN_PLANTS: Readonly<Record<string, readonly Edit[]>> = {
  /** What an island refuses counts as prepared: home commits, and that island has nothing of it. */
  "conflict-counts-as-prepared": [
    {
      file: "core/txn/course.ts",
      find: "else if (!isPrepared(said)) reason ??= reasonOf(island, said);",
      replace: "",
    },
  ],
  /** An island that does not hear of home ends by itself what it has promised. */
  "island-ends-alone": [
    {
      file: "controller/transactions/resolver.ts",
      find: 'if (answer === undefined || answer === null) return "silent";',
      replace:
        'if (answer === undefined || answer === null) { await actions.decided(id, { phase: "rolled-back", reason: null }); return "done"; }',
    },
  ],
  /** Jobs are recorded as delivered, and delivered after that. */
  "delivered-before-delivery": [
    {
      file: "controller/transactions/resolver.ts",
      find: "await log.deliver(given);",
      replace: "await actions.delivered(ids);",
    },
    {
      file: "controller/transactions/resolver.ts",
      find: 'return "some";',
      replace: 'await log.deliver(given);\n    return "some";',
    },
  ],
  /** Islands do what a leader says whose term is over. */
  "old-terms-count": [
    {
      file: "core/txn/fence.ts",
      find: "if (asked.term < highest)",
      replace: "if (asked.term < 0)",
    },
  ],
};
