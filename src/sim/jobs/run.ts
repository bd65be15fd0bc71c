// One run of jobs: servers, agents, clients and a plan of faults, all from one seed. First safety, while the faults last;
// then the faults stop: whoever leads then stays, and within a bound every job is over and all servers have the same.

import { seededRandom } from "../../core/kit/random.ts";
import type { Digest } from "../../ports/digest.ts";
import { playScene, type RunEnd, type SeedOptions, type SeedResult } from "../kernel/index.ts";
import { startAgent } from "./agents.ts";
import { JobsClients, type JobsClientCounts } from "./clients.ts";
import { JobsCluster } from "./cluster.ts";
import { Followers } from "./followers.ts";
import { Keepers } from "./keepers.ts";
import { drawJobsKnobs, drawRaceKnobs, type JobsKnobs, type JobsLimits } from "./knobs.ts";
import { leaving } from "./leavers.ts";
import { ForeignSites } from "./foreign.ts";
import { historiesProblem } from "./oracle/chronicle.ts";
import { onTime } from "./oracle/on-time.ts";
import { applyJobsFault, drawJobsPlan, type JobsFault } from "./faults/plan.ts";
import type { JobsProbe } from "./probes.ts";
import { Readers } from "./readers.ts";
import { raceProblem, raceResult, type RaceResult } from "./race.ts";
import { ScheduleClient } from "./schedules.ts";
import { SimValues } from "./values/values.ts";

/** Besides the work that is left: for elections, leases of whoever is gone, and nodes that catch up. */
const CONVERGE_WITHIN_MS = 480_000;
/** Longer than the slowest views take to be built anew on all nodes, job by job. */
const WAITS_END_WITHIN_MS = 240_000;
/** Clients go on for a while without faults; where they had no chance before, until one was answered. */
const CLIENTS_GO_ON_MS = 500;
const CLIENTS_GO_ON_MS_MAX = 20_000;
/** For pages of other sites, one at a time. */
const FOREIGN_WITHIN_MS = 60_000;
const STEPS_MAX = 5_000_000;

export interface JobsRunOptions extends SeedOptions<JobsLimits, JobsFault> {
  readonly digest: Digest;
}

export interface JobsRunResult extends SeedResult<JobsKnobs, JobsFault, JobsProbe> {
  readonly jobs: number;
  readonly events: number;
  readonly clients: JobsClientCounts;
  readonly readers: Readers["counts"];
  /** Null: it was none. */
  readonly race: RaceResult | null;
}

export async function runJobsSeed(options: JobsRunOptions): Promise<JobsRunResult> {
  const isRace = options.limits?.race === true;
  const seed = `${isRace ? "race" : "jobs"}/${options.seed}`;
  const random = seededRandom(seed);
  const knobs = (isRace ? drawRaceKnobs : drawJobsKnobs)(random.fork("knobs"), options.limits);
  const cluster = new JobsCluster({ ...options, seed, knobs, startAgent });
  const { world, oracle, probes } = cluster;
  const clients = new JobsClients(cluster);
  cluster.clients = clients;
  const readers = new Readers(
    cluster,
    () => clients.known,
    (jobId) => clients.learn(jobId),
  );
  const followers = new Followers(cluster);
  const foreign = new ForeignSites(cluster, options.digest);
  const values = new SimValues(cluster);
  const result = await playScene<JobsKnobs, JobsFault, JobsProbe>({
    seed: options.seed,
    world,
    knobs,
    plan: options.plan ?? drawJobsPlan(random.fork("plan"), cluster, knobs),
    probes,
    strike: (fault, hit) => applyJobsFault(cluster, fault, hit),
    begin: () => {
      const others = [new ScheduleClient(cluster), new Keepers(cluster), followers, foreign, values];
      for (const one of [clients, readers, ...others]) one.start();
    },
    play: () => play(cluster, { clients, readers, followers, foreign, values }),
    emptiness: () => {
      const problem = isRace ? raceProblem(oracle, knobs) : null;
      return problem ?? (clients.counts.submitted === 0 ? "no traffic: not one job was submitted" : null);
    },
  });
  return {
    ...result,
    jobs: oracle.jobs.size,
    events: oracle.head,
    clients: clients.counts,
    readers: readers.counts,
    race: isRace ? raceResult(oracle) : null,
  };
}

/** Who is at the servers. */
interface Cast {
  readonly clients: JobsClients;
  readonly readers: Readers;
  readonly followers: Followers;
  readonly foreign: ForeignSites;
  readonly values: SimValues;
}

async function play(cluster: JobsCluster, cast: Cast): Promise<string | null> {
  const { world, knobs } = cluster;
  await world.run(() => false, { untilMs: knobs.faultsUntilMs, stepsMax: STEPS_MAX });
  cluster.calm();
  cluster.clocks.turn();
  const calmMs = world.nowMs;
  return (
    world.finding() ??
    (await converge(cluster, cast)) ??
    (await foreignArrived(cluster, cast.foreign)) ??
    (await cast.values.problem(STEPS_MAX)) ??
    (await onTime(cluster, STEPS_MAX)) ??
    world.finding() ??
    cluster.deposition(calmMs) ??
    (await leaving(cluster, STEPS_MAX)) ??
    (await historiesProblem(cluster, STEPS_MAX)) ??
    (await arrivalsProblem(cluster)) ??
    world.finding()
  );
}

/** Nothing fails any more: all servers have what other sites have. */
async function foreignArrived({ world }: JobsCluster, foreign: ForeignSites): Promise<string | null> {
  foreign.stop();
  if (foreign.difference() === null) return null;
  await world.run(() => foreign.difference() === null, {
    untilMs: world.nowMs + FOREIGN_WITHIN_MS,
    stepsMax: STEPS_MAX,
  });
  const problem = world.finding() === null ? foreign.difference() : null;
  return problem === null ? null : `${FOREIGN_WITHIN_MS} ms after the last fault ${problem}`;
}

async function arrivalsProblem(cluster: JobsCluster): Promise<string | null> {
  const { world, names, knobs, arrivals } = cluster;
  if (knobs.foreignEvents === 0 || world.findings.length > 0) return null;
  const limits = { untilMs: world.nowMs + FOREIGN_WITHIN_MS, stepsMax: STEPS_MAX };
  const isWhole = (name: string): boolean => cluster.server(name)?.receipts?.isComplete === true;
  await world.run(() => names.every(isWhole), limits);
  for (const [at, name] of names.entries()) {
    const { archive, receipts } = cluster.server(name) ?? { archive: null, receipts: null };
    if (archive === null || receipts === null || !isWhole(name)) return `${name} still lacks receipts`;
    let end: string | null | undefined;
    const from = 1 + Math.floor((arrivals.last * at) / names.length);
    world.call(name, () => {
      arrivals.problem({ archive, receipts }, from).then(
        (problem) => (end = problem),
        (error: unknown) => (end = `can't read its receipts: ${String(error)}`),
      );
    });
    await world.run(() => end !== undefined || world.findings.length > 0, limits);
    if (end !== null) return `${name} ${end ?? "does not come to the end of its receipts"}`;
  }
  return null;
}

async function converge(cluster: JobsCluster, cast: Cast): Promise<string | null> {
  const { clients, readers, followers } = cast;
  const { world, oracle } = cluster;
  const atLeastMs = world.nowMs + CLIENTS_GO_ON_MS;
  await world.run(() => world.nowMs >= atLeastMs && clients.counts.submitted > 0, {
    untilMs: world.nowMs + CLIENTS_GO_ON_MS_MAX,
    stepsMax: STEPS_MAX,
  });
  if (world.finding() !== null) return null;
  for (const one of [clients, readers, followers, cast.values]) one.stop();
  const withinMs = workLeft(cluster);
  const startMs = world.nowMs;
  let head = -1;
  // Compared only where something was committed, or the slowest node caught up.
  const isConverged = (): boolean => {
    const sum = oracle.head + cluster.names.reduce((all, name) => all + oracle.positionOf(name), 0);
    if (sum === head) return false;
    head = sum;
    return cluster.difference() === null;
  };
  let end: RunEnd;
  let boundMs = 0;
  // Once more, where schedules have fired meanwhile: that is more work.
  do {
    boundMs = withinMs();
    end = await world.run(isConverged, { untilMs: startMs + boundMs, stepsMax: STEPS_MAX });
  } while (end === "time" && withinMs() > boundMs);
  const different = end === "predicate" || world.finding() !== null ? null : cluster.difference();
  if (different !== null) return `no convergence within ${boundMs} ms after the last fault: ${different}`;
  const waitsUntilMs = world.nowMs + WAITS_END_WITHIN_MS;
  const late = (): string | null => readers.overdue() ?? followers.overdue();
  await world.run(() => late() === null, { untilMs: waitsUntilMs, stepsMax: STEPS_MAX });
  const overdue = late();
  return world.finding() ?? (overdue === null ? null : `${WAITS_END_WITHIN_MS} ms after all have ended ${overdue}`);
}

/**
 * The time within which everything is to be over, from now on: the longest that the jobs which are left now, and those that come later, can take
 * with all their attempts in the places that agents have.
 */
function workLeft({ oracle, knobs }: JobsCluster): () => number {
  const over = new Set([...oracle.jobs].filter(([, { isFinal }]) => isFinal).map(([jobId]) => jobId));
  const places = knobs.agents * knobs.agentCapacity;
  return () => {
    let sumMs = 0;
    for (const [jobId, { spec }] of oracle.jobs) {
      if (!over.has(jobId)) sumMs += spec.attemptsMax * (knobs.workMs[1] + spec.backoff.maxMs);
    }
    return CONVERGE_WITHIN_MS + Math.ceil(sumMs / places);
  };
}
