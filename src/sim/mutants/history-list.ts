// The planted mistakes in the history of events (its archive, pages and streams), in who is let in, and in schedules that change:
// each must be found by the simulation of jobs.

import type { JobsKnobs } from "../jobs/index.ts";
import type { Edit, Mutant } from "./patch.ts";

const KEYS = "controller/keys/keys-fold.ts";
const CERTIFICATES = "controller/keys/certificates-fold.ts";
const EVENTS = "controller/journal/events.ts";
const EVOLVE = "core/jobs/state/evolve.ts";

function mutant(name: string, breaks: string, pins: Partial<JobsKnobs>, ...edits: readonly Edit[]): Mutant {
  return { name, breaks, edits, subject: "jobs", limits: { pins } };
}

/** Little else goes wrong. */
const QUIET = {
  faults: 2,
  wallJumps: 0,
  clocks: "near",
  schedules: 0,
  outages: 0,
  moonlights: false,
  usurpations: 0,
} as const;
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
  mutant(
    "segment-installed-without-its-check",
    "D12",
    { ...LOST, historyLies: true },
    {
      file: "logs/archive/peers/installation.ts",
      find: "if (problem !== null) throw wrong(expected, problem);",
      replace: "if (problem === null) return;",
    },
  ),
  mutant("part-of-a-segment-taken-for-the-whole", "D12", SKIPPED, {
    file: "logs/archive/housekeeping.ts",
    find: 'holdings.stateOf(entry) === "missing" && (await isWhole(environment, entry))',
    replace: 'holdings.stateOf(entry) === "missing" && (await isWhole(environment, entry)) !== null',
  }),
  mutant(
    "torn-end-of-a-segment-kept",
    "trap 24",
    { ...QUIET, faults: 12, disk: { syncMs: [5, 40] } },
    {
      file: "logs/archive/recovery.ts",
      find: "if (open.isTorn) await file.truncate(open.bytes.length",
      replace: "if (open.isTorn) await file.truncate(Infinity",
    },
  ),
  mutant("open-segment-of-a-snapshot-not-taken-over", "D12", SKIPPED, {
    file: "logs/archive/archive.ts",
    find: "if (open !== null) queue.add(open, null, true);",
    replace: "",
  }),
  mutant("stream-skips-the-event-it-resumes-at", "trap 67", QUIET, {
    file: "api/streams/event-stream.ts",
    find: "after: start.sequence,",
    replace: "after: start.sequence + Math.sign(start.sequence),",
  }),
  mutant("page-of-the-history-begins-late", "trap 67", QUIET, {
    file: EVENTS,
    find: "history.read(after + 1, wanted.max)",
    replace: "history.read(after + 1 + Math.sign(after), wanted.max)",
  }),
  mutant(
    "newest-events-kept-over-a-snapshot",
    "trap 67",
    SKIPPED,
    { file: EVENTS, find: "this.#tail.clear();", replace: "" },
    {
      file: "controller/journal/event-tail.ts",
      find: "if (this.#events.at(-1)?.sequence !== sequence - 1) this.clear();",
      replace: "",
    },
  ),
  mutant("snapshot-without-revoked-certificates", "0025", QUIET, {
    file: CERTIFICATES,
    find: "return this.#byHash.size === 0 ? null :",
    replace: "return this.#byHash.size >= 0 ? null :",
  }),
  mutant("revoked-key-found-by-its-hash", "0025", QUIET, {
    file: KEYS,
    find: "this.#byHash.delete(key.sha256);",
    replace: "",
  }),
  mutant(
    "snapshot-on-top-of-revoked-keys",
    "0025",
    { ...SKIPPED, keyChanges: 60 },
    {
      file: KEYS,
      find: "    this.#byName.clear();\n    this.#byHash.clear();\n",
      replace: "",
    },
  ),
  mutant(
    "two-keys-of-one-hash",
    "0025",
    { ...QUIET, keyChanges: 60 },
    {
      file: "controller/keys/keys.ts",
      find: "if (known !== undefined || fold.byHash(sha256) !== undefined) {",
      replace: "if (known !== undefined) {",
    },
  ),
  mutant("times-of-the-pause-are-caught-up", "0011", SCHEDULED, {
    file: EVOLVE,
    find: "const goesOn = isSame && (schedule.paused || !before.schedule.paused);",
    replace: "const goesOn = isSame;",
  }),
  mutant("changed-schedule-fires-times-of-before", "0011", SCHEDULED, {
    file: EVOLVE,
    find: "sinceMs: goesOn ? before.sinceMs : wallMs,",
    replace: "sinceMs: goesOn ? before.sinceMs : (before?.sinceMs ?? wallMs),",
  }),
];
