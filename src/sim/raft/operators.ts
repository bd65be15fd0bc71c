// What operators do to a cluster while everything else happens to it: change its members, move its leadership.

import { nodeIdOf, peerKey, type PeerKey } from "../../core/kit/ids.ts";
import type { Random } from "../../core/kit/random.ts";
import {
  applyConfChange,
  isLearner,
  isMember,
  isVoter,
  members,
  type ConfChange,
  type ConfChangeOperation,
  type Configuration,
} from "../../core/raft/index.ts";
import type { Engine } from "../../engine/engine.ts";
import { strike } from "../kernel/index.ts";
import type { Cluster } from "./cluster.ts";
import { later } from "./hands.ts";
import { reached } from "./probes.ts";

/** The peer that a node is now, by the disk it has; undefined while that is not known. */
export function presentPeer(cluster: Cluster, name: string): PeerKey | undefined {
  const incarnation = cluster.memory.diskOf(name);
  return incarnation === undefined ? undefined : peerKey(name, incarnation);
}

/** A change that the present configuration allows, drawn when the leader really gets to hear of it. */
export function changeMembership(cluster: Cluster, draw: number, count: number, hit: () => void): void {
  const leader = cluster.leader();
  if (leader === undefined) return;
  const random = cluster.world.random.fork(`membership/${draw}`);
  // An impatient operator asks for the next change at once, without waiting for the one before.
  const haste = random.pick([1, 1, 2, 3]);
  cluster.world.call(nodeIdOf(leader.engine.peer), () => {
    for (let at = 0; at < haste; at++) {
      const { configuration, lastIndex } = leader.engine.status();
      const change = random.chance(0.25)
        ? drawSwap(cluster, random, configuration)
        : drawChange(cluster, random, configuration, count);
      const next = applyConfChange(configuration, change);
      if (change.operations.length === 0 || !next.ok || !cluster.memory.mayPropose(next.configuration)) continue;
      if (emptyRemoved(cluster, leader.engine, change, hit)) continue;
      // One voter alone can lose no disk, and most of what may happen to a cluster can't happen to it: seldom.
      const lonely = next.configuration.voters.length < Math.min(2, configuration.voters.length);
      if (lonely && random.chance(0.9)) continue;
      cluster.memory.proposed(lastIndex + 1, next.configuration);
      void leader.engine.changeMembership(change).then((result) => {
        if (result.outcome !== "refused") hit();
      });
    }
  });
}

/** A disk that was removed does not come back: its directory is emptied, and a later change may add what it is then. */
function emptyRemoved(cluster: Cluster, engine: Engine, { operations }: ConfChange, hit: () => void): boolean {
  const { committedConfiguration, configuration } = engine.status();
  const removed = operations.filter(
    ({ op, peer }) => op !== "remove" && configuration.removed?.includes(peer) === true,
  );
  for (const { peer } of removed) {
    const node = nodeIdOf(peer);
    const { configuration: known, committedIndex } = cluster.oracle;
    if (committedConfiguration.removed?.includes(peer) !== true || known === null) continue;
    if (isMember(known, peer) || !cluster.memory.mayLose(node, known, committedIndex)) continue;
    later(cluster, 0, () => {
      if (presentPeer(cluster, node) !== peer) return;
      cluster.memory.lost(node);
      strike(cluster.world, { kind: "disk-wipe", node, restartAfterMs: 20 }, hit);
    });
  }
  return removed.length > 0;
}

/** One node more among the voters. */
export function addVoter(cluster: Cluster, engine: Engine, name: string): void {
  propose(cluster, engine, () => additionsOf(cluster, [name]));
}

/** Some leave and others come, in one joint change. */
export function swapVoters(
  cluster: Cluster,
  engine: Engine,
  leaving: readonly string[],
  coming: readonly string[],
): void {
  propose(cluster, engine, (configuration) => [
    ...members(configuration)
      .filter((peer) => leaving.includes(nodeIdOf(peer)))
      .map((peer) => ({ op: "remove" as const, peer })),
    ...additionsOf(cluster, coming),
  ]);
}

function additionsOf(cluster: Cluster, names: readonly string[]): ConfChangeOperation[] {
  return names.flatMap((name) => {
    const peer = presentPeer(cluster, name);
    return peer === undefined ? [] : [{ op: "add-voter" as const, peer }];
  });
}

/** A new disk that takes over from a lost one is not removed alone: its node would be left with the lost one. */
function takesOver(configuration: Configuration, peer: PeerKey): boolean {
  return members(configuration).some((other) => other !== peer && nodeIdOf(other) === nodeIdOf(peer));
}

/** Where it leaves a majority with its memory. */
function propose(
  cluster: Cluster,
  engine: Engine,
  operations: (configuration: Configuration) => ConfChangeOperation[],
): void {
  cluster.world.call(nodeIdOf(engine.peer), () => {
    const { configuration, lastIndex } = engine.status();
    const change: ConfChange = { operations: operations(configuration) };
    const next = applyConfChange(configuration, change);
    if (!next.ok || !cluster.memory.mayPropose(next.configuration)) return;
    cluster.memory.proposed(lastIndex + 1, next.configuration);
    void engine.changeMembership(change);
  });
}

function drawChange(cluster: Cluster, random: Random, configuration: Configuration, count: number): ConfChange {
  const operations = new Map<string, ConfChangeOperation>();
  for (let at = 0; at < count; at++) {
    const peer = presentPeer(cluster, random.pick(cluster.names));
    if (peer === undefined) continue;
    const op = isVoter(configuration, peer)
      ? random.pick(["remove", "add-learner"] as const)
      : isLearner(configuration, peer)
        ? random.pick(["add-voter", "add-voter", "remove"] as const)
        : random.pick(["add-learner", "add-voter"] as const);
    if (op === "remove" && takesOver(configuration, peer)) continue;
    operations.set(peer, { op, peer });
  }
  return { operations: [...operations.values()] };
}

/** As many voters as there are others to take their place make way for them: the halves of the joint one barely meet. */
function drawSwap(cluster: Cluster, random: Random, configuration: Configuration): ConfChange {
  const others = cluster.names
    .map((name) => presentPeer(cluster, name))
    .filter((peer) => peer !== undefined && !isVoter(configuration, peer)) as PeerKey[];
  const leaving = [...configuration.voters]
    .filter((peer) => !takesOver(configuration, peer))
    .sort(() => random.next() - 0.5)
    .slice(0, others.length);
  return {
    operations: [
      ...leaving.map((peer) => ({ op: "remove" as const, peer })),
      ...others.slice(0, leaving.length).map((peer) => ({ op: "add-voter" as const, peer })),
    ],
  };
}

export function transferLeadership(cluster: Cluster, draw: number, force: boolean, hit: () => void): void {
  const leader = cluster.leader();
  if (leader === undefined) return;
  const random = cluster.world.random.fork(`transfer/${draw}`);
  const { voters } = leader.engine.status().configuration;
  const target = random.chance(0.3) ? null : random.pick(voters);
  cluster.world.call(nodeIdOf(leader.engine.peer), () => {
    if (leader.engine.status().role !== "leader") return;
    hit();
    void leader.engine.transfer(target, force);
  });
}

/** The leader is asked not to lead, for a while; whoever runs on its node then is willing again. */
export function drain(cluster: Cluster, engine: Engine, forMs: number, hit: () => void): void {
  const name = nodeIdOf(engine.peer);
  cluster.world.call(name, () => {
    if (engine.status().role !== "leader") return;
    hit();
    const { term } = engine.status();
    engine.setWilling(false);
    const stop = engine.subscribe((event) => {
      if (event.kind !== "transfer") return;
      stop();
      if (event.result.success && engine.status().term > term) reached(cluster.probes, "unwilling-leader-yielded");
    });
  });
  const { scheduler, nowMs } = cluster.world;
  const { owner } = cluster.world.node(name).process;
  scheduler.schedule(nowMs + forMs, owner, () => cluster.world.call(name, () => engine.setWilling(true)));
}
