// The planted mistakes in how pages of other sites enter a site, and in the arrival numbers of their events: each must be found by the
// simulation of jobs.

import { inRunsOf, QUIET } from "./jobs-runs.ts";
import type { Mutant } from "./patch.ts";

const STATE = "core/mesh/receipts/state.ts";
const REIGN = "controller/mesh/receipts/receipts-reign.ts";
const MACHINE = "node/assembly/machine.ts";

const FOREIGN = { ...QUIET, foreignEvents: 80, snapshotAfterEntries: 30 } as const;
/** Nodes fall back, and are sent snapshots. */
const SKIPPED = { ...FOREIGN, aims: ["missed-forgetting", "pause-leader", "isolate-leader"] } as const;

export const RECEIPTS_MUTANTS: readonly Mutant[] = [
  inRunsOf(FOREIGN)("known-events-of-a-page-counted-again", "mesh invariant 6", {
    file: STATE,
    find: "first: from.size + 1,",
    replace: "first: page.after + 1,",
  }),
  inRunsOf({ ...FOREIGN, jobsMax: 60, clientPauseMs: 20 })(
    "own-events-counted-before-they-are-committed",
    "mesh invariant 6",
    {
      file: "controller/journal/journal.ts",
      find: "  /** The last committed event's. */\n",
      replace: "  get proposed(): number { return this.#tail?.sealer.head.sequence ?? this.#chain.sequence; }\n",
    },
    { file: MACHINE, find: "own: () => jobs.chain.sequence", replace: "own: () => jobs.proposed" },
  ),
  inRunsOf(SKIPPED)("snapshot-without-the-count-of-foreign-events", "mesh invariant 6", {
    file: STATE,
    find: "    this.#foreign = foreign;\n",
  }),
  inRunsOf(SKIPPED)("snapshot-without-the-floor-of-the-clock", "mesh invariant 7", {
    file: STATE,
    find: "    this.#floorMs = floorMs;\n",
  }),
  inRunsOf(FOREIGN)(
    "page-taken-on-whatever-is-known",
    "mesh invariant 6",
    { file: STATE, find: "!continues(this.#lines.get(page.line), from) || " },
    { file: REIGN, find: "if (!isOn) return", replace: "if (!isOn && known === undefined) return" },
  ),
  inRunsOf(SKIPPED)("snapshot-without-receipts", "mesh invariant 6", {
    file: MACHINE,
    find: "log.head().epoch === 0 ? NO_BYTES",
    replace: "log.head().epoch >= 0 ? NO_BYTES",
  }),
  inRunsOf(FOREIGN)("page-accepted-before-it-is-committed", "trap 66", {
    file: REIGN,
    find: "    this.#isUnderWay = true;\n",
    replace: "    this.#isUnderWay = true;\n    for (const { settle, outcome } of batch) settle.resolve(outcome);\n",
  }),
  inRunsOf({ ...SKIPPED, segmentEvents: 5, historyFaults: 4 })("receipts-not-archived-on-a-standby", "mesh 2", {
    file: MACHINE,
    find: "mesh.follow((sealed) => archive.append([archived(sealed)]));",
    replace:
      "mesh.follow((sealed) => { if (attached === null || engine().status().role === 'leader') archive.append([archived(sealed)]); });",
  }),
];
