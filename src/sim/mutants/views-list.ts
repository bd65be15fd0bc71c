// The planted mistakes about jobs that the book has dropped, and about views that are built again while somebody reads: each must
// be found by the simulation of jobs.

import type { JobsKnobs } from "../jobs/index.ts";
import type { Edit, Mutant } from "./patch.ts";

const FINDER = "controller/jobs/finder.ts";
const BOOK = "core/jobs/state/book.ts";
const FEEDER = "controller/jobs/feeder.ts";
const REPLAYED = "controller/jobs/replayed-jobs.ts";
const SERVICE = "controller/jobs/jobs.ts";
const HANDLERS = "api/handlers/jobs.ts";
const WAIT = "client/until-final.ts";
const EVOLVE_JOB = "core/jobs/state/evolve-job.ts";
const ENCODE = "core/jobs/snapshot/encode.ts";

function mutant(name: string, pins: Partial<JobsKnobs>, ...edits: readonly Edit[]): Mutant {
  return { name, breaks: "trap 79", edits, subject: "jobs", limits: { pins } };
}

/** A book that drops nearly all, and views that are fed slowly, job by job, and lost again and again while many read. */
const REBUILT = {
  faults: 2,
  wallJumps: 0,
  clocks: "near",
  schedules: 0,
  outages: 0,
  moonlights: false,
  usurpations: 0,
  finishedMax: 1,
  putJobsMax: 1,
  readers: 3,
  readerPauseMs: 20,
  viewsDelayMs: 50,
  jobsMax: 60,
  clientPauseMs: 20,
  workMs: [5, 60],
  shortLived: 0.1,
  viewsFaults: 4,
  faultsUntilMs: 5_000,
} as const;
/** Requests are repeated under their keys, long after their jobs were dropped. */
const KEYED = { ...REBUILT, readers: 1, readerPauseMs: 100, viewsFaults: 1, clients: 3, lossRate: 0.1 } as const;

export const VIEWS_MUTANTS: readonly Mutant[] = [
  mutant("any-row-counts", REBUILT, {
    file: FINDER,
    find: "if (this.counts(position, look)) return",
    replace: "if (position >= 0) return",
  }),
  mutant("what-was-dropped-is-not-compared", REBUILT, {
    file: BOOK,
    find: "Math.max(this.droppedUpTo, this.#state.lastForgottenBy)",
    replace: "this.#state.lastForgottenBy",
  }),
  mutant(
    "what-was-forgotten-is-not-compared",
    { ...REBUILT, shortLived: 0.9, viewsDelayMs: 3_000, putJobsMax: 500 },
    {
      file: BOOK,
      find: "Math.max(this.droppedUpTo, this.#state.lastForgottenBy)",
      replace: "this.droppedUpTo",
    },
  ),
  mutant("wiped-views-answer-that-there-is-none", REBUILT, {
    file: FINDER,
    find: "const { position } = row;",
    replace: 'const { position } = row;\n        if (row.job === null) return { kind: "found", job: null, position };',
  }),
  mutant("list-does-not-wait-for-the-views", REBUILT, {
    file: HANDLERS,
    find: "const wanted = isDemanding(query) ? parts.events.head().sequence : 0;",
    replace: "const wanted = isDemanding(query) ? Math.min(0, parts.events.head().sequence) : 0;",
  }),
  mutant("list-states-the-position-of-the-log", REBUILT, {
    file: HANDLERS,
    find: "  return page;\n}",
    replace: "  return { ...page, position: parts.events.head().sequence };\n}",
  }),
  mutant("views-have-a-position-before-their-rows", REBUILT, {
    file: FEEDER,
    find: "const isAll = this.#changes.jobs === 0 && this.#sweptTo === null && this.#gap === null;",
    replace: "const isAll = this.#changes.jobs === 0 && this.#sweptTo === null;",
  }),
  mutant(
    "feeder-believes-its-own-position",
    { ...REBUILT, aims: ["wipe-views"] },
    {
      file: FEEDER,
      find: "this.#position = position;\n      this.#isInDoubt",
      replace: "this.#position = Math.max(this.#position, position);\n      this.#isInDoubt",
    },
  ),
  mutant(
    "feeder-skips-what-it-failed-to-put",
    { ...REBUILT, aims: ["crash-views"] },
    {
      file: FEEDER,
      find: "if (position < through && history !== null) this.#gap = { after: position, through };",
      replace: "if (position === 0 && history !== null) this.#gap = { after: position, through };",
    },
    {
      file: FEEDER,
      find: "this.#changes.giveBack(changes);",
      replace: "",
    },
  ),
  mutant(
    "replay-puts-over-what-is-newer",
    REBUILT,
    {
      file: REPLAYED,
      find: "if (!isElsewhere(jobId)) jobs.push(job);",
      replace: "jobs.push(job);",
    },
    {
      file: FEEDER,
      find: "{ isPast: true }",
      replace: "{ isPast: false }",
    },
  ),
  mutant(
    "wait-looks-once",
    REBUILT,
    {
      file: WAIT,
      find: "for (let next: Promise<unknown> | null = null; ;) {",
      replace:
        "await items.next();\n  const first = await look();\n  for (let next: Promise<unknown> | null = null; ;) {",
    },
    {
      file: WAIT,
      find: "const job = await look();",
      replace: "const job = first;",
    },
  ),
  mutant(
    "settling-is-a-step-of-its-own",
    {
      ...REBUILT,
      viewsFaults: 0,
      snapshotAfterEntries: 1_000,
      agents: 1,
      agentCapacity: 2,
      clients: 3,
      jobsMax: 200,
      workMs: [10, 40],
      viewsDelayMs: 20,
      aims: ["cut-doubt"],
    },
    {
      file: FEEDER,
      find: "else await views.trust();",
      replace: "else await views.put(position, [], [], [], { settles: true });",
    },
    {
      file: FEEDER,
      find: "{ line, settles: isAll && this.#isInDoubt }",
      replace: "{ line }",
    },
    {
      file: FEEDER,
      find: "if (isAll) this.#isInDoubt = false;",
      replace:
        "if (!isAll || !this.#isInDoubt) return;\n    this.#isInDoubt = false;\n    await views.put(position, [], [], [], { settles: true });",
    },
  ),
  mutant(
    "replay-leaves-out-what-is-only-proposed",
    { ...REBUILT, aims: ["vain-retry"], viewsDelayMs: 1, putJobsMax: 500 },
    {
      file: "controller/jobs/replay.ts",
      find: "fold.book.hasApplied(jobId) || isNewer(jobId)",
      replace: "fold.book.known(jobId) || isNewer(jobId)",
    },
  ),
  mutant(
    "sweep-passes-over-what-is-dropped-by-a-proposal",
    { ...REBUILT, aims: ["vain-retry"], viewsDelayMs: 1, putJobsMax: 500 },
    {
      file: "core/jobs/state/views.ts",
      find: 'return this.#look === "head" ? walked : this.#withDropped(walked, number, max);',
      replace: "return walked;",
    },
  ),
  mutant("key-goes-with-its-job", KEYED, {
    file: EVOLVE_JOB,
    find: "state.jobs.set(oldest.ticket.id, undefined);",
    replace:
      "state.jobs.set(oldest.ticket.id, undefined);\n    for (const key of [...state.keysByAge]) if (key.jobIds === oldest.ticket.id) state.keys.set(key.id, undefined);",
  }),
  mutant(
    "snapshot-without-keys-of-dropped-jobs",
    { ...KEYED, snapshotAfterEntries: 30, aims: ["power-cut"] },
    {
      file: ENCODE,
      find: "if (state.keys.asBegun(keys, key.id) !== key) continue;",
      replace: "if (state.keys.asBegun(keys, key.id) !== key || state.jobs.get(key.jobIds) === undefined) continue;",
    },
  ),
  mutant(
    "taken-over-without-a-look",
    {
      ...REBUILT,
      moonlights: true,
      clients: 3,
      faults: 8,
      faultsUntilMs: 10_000,
      aims: ["transfer", "crash-leading-supervisor"],
    },
    {
      file: SERVICE,
      find: "if (this.#remembers(request)) return this.#runShown(reign, { kind, request, jobId, job: null });",
      replace:
        "if (this.#remembers(request) || isBefore) return this.#runShown(reign, { kind, request, jobId, job: null });",
    },
    {
      file: SERVICE,
      find: "for (let look = 0; look < FOUND_LOOKS_MAX; look++) {",
      replace:
        "for (let look = 0; look < FOUND_LOOKS_MAX; look++) {\n      const isBefore = this.#reign.current === null;",
    },
  ),
  mutant(
    "overlap-forgets-a-job-that-was-dropped",
    {
      ...REBUILT,
      readers: 1,
      viewsFaults: 1,
      viewsDelayMs: 1,
      schedules: 6,
      outages: 2,
      clients: 1,
      clientPauseMs: 150,
      workMs: [500, 2_500],
      faultsUntilMs: 10_000,
      aims: ["revived"],
    },
    {
      file: EVOLVE_JOB,
      find: "submittedBy: by, schedule = null, attempt, attempts } = job;",
      replace: "submittedBy: by, attempt, attempts } = job;\n  const schedule = null;",
    },
  ),
];
