// One run: a cluster, clients and a plan of faults, all from one seed. First safety, while the faults last;
// then the faults stop, and within a bound there must be one leader, equal logs, and a new write.

import { isJoint, members, type RaftOptions } from "../../core/raft/index.ts";
import { seededRandom } from "../../core/kit/random.ts";
import { incarnationOf, nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import type { Digest } from "../../ports/digest.ts";
import { noEffect, playScene, type SeedOptions, type SeedResult } from "../kernel/index.ts";
import { Clients, type ClientCounts } from "./clients.ts";
import { Cluster } from "./cluster.ts";
import { drawKnobs, type KnobLimits, type Knobs } from "./knobs.ts";
import { applyRaftFault, drawPlan, type RaftFault } from "./plan.ts";
import type { Probe } from "./probes.ts";

const CONVERGE_WITHIN_MS = 30_000;
const PROBE_INTERVAL_MS = 20;
const CLIENTS_GO_ON_MS = 500;
const STEPS_MAX = 5_000_000;

export interface RunOptions extends SeedOptions<KnobLimits, RaftFault> {
  readonly digest: Digest;
  readonly trace?: RaftOptions["trace"];
}

export interface RunResult extends SeedResult<Knobs, RaftFault, Probe> {
  readonly elections: number;
  readonly clients: ClientCounts;
}

export async function runSeed(options: RunOptions): Promise<RunResult> {
  const random = seededRandom(`raft/${options.seed}`);
  const knobs = drawKnobs(random.fork("knobs"), options.limits);
  const cluster = new Cluster({ ...options, seed: `raft/${options.seed}`, knobs });
  const clients = new Clients(cluster);
  cluster.traffic = clients;
  const { world, probes } = cluster;
  const result = await playScene<Knobs, RaftFault, Probe>({
    seed: options.seed,
    world,
    knobs,
    plan: options.plan ?? drawPlan(random.fork("plan"), cluster.names, knobs),
    probes,
    strike: (fault, hit) => applyRaftFault(cluster, fault, hit),
    begin: () => clients.start(),
    play: async () => {
      await run(cluster, knobs.faultsUntilMs, () => false);
      cluster.calm();
      return world.finding() ?? (await converge(cluster, clients)) ?? world.finding();
    },
    emptiness: (faults) =>
      clients.counts.acknowledged === 0 ? "no traffic: not one write was acknowledged" : noEffect(faults),
  });
  cluster.collect();
  return { ...result, elections: cluster.oracle.elections, clients: clients.counts };
}

function run(cluster: Cluster, untilMs: number, done: () => boolean): Promise<unknown> {
  return cluster.world.run(
    () => {
      cluster.check();
      return done();
    },
    { untilMs, stepsMax: STEPS_MAX },
  );
}

/** Liveness: without faults the cluster heals by itself, and then survives without its leader, each within a bound. */
async function converge(cluster: Cluster, clients: Clients): Promise<string | null> {
  const trouble = await settle(cluster, clients, null);
  const leader = cluster.leader();
  if (trouble !== null || leader === undefined || cluster.world.finding() !== null) return trouble;
  if (leader.engine.status().committedConfiguration.voters.length < 3) return null;
  // A majority must be enough: whoever leads now dies and does not come back.
  const dead = nodeIdOf(leader.engine.peer);
  cluster.world.crash(dead);
  return settle(cluster, clients, dead);
}

/** Until one leads, a new write is acknowledged, and all but `dead` have the same. */
async function settle(cluster: Cluster, clients: Clients, dead: string | null): Promise<string | null> {
  const deadlineMs = cluster.world.nowMs + CONVERGE_WITHIN_MS;
  // Clients go on for a while without faults, and then make room: a slow disk with eager clients never has equal logs.
  const quietFromMs = cluster.world.nowMs + CLIENTS_GO_ON_MS;
  let wrote = false;
  let askAgainAtMs = 0;
  await run(cluster, deadlineMs, () => {
    if (!wrote && cluster.world.nowMs >= askAgainAtMs && cluster.leader()?.engine.status().established === true) {
      askAgainAtMs = Infinity;
      clients.probe((acknowledged) => {
        askAgainAtMs = cluster.world.nowMs + PROBE_INTERVAL_MS;
        wrote ||= acknowledged;
      });
    }
    if (cluster.world.nowMs >= quietFromMs) clients.stop();
    return wrote && difference(cluster, dead) === null;
  });
  const since = dead === null ? "after the last fault" : `after ${dead} died for good`;
  const different = difference(cluster, dead);
  if (different !== null) return `no convergence within ${CONVERGE_WITHIN_MS} ms ${since}: ${different}`;
  return wrote ? null : `no write was acknowledged within ${CONVERGE_WITHIN_MS} ms ${since}`;
}

function difference(cluster: Cluster, dead: string | null): string | null {
  const leader = cluster.leader();
  if (leader === undefined) return "nobody leads";
  const status = leader.engine.status();
  if (!status.established) return `${status.peer} leads but is not established`;
  if (isJoint(status.committedConfiguration)) return "the configuration is still joint";
  for (const peer of members(status.committedConfiguration)) {
    if (nodeIdOf(peer) === dead) continue;
    const member = cluster.member(nodeIdOf(peer));
    const unlike = member === undefined ? `${peer} does not run` : unlikeness(cluster, peer, member, leader);
    if (unlike !== null) return unlike;
  }
  return null;
}

type Member = NonNullable<ReturnType<Cluster["member"]>>;

/** In what a member differs from its leader. */
function unlikeness(cluster: Cluster, peer: PeerKey, member: Member, leader: Member): string | null {
  const name = nodeIdOf(peer);
  const status = leader.engine.status();
  const own = member.engine.status();
  if (cluster.memory.diskOf(name) !== incarnationOf(peer)) return `${peer} is a member, but that disk is gone`;
  if (own.leader !== status.peer) return `${name} follows ${own.leader ?? "nobody"}`;
  if (own.applied !== status.applied || own.lastIndex !== status.lastIndex) {
    return `${name} has ${own.applied}/${own.lastIndex}, the leader ${status.applied}/${status.lastIndex}`;
  }
  return member.machine.hash === leader.machine.hash ? null : `${name} has another state at index ${own.applied}`;
}
