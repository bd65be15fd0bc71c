// What one seed decides about a run of jobs before it begins: weather, limits, and how hard clients and agents push.

import { JOBS_FINISHED_BYTES_MAX } from "../../core/kit/limits.ts";
import type { Random } from "../../core/kit/random.ts";
import type { DiskModel, LinkModel } from "../kernel/index.ts";
import { CLOCK_MOODS } from "./clocks.ts";
import type { OwnKind } from "./faults/plan.ts";
import type { JobsPloyKind } from "./faults/ploys.ts";
import type { ViewsFault } from "./faults/views.ts";

/** How far any clock may run fast or slow; agents allow for it in what they believe. */
export const SIM_DRIFT_MAX = 0.03;

/** Each comparison is a whole snapshot. */
const STATES_EVERY = 8;

/** Longer than all faults of a run together: no agent that has heard of its lease loses it. */
export const LONG_TTL_MS = 30_000;

/** What `drawAll` draws. */
export type JobsKnobs = Readonly<ReturnType<typeof drawAll>>;

export type JobsAim = OwnKind | JobsPloyKind | ViewsFault["kind"];

export interface JobsLimits {
  readonly race?: boolean | undefined;
  /** What the seed does not decide. */
  readonly pins?: Partial<JobsKnobs> | undefined;
}

export function drawJobsKnobs(random: Random, { pins }: JobsLimits = {}): JobsKnobs {
  return { ...drawAll(random), ...pins };
}

function drawAll(random: Random) {
  const servers = 3;
  const agents = random.fork("agents").pick([1, 2, 3, 3, 4]);
  return { servers, agents, ...drawWork(random), ...drawMachines(random, servers + agents), ...drawFaults(random) };
}

/** How hard clients and agents push, and what is read of it. */
function drawWork(random: Random) {
  const viewsDelayMs = random.fork("views-delay").pick([1, 50, 1_500, 3_000]);
  const moonlights = random.fork("moonlights").chance(0.4);
  return {
    agentCapacity: random.fork("capacity").pick([1, 2, 3]),
    clients: 1 + random.fork("clients").below(3),
    clientPauseMs: random.fork("client-pause").pick([20, 60, 150]),
    jobsMax: random.fork("jobs").pick([20, 40, 60]),
    /** How many of the jobs are forgotten soon after their end. */
    shortLived: random.fork("short-lived").pick([0.4, 0.4, 0.9]),
    ttlMs: random.fork("ttl").pick([1_000, 1_500, 2_500]),
    workMs: random.fork("work").pick<readonly [number, number]>([
      [5, 60],
      [20, 500],
      [100, 2_000],
    ]),
    /** How often attempts fail that agents carry through. */
    failures: { work: 0.08, heavy: 0.25 },
    /** What the book keeps of finished jobs: little, so that in each run most are dropped, and are in the views alone. */
    finishedMax: random.fork("finished-max").pick([1, 3, 8, 20]),
    finishedBytesMax: random.fork("finished-bytes").pick([2_000, JOBS_FINISHED_BYTES_MAX, JOBS_FINISHED_BYTES_MAX]),
    /** How long the views take to be fed, at most. */
    viewsDelayMs,
    /** What views are fed at a time. Slow ones that are fed job by job would not catch up in a run, nor anybody who waits for them. */
    putJobsMax: random.fork("put-jobs").pick(viewsDelayMs > 50 ? [20, 500] : [1, 3, 500]),
    readers: random.fork("readers").pick([1, 2]),
    readerPauseMs: random.fork("reader-pause").pick([40, 100]),
    /** Who follows the events, and who asks for pages and proofs. */
    followers: random.fork("followers").pick([1, 2]),
    /** How many times keys and certificates are changed. */
    keyChanges: random.fork("key-changes").pick([4, 10, 20]),
    /** Events of other sites that are brought; 0: the site is alone. */
    foreignEvents: random.fork("foreign-events").pick([0, 0, 0, 20, 80]),
    /** What is charged for a question for a schedule's next time, and for an event that is decided. */
    nextFireMs: random.fork("next-fire-ms").pick([0.3, 1, 1, 3]),
    eventMs: random.fork("event-ms").pick([0.1, 0.3, 0.3]),
    /** Servers work while they do not lead. */
    moonlights,
    /** Who writes values; 0: nobody does, nor watches them. */
    valueWriters: random.fork("value-writers").pick([0, 0, 2, 4]),
    writerPauseMs: random.fork("writer-pause").pick([80, 200]),
    /** Until then one server is of a release that can't read values; 0: all can from the start. */
    upgradedMs: moonlights ? 0 : random.fork("upgraded").pick([0, 0, 2_500]),
    /** A race for ten jobs (race.ts): agents do what they are given, and only servers fail. */
    race: false,
  };
}

function drawMachines(random: Random, machines: number) {
  const pace = random.fork("pace");
  const slow = random.fork("slow").pick([1, 1, 1, 5]);
  const drifting = random.fork("drifting").chance(0.6);
  const link: Partial<LinkModel> = {
    latencyMinMs: slow * pace.between(0.05, 2),
    latencyTailMs: slow * pace.between(0.05, 3),
  };
  const disk: Partial<DiskModel> = {
    syncMs: random.fork("sync-ms").pick([
      [0.1, 1],
      [0.5, 3],
      [5, 40],
    ]),
  };
  return {
    link,
    disk,
    snapshotAfterEntries: random.fork("snapshot").pick([30, 100, 1_000]),
    /** How much of a snapshot is made in one turn: little, so that commands come in between. */
    snapshotSliceBytes: random.fork("snapshot-slice").pick([1, 200, 64 * 1024]),
    /** So many events apart the servers' states are compared. */
    statesEvery: STATES_EVERY,
    /** How long the others take to send eight segments that are missing here, at most. */
    historyFetchMs: random.fork("history-fetch").pick([1, 200, 6_000]),
    /** One server sends wrong segments now and then. */
    historyLies: random.fork("history-lies").chance(0.3),
    segmentEvents: random.fork("segment-events").pick([5, 20, 60]),
    uncommittedBytesMax: random.fork("uncommitted").pick([1_500, 6_000, 1_000_000]),
    enableLease: random.fork("lease").chance(0.3),
    clockRates: Array.from({ length: machines }, (_, at) =>
      drifting ? random.fork(`rate/${at}`).between(1 - SIM_DRIFT_MAX, 1 + SIM_DRIFT_MAX) : 1,
    ),
    /** How often a request, or its answer, is lost on the way. */
    lossRate: random.fork("loss").pick([0, 0.02, 0.1]),
  };
}

function drawFaults(random: Random) {
  const seconds = random.fork("duration").between(5, 11);
  const schedules = random.fork("schedules").pick([0, 0, 2, 4, 6]);
  const aims: readonly JobsAim[] = [];
  return {
    faults: 4 + random.fork("faults").below(Math.ceil(seconds * 2)),
    faultsUntilMs: Math.floor(seconds * 1_000),
    /** So many more times the leader's wall clock is set, mostly forwards. */
    wallJumps: random.fork("wall-jumps").pick([0, 0, 0, 12]),
    /** How far servers' clocks are off. */
    clocks: random.fork("clocks").pick(CLOCK_MOODS),
    /** How often views or a node's history are lost. */
    viewsFaults: random.fork("views-faults").pick([1, 2, 4]),
    /** How often a node's history alone is lost, or fails. */
    historyFaults: random.fork("history-faults").pick([0, 1, 4]),
    schedules,
    /** How often everybody is down for hours. */
    outages: schedules === 0 ? 0 : random.fork("outages").pick([1, 1, 2]),
    /** How often a worker outlives SIGKILL for a while. */
    survives: 0.05,
    /** How often an agent's name is taken while it stands still. */
    usurpations: 1 + random.fork("usurped").below(2),
    /** Faults that lead to what is looked for: some of each run, in addition to what it draws anyway. */
    aims,
  };
}

/** Twenty agents, of which each has room for one job; and whatever the seed says next to. */
export function drawRaceKnobs(random: Random): JobsKnobs {
  const drawn = drawAll(random);
  const agents = 20;
  return {
    ...drawn,
    agents,
    agentCapacity: 1,
    clients: 1,
    jobsMax: 10,
    ttlMs: random.fork("race-ttl").pick([1_000, 2_500, LONG_TTL_MS, LONG_TTL_MS]),
    lossRate: random.fork("race-loss").pick([0, 0, 0.02]),
    clockRates: Array.from(
      { length: drawn.servers + agents },
      (_, at) => drawn.clockRates[at % drawn.clockRates.length] as number,
    ),
    faults: 2 + random.fork("race-faults").below(6),
    wallJumps: 0,
    schedules: 0,
    outages: 0,
    clocks: "near",
    moonlights: false,
    valueWriters: 0,
    usurpations: 0,
    viewsFaults: 0,
    historyFaults: 0,
    readers: 1,
    race: true,
  };
}
