// The planted mistakes of jobs on servers: what is known to go wrong between a decision of the leader and its commit, and
// with leases. Each must be found by the simulation of jobs (sim/jobs).

import { CLOCK_MUTANTS } from "./clock-list.ts";
import { type Mutant, planting } from "./patch.ts";
import { HISTORY_MUTANTS } from "./history-list.ts";
import { inRunsOf, QUIET } from "./jobs-runs.ts";
import { RECEIPTS_MUTANTS } from "./receipts-list.ts";
import { STOP_MUTANTS } from "./stop-list.ts";
import { VALUES_MUTANTS } from "./values-list.ts";
import { VIEWS_MUTANTS } from "./views-list.ts";

const REIGN = "controller/jobs/jobs-reign.ts";
const JOURNAL_REIGN = "controller/journal/journal-reign.ts";
const LEASING = "controller/jobs/leasing.ts";
const FEEDER = "controller/jobs/feeder.ts";
const RETENTION = "controller/jobs/retention.ts";
const SCHEDULES = "controller/jobs/schedules.ts";
const CATCH_UP = "core/jobs/decide/catch-up.ts";
const TIMERS = "controller/jobs/timers.ts";
const WRITER = "controller/journal/writer.ts";
const SERVICE = "controller/jobs/jobs.ts";
const JOURNAL = "controller/journal/journal.ts";
const LEADERSHIP = "controller/leadership/raft-leadership.ts";
const LED = "controller/leadership/reign.ts";
const LEASE = "core/jobs/decide/lease.ts";
const AGENTS = "core/jobs/decide/agents.ts";
const EVOLVE = "core/jobs/state/evolve.ts";
const RESULTS = "core/jobs/decide/results.ts";
const TABLE = "core/jobs/state/table.ts";
const CLEARED = "controller/leadership/cleared-leadership.ts";
const NODE = "core/supervise/node.ts";

const mutant = planting(undefined, "jobs");

/** No job waits for another, or for an agent that has room. */
const AT_LEISURE = { ...QUIET, clients: 1, clientPauseMs: 400, jobsMax: 60 } as const;
/** Much is submitted, done and forgotten. */
const BUSY = { ...QUIET, clients: 3, clientPauseMs: 20, jobsMax: 60, agents: 3, agentCapacity: 3 } as const;
/** Leaders look for what to forget a second after they began. */
const FORGETFUL = {
  ...BUSY,
  clientPauseMs: 150,
  jobsMax: 300,
  eventMs: 0.1,
  shortLived: 0.9,
  workMs: [5, 60],
  faultsUntilMs: 16_000,
  putJobsMax: 500,
} as const;
/** From what is decided to what is committed it takes a while. */
const SLOW_DISK = { syncMs: [5, 40] } as const;
/** A snapshot takes so long that commands come in between. */
const SLOW_WRITES = { syncMs: [0.1, 1], writeMs: [1, 4] } as const;
const MOONLIT = { moonlights: true } as const;
const SCHEDULED = { schedules: 6, outages: 2 } as const;

export const JOBS_MUTANTS: readonly Mutant[] = [
  mutant("answer-before-commit", "D11", {
    file: REIGN,
    find: "await (decided.written ?? this.#reign.confirmed());",
    replace: "if (decided.written === null) await this.#reign.confirmed();",
  }),
  mutant("lease-given-before-commit", "D11", { file: LEASING, find: "await given.written;" }),
  inRunsOf({ aims: ["hasty-cancel"] })("early-rejection", "D11", {
    file: REIGN,
    find: "await this.#reign.confirmed();\n      throw decided.error;",
    replace: "throw decided.error;",
  }),
  inRunsOf({ ...QUIET, agents: 4, disk: SLOW_DISK, aims: ["reborn"] })("session-refused-early", "D11", {
    file: LEASING,
    find: "await this.#options.confirmed();\n      throw first.error;",
    replace: "throw first.error;",
  }),
  inRunsOf({ aims: ["hasty-cancel"] })("rejection-without-the-head-committed", "D11", {
    file: JOURNAL_REIGN,
    find: "await this.#writer.settled();",
  }),
  mutant(
    "jobs-gate-before-the-no-op",
    "D9",
    {
      file: LEADERSHIP,
      find: 'return role === "leader" && established ? term : null;',
      replace: 'return role === "leader" && established !== undefined ? term : null;',
    },
    {
      file: LED,
      find: "!this.#isClosed) void this.#open(epoch);",
      replace: "!this.#isClosed) {\n      this.#begin(epoch, 0);\n      void this.#open(epoch);\n    }",
    },
    { file: LED, find: 'if (opened.outcome === "opened") this.#begin(epoch, opened.head.position);' },
  ),
  mutant("read-from-head", "D11", {
    file: SERVICE,
    find: "return this.#options.fold.book.applied.job(jobId);",
    replace: "return this.#options.fold.book.head.job(jobId);",
  }),
  mutant("renewal-from-head", "D11", {
    file: LEASING,
    find: "const { applied } = this.#fold.book;",
    replace: "const applied = this.#fold.book.head;",
  }),
  inRunsOf({ ...BUSY, workMs: [100, 2_000], aims: ["deposed"] })("renewal-without-confirmation", "D15", {
    file: LEASING,
    find: "if (renew.length > 0 || (this.#isOver && leases.length === 0)) {",
    replace: "if (this.#isOver && leases.length === Infinity) {",
  }),
  inRunsOf({ ...QUIET, workMs: [500, 2_500], wallJumps: 12 })(
    "lease-by-wall-clock",
    "trap 56b",
    {
      file: TIMERS,
      find: "const nowMs = this.#clock.monotonicMs();\n    if (!this.#leases.has(jobId, jobEpoch)) this.#leases.start(jobId, jobEpoch, ttlMs, nowMs);",
      replace:
        "const nowMs = this.#clock.monotonicMs();\n    if (!this.#leases.has(jobId, jobEpoch)) this.#leases.start(jobId, jobEpoch, ttlMs, this.#clock.wallMs());",
    },
    {
      file: TIMERS,
      find: "this.#leases.touch(jobId, jobEpoch, this.#clock.monotonicMs());",
      replace: "this.#leases.touch(jobId, jobEpoch, this.#clock.wallMs());",
    },
    {
      file: TIMERS,
      find: "const soonMs = Math.min(this.#leases.nextMs,",
      replace: "const soonMs = Math.min(nowMs + this.#leases.nextMs - this.#clock.wallMs(),",
    },
    {
      file: TIMERS,
      find: "this.#leases.takeEach(nowMs,",
      replace: "this.#leases.takeEach(this.#clock.wallMs(),",
    },
  ),
  inRunsOf({ ...QUIET, workMs: [1_500, 3_000], ttlMs: 1_000 })("renewal-does-not-move-the-end", "D15", {
    file: TIMERS,
    find: "this.#leases.touch(jobId, jobEpoch, this.#clock.monotonicMs());",
  }),
  inRunsOf({
    ...AT_LEISURE,
    clientPauseMs: 150,
    faults: 0,
    lossRate: 0,
    agents: 1,
    agentCapacity: 10,
    workMs: [2_000, 4_000],
    ttlMs: 1_000,
    aims: ["lapse"],
  })("result-without-job-epoch", "trap 50", {
    file: RESULTS,
    find: "return run !== null && run.session === session && isSameLease(run, ref);",
    replace: "return run !== null && run.session === session && ref.jobId !== undefined;",
  }),
  mutant("export-before-commit", "D11", {
    file: JOURNAL,
    find: "events.push(...sealed);",
    replace: "events.push(...sealed);\n    for (const tell of this.#followers) for (const one of sealed) tell(one);",
  }),
  mutant("refused-append-stays-in-the-head", "D11", {
    file: WRITER,
    find: "const takenBack = this.#options.journal.rollback(append.after);",
    replace: "const takenBack = [];",
  }),
  inRunsOf({ ...QUIET, aims: ["orphan"] })("unknown-told-as-not-done", "trap 66", {
    file: WRITER,
    find: '          new TenureError(\n            "OUTCOME_UNKNOWN",',
    replace: '          new TenureError(\n            "NOT_LEADER",',
  }),
  inRunsOf({ ...FORGETFUL, viewsDelayMs: 3_000, aims: ["serial-forgetting"] })("forgotten-by-views-that-lag", "D10", {
    file: RETENTION,
    find: "if (position < Math.max(knownFrom, fold.book.droppedUpTo)) return false;",
  }),
  inRunsOf({ ...FORGETFUL, viewsDelayMs: 1, snapshotAfterEntries: 10, aims: ["missed-forgetting"] })(
    "views-skip-what-they-missed",
    "trap 56d",
    { file: FEEDER, find: "if (position < through && history !== null) this.#gap = { after: position, through };" },
  ),
  inRunsOf({ ...AT_LEISURE, agents: 4, agentCapacity: 3, workMs: [5, 60], failures: { work: 0.7, heavy: 0.7 } })(
    "what-is-due-stays-due",
    "D15",
    {
      file: LEASE,
      find: "readyNow(state, context);\n  if (state.isOvergrown) return;",
      replace: "if (state.isOvergrown) return;",
    },
  ),
  inRunsOf({ ...BUSY, workMs: [500, 2_500], lossRate: 0.15 })("takes-back-what-was-answered", "0011", {
    file: AGENTS,
    find: "run.poll <= answered || run.poll >= poll",
    replace: "run.poll >= poll",
  }),
  mutant("answered-without-taking-back", "0011", {
    file: LEASING,
    find: "if (answered >= poll - 1) return null;",
    replace: "if (answered >= 0) return null;",
  }),
  inRunsOf({ ...QUIET, usurpations: 4 })("agent-epoch-not-compared", "trap 75", {
    file: LEASE,
    find: "isOld : goesOn || agentEpoch !== undefined || past.includes(session)",
    replace: "isOld : past.includes(session)",
  }),
  inRunsOf({ ...QUIET, usurpations: 4 })("older-agent-takes-its-name-back", "trap 75", {
    file: LEASE,
    find: "isOld : goesOn || agentEpoch !== undefined || past.includes(session)",
    replace: "isOld : agentEpoch !== undefined || past.includes(session)",
  }),
  inRunsOf({ ...QUIET, usurpations: 4 })(
    "agent-epoch-forgotten-at-removal",
    "trap 75",
    {
      file: EVOLVE,
      find: 'isKept ? { ...before, state: "removed", sinceMs: atMs, owner: null } : undefined',
      replace: "isKept ? undefined : undefined",
    },
    {
      file: LEASE,
      find: "if (agentEpoch === undefined) return null;",
      replace: "if (agentEpoch !== -1) return null;",
    },
  ),
  inRunsOf({
    ...BUSY,
    jobsMax: 150,
    disk: SLOW_WRITES,
    snapshotAfterEntries: 30,
    snapshotSliceBytes: 1,
    statesEvery: 1,
    aims: ["power-cut"],
  })("snapshot-of-no-one-moment", "D10", {
    file: TABLE,
    find: "for (const kept of this.#snapshots) if (!kept.has(key)) kept.set(key, before);",
  }),
  inRunsOf(MOONLIT)("gate-open-beside-the-worker", "specification §2.3", {
    file: CLEARED,
    find: "return this.#isOpen && epoch === this.#held ? epoch : null;",
    replace: "return epoch;",
  }),
  inRunsOf(MOONLIT)("cleared-before-the-worker-is-gone", "specification §2.3", {
    file: NODE,
    find: "if (this.#clearing !== null && isGone(this.#agent)) {",
    replace: "if (this.#clearing !== null) {",
  }),
  inRunsOf(MOONLIT)("worker-started-beside-a-leader", "specification §2.3", {
    file: NODE,
    find: "if (this.#plan.moonlights && !this.#isHeld && !this.#isDrained && isDue) {",
    replace: "if (this.#plan.moonlights && !this.#isDrained && isDue) {",
  }),
  inRunsOf({ ...MOONLIT, survives: 0.5, aims: ["crash-leader", "transfer"] })(
    "survivor-taken-for-dead",
    "specification §2.3",
    {
      file: NODE,
      find: "if (survivors > 0 && !isTimeUp) {",
      replace: "if (survivors > 1_000 && !isTimeUp) {",
    },
  ),
  inRunsOf({ ...MOONLIT, aims: ["crash-supervisor", "crash-leading-supervisor"] })(
    "worker-of-the-supervisor-before-forgotten",
    "specification §2.3",
    {
      file: NODE,
      find: '#agent: Agent = { phase: "unknown" };',
      replace: '#agent: Agent = { phase: "off" };',
    },
  ),
  inRunsOf(SCHEDULED)("catch-up-without-a-slice", "trap 71", {
    file: SCHEDULES,
    find: "} while (!slice.isOver);",
    replace: "} while (slice !== null);",
  }),
  inRunsOf(SCHEDULED)("catch-up-over-a-rollback", "0023", {
    file: SCHEDULES,
    find: " || before.firedUpToMs !== work.upToMs",
  }),
  inRunsOf(SCHEDULED)("walk-resumed-too-late", "0023", {
    file: CATCH_UP,
    find: "this.#atMs = at;",
    replace: "this.#atMs = at + MINUTE_MS;",
  }),
  inRunsOf(SCHEDULED)("firing-not-remembered", "0011", {
    file: EVOLVE,
    find: "{ ...before, lastAtMs: atMs }",
    replace: "{ ...before, lastAtMs: before.lastAtMs }",
  }),
  inRunsOf(SCHEDULED)("missed-times-are-passed-by", "0011", {
    file: SCHEDULES,
    find: "new DueWalk(catchUp, next, upToMs, clock.wallMs())",
    replace: "new DueWalk(catchUp, next, Math.max(upToMs, clock.wallMs() - 60_000), clock.wallMs())",
  }),
  ...CLOCK_MUTANTS,
  ...STOP_MUTANTS,
  ...VIEWS_MUTANTS,
  ...HISTORY_MUTANTS,
  ...RECEIPTS_MUTANTS,
  ...VALUES_MUTANTS,
];
