// The planted mistakes about jobs that the book has dropped, and about views that are built again while somebody reads: each must
// be found by the simulation of jobs.

import { inRunsOf, QUIET } from "./jobs-runs.ts";
import type { Mutant } from "./patch.ts";

const FINDER = "controller/jobs/finder.ts";
const BOOK = "core/jobs/state/book.ts";
const FEEDER = "controller/jobs/feeder.ts";
const REPLAYED = "controller/jobs/replayed-jobs.ts";
const SERVICE = "controller/jobs/jobs.ts";
const HANDLERS = "api/handlers/jobs.ts";
const WAIT = "client/until-final.ts";
const EVOLVE_JOB = "core/jobs/state/evolve-job.ts";
const ENCODE = "core/jobs/snapshot/encode.ts";

/** A book that drops nearly all, and views that are fed slowly, job by job, and lost again and again while many read. */
const REBUILT = {
  ...QUIET,
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
  inRunsOf(REBUILT)("any-row-counts", "trap 79", {
    file: FINDER,
    find: "if (this.counts(position, look)) return",
    replace: "if (position >= 0) return",
  }),
  inRunsOf(REBUILT)("what-was-dropped-is-not-compared", "trap 79", {
    file: BOOK,
    find: "Math.max(this.droppedUpTo, this.#state.lastForgottenBy)",
    replace: "this.#state.lastForgottenBy",
  }),
  inRunsOf({ ...REBUILT, shortLived: 0.9, viewsDelayMs: 3_000, putJobsMax: 500 })(
    "what-was-forgotten-is-not-compared",
    "trap 79",
    {
      file: BOOK,
      find: "Math.max(this.droppedUpTo, this.#state.lastForgottenBy)",
      replace: "this.droppedUpTo",
    },
  ),
  inRunsOf(REBUILT)("wiped-views-answer-that-there-is-none", "trap 79", {
    file: FINDER,
    find: "const { position } = row;",
    replace: 'const { position } = row;\n        if (row.job === null) return { kind: "found", job: null, position };',
  }),
  inRunsOf(REBUILT)("list-does-not-wait-for-the-views", "trap 79", {
    file: HANDLERS,
    find: "const wanted = isDemanding(query) ? parts.events.head().sequence : 0;",
    replace: "const wanted = isDemanding(query) ? Math.min(0, parts.events.head().sequence) : 0;",
  }),
  inRunsOf(REBUILT)("list-states-the-position-of-the-log", "trap 79", {
    file: HANDLERS,
    find: "  return page;\n}",
    replace: "  return { ...page, position: parts.events.head().sequence };\n}",
  }),
  inRunsOf(REBUILT)("views-have-a-position-before-their-rows", "trap 79", {
    file: FEEDER,
    find: "const isAll = this.#changes.jobs === 0 && this.#sweptTo === null && this.#gap === null;",
    replace: "const isAll = this.#changes.jobs === 0 && this.#sweptTo === null;",
  }),
  inRunsOf({ ...REBUILT, aims: ["wipe-views"] })("feeder-believes-its-own-position", "trap 79", {
    file: FEEDER,
    find: "this.#position = position;\n      this.#isInDoubt",
    replace: "this.#position = Math.max(this.#position, position);\n      this.#isInDoubt",
  }),
  inRunsOf({ ...REBUILT, aims: ["crash-views"] })(
    "feeder-skips-what-it-failed-to-put",
    "trap 79",
    {
      file: FEEDER,
      find: "if (position < through && history !== null) this.#gap = { after: position, through };",
      replace: "if (position === 0 && history !== null) this.#gap = { after: position, through };",
    },
    { file: FEEDER, find: "this.#changes.giveBack(changes);" },
  ),
  inRunsOf(REBUILT)(
    "replay-puts-over-what-is-newer",
    "trap 79",
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
  inRunsOf(REBUILT)(
    "wait-looks-once",
    "trap 79",
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
  inRunsOf({
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
  })(
    "settling-is-a-step-of-its-own",
    "trap 79",
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
  inRunsOf({ ...REBUILT, aims: ["vain-retry"], viewsDelayMs: 1, putJobsMax: 500 })(
    "replay-leaves-out-what-is-only-proposed",
    "trap 79",
    {
      file: "controller/jobs/replay.ts",
      find: "fold.book.hasApplied(jobId) || isNewer(jobId)",
      replace: "fold.book.known(jobId) || isNewer(jobId)",
    },
  ),
  inRunsOf({ ...REBUILT, aims: ["vain-retry"], viewsDelayMs: 1, putJobsMax: 500 })(
    "sweep-passes-over-what-is-dropped-by-a-proposal",
    "trap 79",
    {
      file: "core/jobs/state/views.ts",
      find: 'return this.#look === "head" ? walked : this.#withDropped(walked, number, max);',
      replace: "return walked;",
    },
  ),
  inRunsOf(KEYED)("key-goes-with-its-job", "trap 79", {
    file: EVOLVE_JOB,
    find: "state.jobs.set(oldest.ticket.id, undefined);",
    replace:
      "state.jobs.set(oldest.ticket.id, undefined);\n    for (const key of [...state.keysByAge]) if (key.jobIds === oldest.ticket.id) state.keys.set(key.id, undefined);",
  }),
  inRunsOf({ ...KEYED, snapshotAfterEntries: 30, aims: ["power-cut"] })(
    "snapshot-without-keys-of-dropped-jobs",
    "trap 79",
    {
      file: ENCODE,
      find: "if (state.keys.asBegun(keys, key.id) !== key) continue;",
      replace: "if (state.keys.asBegun(keys, key.id) !== key || state.jobs.get(key.jobIds) === undefined) continue;",
    },
  ),
  inRunsOf({
    ...REBUILT,
    moonlights: true,
    clients: 3,
    faults: 8,
    faultsUntilMs: 10_000,
    aims: ["transfer", "crash-leading-supervisor"],
  })(
    "taken-over-without-a-look",
    "trap 79",
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
  inRunsOf({
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
  })("overlap-forgets-a-job-that-was-dropped", "trap 79", {
    file: EVOLVE_JOB,
    find: "submittedBy: by, schedule = null, attempt, attempts } = job;",
    replace: "submittedBy: by, attempt, attempts } = job;\n  const schedule = null;",
  }),
];
