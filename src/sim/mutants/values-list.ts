// The planted mistakes about values and their fences: what is known to go wrong between a decision of the leader and its commit, with
// versions, and with what watchers get. Each must be found by the simulation of jobs, whose writers and watchers are in sim/jobs/values.

import { inRunsOf, QUIET } from "./jobs-runs.ts";
import type { Mutant } from "./patch.ts";

const DECIDE = "core/values/decide.ts";
const FOLD = "core/values/fold.ts";
const HEAD = "core/values/head.ts";
const STATE_FOLD = "core/state/fold.ts";
const STATE_HEAD = "core/state/head.ts";
const SNAPSHOT = "core/state/snapshot.ts";
const APPENDS = "controller/state/appends.ts";
const SERVICE = "controller/state/state.ts";
const REIGN = "controller/values/values-reign.ts";
const VALUES = "controller/values/values.ts";
const LAST = "controller/values/last-changes.ts";

/** Little else is done than to write values. */
const VALUED = { ...QUIET, clients: 1, jobsMax: 20, valueWriters: 4, writerPauseMs: 80, upgradedMs: 0 } as const;
/** From what is decided to what is committed it takes a while. */
const SLOW_DISK = { syncMs: [5, 40] } as const;
const MANY = { ...VALUED, valueWriters: 8, writerPauseMs: 40 } as const;
const CROWDED = { ...MANY, disk: SLOW_DISK } as const;
/** Leaders are cut off, and do not know it. */
const DEPOSED = { ...MANY, aims: ["deposed"] } as const;
/** Nodes start from snapshots, and are sent some. */
const SKIPPED = { ...MANY, faults: 8, snapshotAfterEntries: 30, aims: ["isolate-leader", "crash-leader"] } as const;

export const VALUES_MUTANTS: readonly Mutant[] = [
  inRunsOf(VALUED)("write-without-its-fence", "fences", {
    file: DECIDE,
    find: 'if (fence !== null && view.heldEpoch(fence.scope) !== fence.epoch) return { kind: "stale", fence };',
  }),
  inRunsOf(VALUED)("fence-of-the-epoch-that-was-granted-last", "fences", {
    file: STATE_HEAD,
    find: "this.scopes.get(scope)?.hold?.epoch ?? null",
    replace: "this.scopes.get(scope)?.epoch ?? null",
  }),
  inRunsOf(CROWDED)("fence-of-what-is-applied", "D11", {
    file: STATE_HEAD,
    find: "this.scopes.get(scope)?.hold?.epoch ?? null",
    replace: "this.#applied.scopes.get(scope)?.hold?.epoch ?? null",
  }),
  inRunsOf(VALUED)("version-not-compared", "versions", {
    file: DECIDE,
    find: "ifVersion !== null && ifVersion !== (current?.version ?? 0)",
    replace: "ifVersion === -1",
  }),
  inRunsOf(VALUED)("created-over-another-one", "versions", {
    file: DECIDE,
    find: "ifVersion !== null && ifVersion !== (current?.version ?? 0)",
    replace: "ifVersion !== null && ifVersion !== 0 && ifVersion !== (current?.version ?? 0)",
  }),
  inRunsOf(CROWDED)("version-of-what-is-applied", "D11", {
    file: HEAD,
    find: "return this.#head.get(name);",
    replace: "return this.#applied.get(name);",
  }),
  inRunsOf(VALUED)("value-acknowledged-before-it-is-committed", "D11", {
    file: REIGN,
    find: "return batch.done.then(() => version);",
    replace: "return Promise.resolve(version);",
  }),
  inRunsOf(DEPOSED)("refused-by-a-leader-that-was-deposed", "D11", {
    file: REIGN,
    find: "      await desk.confirmed();\n",
  }),
  inRunsOf(CROWDED)("refused-by-what-is-not-committed", "trap 56a", {
    file: REIGN,
    find: "      await this.#desk.settled(...keys);\n",
  }),
  inRunsOf({ ...CROWDED, uncommittedBytesMax: 1_500 })("refused-by-what-was-given-up", "trap 66", {
    file: REIGN,
    find: "      return false;\n",
    replace: "      return true;\n",
  }),
  inRunsOf({ ...CROWDED, uncommittedBytesMax: 1_500 })("decided-on-what-was-given-up", "trap 66", {
    file: APPENDS,
    find: "    this.head.clear();\n",
  }),
  inRunsOf(SKIPPED)(
    "versions-counted-from-the-last-snapshot",
    "versions",
    {
      file: STATE_FOLD,
      find: "  readonly values = new ValuesFold();\n",
      replace: "  readonly values = new ValuesFold();\n  restoredTo = 0;\n",
    },
    {
      file: STATE_FOLD,
      find: "return epochAt(this.scopes.epochBase, position);",
      replace: "return epochAt(this.scopes.epochBase, position - this.restoredTo);",
    },
    {
      file: STATE_FOLD,
      find: "restore(data: Uint8Array): void {\n",
      replace: "restore(data: Uint8Array, head = { position: 0 }): void {\n    this.restoredTo = head.position;\n",
    },
  ),
  inRunsOf(SKIPPED)("snapshot-without-values", "D10", {
    file: SNAPSHOT,
    find: "if (values.size === 0) return scopesBytes;",
    replace: "if (values.size >= 0) return scopesBytes;",
  }),
  inRunsOf({ ...SKIPPED, disk: { syncMs: [0.1, 1], writeMs: [1, 4] } })("snapshot-of-later-values", "D10", {
    file: FOLD,
    find: "return pieces(values);",
    replace:
      "return pieces({ length: values.length, [Symbol.iterator]: () => values.map((one) => this.#values.get(one.name) ?? one).values() } as never);",
  }),
  inRunsOf(VALUED)(
    "deleted-value-goes-on-with-its-versions",
    "versions",
    {
      file: FOLD,
      find: "const after = evolveValue(event, version);",
      replace: "const after = evolveValue(event, (before?.version ?? 0) + 1);",
    },
    {
      file: HEAD,
      find: "evolveValue(event, version)",
      replace: "evolveValue(event, (this.get(event.name)?.version ?? 0) + 1)",
    },
  ),
  inRunsOf(SKIPPED)("watcher-misses-what-a-snapshot-brought", "trap 56d", {
    file: SERVICE,
    find: "        this.values.jumped();\n",
  }),
  inRunsOf(VALUED)("watcher-woken-past-the-change", "watching", {
    file: VALUES,
    find: "this.#watchers.changed(name, version - 1)",
    replace: "this.#watchers.changed(name, version)",
  }),
  inRunsOf(SKIPPED)("restarted-node-knows-all-changes", "watching", {
    file: VALUES,
    find: "this.#last = new LastChanges(this.#asOf);\n  }\n\n  /** Safe to call twice. */",
    replace: "this.#last = new LastChanges(0);\n  }\n\n  /** Safe to call twice. */",
  }),
  inRunsOf(VALUED)("page-of-changes-counts-as-all", "watching", {
    file: LAST,
    find: "return { changes, isAll: false };",
    replace: "return { changes, isAll: true };",
  }),
  inRunsOf({ ...VALUED, upgradedMs: 2_500 })("values-written-though-a-member-can-not-read-them", "upgrades", {
    file: VALUES,
    find: "const missing = applied.values.size > 0 ? [] : unready();",
    replace: "const missing: readonly string[] = [];",
  }),
];
