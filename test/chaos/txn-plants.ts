// Known mistakes, planted into every node of a run of `chaos txn`: the harness must report each of them.

import type { Edit } from "../../src/sim/mutants/patch.ts";
import type { TxnRunResult } from "./txn-run.ts";

interface TxnPlant {
  readonly edits: readonly Edit[];
  /** As what it must be counted. */
  readonly isSeen: (run: TxnRunResult) => boolean;
}

const RESOLVER = "controller/transactions/resolver.ts";

export const TXN_PLANTS: Readonly<Record<string, TxnPlant>> = {
  /** What an island refuses counts as prepared: home commits, and that island has nothing of it. */
  "conflict-counts-as-prepared": {
    edits: [
      {
        file: "core/txn/course.ts",
        find: "else if (!isPrepared(said)) reason ??= reasonOf(island, said);",
        replace: "",
      },
    ],
    isSeen: isHalfApplied,
  },
  /** An island ends by itself what it has promised, when it has asked home, whatever home says. */
  "island-ends-alone": {
    edits: [
      {
        file: RESOLVER,
        find: 'if (answer === null) return "silent";',
        replace:
          'await actions.decided(id, { phase: "rolled-back", reason: null }).catch(() => undefined);\n    if (answer !== undefined) return "done";',
      },
    ],
    isSeen: isHalfApplied,
  },
  /** Jobs are recorded as delivered, and delivered after that. */
  "delivered-before-delivery": {
    edits: [
      { file: RESOLVER, find: "await log.deliver(given);", replace: "await actions.delivered(ids);" },
      { file: RESOLVER, find: 'return "some";', replace: 'await log.deliver(given);\n    return "some";' },
    ],
    isSeen: isHalfApplied,
  },
  /** Islands do what a leader says whose term is over. */
  "old-terms-count": {
    edits: [{ file: "core/txn/fence.ts", find: "if (asked.term < highest)", replace: "if (asked.term < 0)" }],
    isSeen: ({ stale_terms: { tried, refused } }) => refused < tried,
  },
};

function isHalfApplied({ half_applied: half }: TxnRunResult): boolean {
  return half > 0;
}
