// The planted mistakes in the history of events (its archive, pages and streams), in who is let in, and in schedules that change:
// each must be found by the simulation of jobs.

import { inRunsOf, QUIET } from "./jobs-runs.ts";
import type { Mutant } from "./patch.ts";

const KEYS = "controller/keys/keys-fold.ts";
const CERTIFICATES = "controller/keys/certificates-fold.ts";
const EVENTS = "controller/journal/events.ts";
const EVOLVE = "core/jobs/state/evolve.ts";

/** Histories are lost, and fetched from the others. */
const LOST = { ...QUIET, segmentEvents: 5, snapshotAfterEntries: 30, historyFaults: 4, historyFetchMs: 1 } as const;
/** Nodes fall back, and are sent snapshots. */
const SKIPPED = {
  ...QUIET,
  snapshotAfterEntries: 30,
  jobsMax: 60,
  clientPauseMs: 20,
  aims: ["missed-forgetting", "pause-leader", "isolate-leader"],
} as const;
const SCHEDULED = { ...QUIET, schedules: 6, outages: 1 } as const;

export const HISTORY_MUTANTS: readonly Mutant[] = [
  inRunsOf({ ...LOST, historyLies: true })("segment-installed-without-its-check", "D12", {
    file: "logs/archive/peers/installation.ts",
    find: "if (problem !== null) throw wrong(expected, problem);",
    replace: "if (problem === null) return;",
  }),
  inRunsOf(SKIPPED)("part-of-a-segment-taken-for-the-whole", "D12", {
    file: "logs/archive/housekeeping.ts",
    find: 'holdings.stateOf(entry) === "missing" && (await isWhole(environment, entry))',
    replace: 'holdings.stateOf(entry) === "missing" && (await isWhole(environment, entry)) !== null',
  }),
  inRunsOf({ ...QUIET, faults: 12, disk: { syncMs: [5, 40] } })("torn-end-of-a-segment-kept", "trap 24", {
    file: "logs/archive/recovery.ts",
    find: "if (open.isTorn) await file.truncate(open.bytes.length",
    replace: "if (open.isTorn) await file.truncate(Infinity",
  }),
  inRunsOf(SKIPPED)("open-segment-of-a-snapshot-not-taken-over", "D12", {
    file: "logs/archive/archive.ts",
    find: "if (open !== null) queue.add(open, null, true);",
  }),
  inRunsOf(QUIET)("stream-skips-the-event-it-resumes-at", "trap 67", {
    file: "api/streams/event-stream.ts",
    find: "after: start.sequence,",
    replace: "after: start.sequence + Math.sign(start.sequence),",
  }),
  inRunsOf(QUIET)("page-of-the-history-begins-late", "trap 67", {
    file: EVENTS,
    find: "history.read(after + 1, wanted.max)",
    replace: "history.read(after + 1 + Math.sign(after), wanted.max)",
  }),
  inRunsOf(SKIPPED)(
    "newest-events-kept-over-a-snapshot",
    "trap 67",
    { file: EVENTS, find: "this.#tail.clear();", replace: "" },
    {
      file: "controller/journal/event-tail.ts",
      find: "if (this.#events.at(-1)?.sequence !== sequence - 1) this.clear();",
    },
  ),
  inRunsOf(QUIET)("snapshot-without-revoked-certificates", "0025", {
    file: CERTIFICATES,
    find: "return this.#byHash.size === 0 ? null :",
    replace: "return this.#byHash.size >= 0 ? null :",
  }),
  inRunsOf(QUIET)("revoked-key-found-by-its-hash", "0025", { file: KEYS, find: "this.#byHash.delete(key.sha256);" }),
  inRunsOf({ ...SKIPPED, keyChanges: 60 })("snapshot-on-top-of-revoked-keys", "0025", {
    file: KEYS,
    find: "    this.#byName.clear();\n    this.#byHash.clear();\n",
  }),
  inRunsOf({ ...QUIET, keyChanges: 60 })("two-keys-of-one-hash", "0025", {
    file: "controller/keys/keys.ts",
    find: "if (known !== undefined || fold.byHash(sha256) !== undefined) {",
    replace: "if (known !== undefined) {",
  }),
  inRunsOf(SCHEDULED)("times-of-the-pause-are-caught-up", "0011", {
    file: EVOLVE,
    find: "const goesOn = isSame && (schedule.paused || !before.schedule.paused);",
    replace: "const goesOn = isSame;",
  }),
  inRunsOf(SCHEDULED)("changed-schedule-fires-times-of-before", "0011", {
    file: EVOLVE,
    find: "sinceMs: goesOn ? before.sinceMs : wallMs,",
    replace: "sinceMs: goesOn ? before.sinceMs : (before?.sinceMs ?? wallMs),",
  }),
];
