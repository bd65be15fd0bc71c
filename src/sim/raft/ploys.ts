// Faults with a purpose: each brings about, step by step, the situation in which a known mistake does its harm.
// Chance alone reaches these places once in thousands of runs; a simulator that relies on it finds too little.

import { nodeIdOf, parsePeerKey, peerKey, type PeerKey } from "../../core/kit/ids.ts";
import type { Random } from "../../core/kit/random.ts";
import { apply, type FileInfo, type Region, strike } from "../kernel/index.ts";
import type { Cluster } from "./cluster.ts";
import { figure8 } from "./figure-8.ts";
import { hostile, madMember, revenant } from "./hostile.ts";
import { campaign, crash, cut, later, leaderAndOthers } from "./hands.ts";
import { addVoter, presentPeer, swapVoters, transferLeadership } from "./operators.ts";

type Ploy = (cluster: Cluster, random: Random, hit: () => void) => void;

/** What a node has just promised when it dies. */
export const SENT_TYPES = ["MsgVote", "MsgVoteResp", "MsgAppResp", "MsgApp", "MsgTimeoutNow", "MsgSnap"] as const;
export type SentType = (typeof SENT_TYPES)[number];

/** As much of the log's end as a few writes take. */
const LAPSE_BYTES = 600;

export const PLOYS = {
  forged,
  hostile,
  "mad-member": madMember,
  revenant,
  contest,
  usurp,
  amnesia,
  drift,
  succession,
  "figure-8": figure8,
  schism,
  "stale-read": staleRead,
  relapse,
  lapse: (cluster, random, hit) => forgetting(cluster, random, hit, "disk-corrupt"),
  oblivion: (cluster, random, hit) => forgetting(cluster, random, hit, "disk-wipe"),
  hearsay,
  handover,
} satisfies Record<string, Ploy>;
export type PloyKind = keyof typeof PLOYS;

/** Well-formed messages that no honest peer sends: from strangers, for other disks, with wild terms. */
function forged(cluster: Cluster, random: Random, hit: () => void): void {
  const node = random.pick(cluster.names);
  const to = presentPeer(cluster, node);
  const other = presentPeer(cluster, random.pick(cluster.names));
  if (to === undefined) return;
  const stranger = random.pick([parsePeerKey("stranger@1")!, peerKey(random.pick(cluster.names), "bad")]);
  const forgeries: [PeerKey, PeerKey, number][] = [
    [stranger, to, 5],
    [stranger, peerKey(node, "dead"), 2 ** 40],
    // A member gone mad: its certificate is good, its term is not.
    [other ?? stranger, to, 2 ** 53 - 1],
  ];
  const [from, addressee, term] = random.pick(forgeries);
  cluster.world.network.inject(node, from, cluster.forgedVote(from, addressee, term), hit);
}

/** The leader dies, all the others campaign at the same moment, and one of them dies with its vote just told. */
function contest(cluster: Cluster, random: Random, hit: () => void): void {
  const { leader, others } = leaderAndOthers(cluster);
  if (leader === undefined || others.length === 0) return;
  crash(cluster, leader, random.between(200, 600), hit);
  later(cluster, random.between(150, 200), () => {
    crashOnSend(cluster, random.pick(others), "MsgVoteResp", random.between(0.1, 5), hit);
    for (const name of others) campaign(cluster, name);
  });
}

/** One follower does not hear the leader and campaigns; the rest, who do, are restarted and may forget that they did. */
function usurp(cluster: Cluster, random: Random, hit: () => void): void {
  const { leader, others } = leaderAndOthers(cluster);
  if (leader === undefined || others.length < 2) return;
  const usurper = random.pick(others);
  cut(cluster, leader, usurper, 900, hit);
  later(cluster, random.between(320, 500), () => {
    for (const node of others) {
      if (node === usurper) continue;
      crash(cluster, node, random.between(0.1, 3), hit);
      // Nothing reminds it, and the leader does not learn of it before its lease has run out.
      cut(cluster, leader, node, 150, hit);
    }
    for (let at = 0; at < 8; at++) later(cluster, 4 + at * 11, () => campaign(cluster, usurper));
  });
}

/**
 * A voter, or the candidate itself, dies with its promise just told, comes back at once, and is asked again for
 * the same term by one who never heard of it.
 */
function amnesia(cluster: Cluster, random: Random, hit: () => void): void {
  const { leader, others } = leaderAndOthers(cluster);
  if (leader === undefined || others.length < 2) return;
  const [candidate, voter] = random.chance(0.5) ? [others[0]!, others[1]!] : [others[1]!, others[0]!];
  const forgets = random.chance(0.5) ? voter : candidate;
  const knows = forgets === voter ? candidate : voter;
  crash(cluster, leader, 190, hit);
  cut(cluster, leader, knows, 900, hit);
  later(cluster, random.between(152, 165), () => {
    // What it promises is told before it is written, if anybody tells it so early.
    strike(cluster.world, { kind: "disk-hang", node: forgets, forMs: 60 }, hit);
    crashOnSend(cluster, forgets, forgets === voter ? "MsgVoteResp" : "MsgHeartbeat", random.between(8, 20), hit);
    campaign(cluster, candidate);
    later(cluster, random.between(6, 14), () => cut(cluster, voter, candidate, 700, hit));
    for (let at = 0; at < 10; at++) later(cluster, 45 + at * 12, () => campaign(cluster, leader));
  });
}

/** A leader whose clock runs slow is cut off from followers whose clocks run fast, and they campaign as early as they may. */
function drift(cluster: Cluster, random: Random, hit: () => void): void {
  const { leader, others } = leaderAndOthers(cluster);
  if (leader === undefined || others.length < 2) return;
  const { world } = cluster;
  world.node(leader).process.setClockRate(0.8);
  for (const name of others) world.node(name).process.setClockRate(1.2);
  later(cluster, random.between(100, 300), () => {
    strike(world, { kind: "partition", groups: [[leader], others], forMs: 500 }, hit);
    for (let at = 0; at < 15; at++) later(cluster, 60 + at * 9, () => campaign(cluster, random.pick(others)));
  });
}

/** Figure 8: one leader after the other takes entries that nobody else gets, dies, and comes back with them. */
function succession(cluster: Cluster, random: Random, hit: () => void): void {
  let rounds = 3 + random.below(3);
  const next = (): void => {
    const { leader, others } = leaderAndOthers(cluster);
    if (rounds-- === 0) return;
    if (leader !== undefined && others.length > 0) {
      const aloneMs = random.between(2, 60);
      strike(cluster.world, { kind: "partition", groups: [[leader], others], forMs: aloneMs }, hit);
      later(cluster, aloneMs * random.between(0.5, 1.2), () =>
        crash(cluster, leader, random.between(20, 250), hit, "keep"),
      );
    }
    later(cluster, random.between(100, 350), next);
  };
  next();
}

/**
 * The leader is alone with those who are not voters yet, and takes them in: one by one, as fast as it is asked to,
 * or all at once in place of the voters that it can't reach.
 */
function schism(cluster: Cluster, random: Random, hit: () => void): void {
  const leader = cluster.leader();
  if (leader === undefined) return;
  const { configuration } = leader.engine.status();
  const node = nodeIdOf(leader.engine.peer);
  const outside = cluster.names.filter(
    (name) => name !== node && !configuration.voters.some((peer) => nodeIdOf(peer) === name),
  );
  const inside = cluster.names.filter((name) => name !== node && !outside.includes(name));
  if (outside.length === 0 || inside.length === 0) return;
  strike(cluster.world, { kind: "partition", groups: [[node, ...outside], inside], forMs: 700 }, hit);
  if (random.chance(0.5)) {
    later(cluster, 5, () => swapVoters(cluster, leader.engine, inside, outside));
    return;
  }
  for (let at = 0; at < outside.length; at++) {
    later(cluster, 5 + at * random.between(0, 10), () => addVoter(cluster, leader.engine, outside[at]!));
  }
}

/**
 * A leader takes entries that nobody gets, is deposed, comes back, and loses power while what the others have
 * committed meanwhile replaces them on its disk.
 */
function relapse(cluster: Cluster, random: Random, hit: () => void): void {
  const { leader, others } = leaderAndOthers(cluster);
  if (leader === undefined || others.length < 2) return;
  const { world } = cluster;
  strike(world, { kind: "partition", groups: [[leader], others], forMs: 330 }, hit);
  for (let at = 0; at < 4; at++) {
    later(cluster, 5 + at, () => cluster.traffic?.writeAt(leader));
    later(cluster, 290 + at * 9, () => {
      const next = cluster.leader();
      if (next !== undefined) cluster.traffic?.writeAt(nodeIdOf(next.engine.peer));
    });
  }
  // A slow disk, so that the write that replaces them is long under way when the power goes.
  later(cluster, 325, () => strike(world, { kind: "disk-slow", node: leader, factor: 40, forMs: 250 }, hit));
  const lastTerm = (): number => cluster.member(leader)?.engine.status().lastTerm ?? 0;
  const before = lastTerm();
  const pull = (triesLeft: number): void => {
    if (triesLeft === 0) return;
    if (lastTerm() === before) return later(cluster, 0.25, () => pull(triesLeft - 1));
    later(cluster, random.between(0.3, 4), () => {
      const tear = random.pick(["torn", "sectors"] as const);
      strike(world, { kind: "disk-torn", node: leader, tear, restartAfterMs: 20 }, hit);
    });
  };
  later(cluster, 331, () => pull(600));
}

/**
 * What a bare majority has committed is gone from one of its nodes, whose drive lost a write that it had called durable, or was
 * replaced by an empty one. That node comes back among those who never got it, and they elect.
 */
function forgetting(cluster: Cluster, random: Random, hit: () => void, how: "disk-corrupt" | "disk-wipe"): void {
  const { world } = cluster;
  const status = cluster.leader()?.engine.status();
  if (status === undefined) return;
  const leader = nodeIdOf(status.peer);
  const others = status.configuration.voters.filter((peer) => peer !== status.peer);
  const forgets = others.find((peer) => cluster.member(nodeIdOf(peer))?.engine.peer === peer);
  const rest = others.filter((peer) => peer !== forgets).map(nodeIdOf);
  const behind = rest.slice(0, Math.ceil(rest.length / 2));
  if (forgets === undefined || behind.length === 0) return;
  const forgetful = nodeIdOf(forgets);
  const ahead = cluster.names.filter((name) => name !== forgetful && !behind.includes(name));
  const part = (away: readonly string[], forMs: number): void =>
    strike(world, { kind: "partition", groups: [ahead, away], forMs }, hit);
  part(behind, 1_000);
  for (let at = 0; at < 6; at++) later(cluster, 10 + at * 15, () => cluster.traffic?.writeAt(leader));
  later(cluster, 105, () => {
    const { configuration, committedIndex } = cluster.oracle;
    if (configuration === null || !cluster.memory.mayLose(forgetful, configuration, committedIndex)) return;
    cluster.memory.lost(forgetful);
    part([forgetful], 900);
    const corruptible = (_node: string, file: FileInfo): Region | undefined => {
      const last = world
        .node(forgetful)
        .disk.files()
        .findLast(({ name }) => name.startsWith("wal-"))?.name;
      const { name, durableBeforeBytes: toByte } = file;
      return name === last ? { fromByte: Math.max(0, toByte - LAPSE_BYTES), toByte } : undefined;
    };
    const fault = { atMs: world.nowMs, kind: how, node: forgetful, restartAfterMs: 5 } as const;
    apply(world, fault, { hit, corruptible });
    for (let at = 0; at < 12; at++) later(cluster, 40 + at * 60, () => campaign(cluster, random.pick(behind)));
  });
}

/**
 * The leader is cut off; everybody else sees its connections reset and refused, as if its process had ended, or is asked to
 * campaign at once. With a lease they have promised to wait, whatever they see and whoever asks.
 */
function hearsay(cluster: Cluster, random: Random, hit: () => void): void {
  const { leader, others } = leaderAndOthers(cluster);
  if (leader === undefined || others.length < 2) return;
  const { world } = cluster;
  const atMs = world.nowMs;
  if (random.chance(0.5)) {
    for (const other of others) apply(world, { atMs, kind: "reset-refused", a: other, b: leader }, { hit });
  } else {
    // All at the same moment: whoever asks for votes itself has no leader any more that it would have to defend.
    for (let at = 0; at < 8; at++) {
      later(cluster, 1 + at * 10, () => others.forEach((name) => campaign(cluster, name)));
    }
  }
  apply(world, { atMs, kind: "partition", groups: [[leader], others], forMs: 400 }, { hit });
}

/**
 * Leadership is handed over, and the leader is cut off when it has said so: it does not hear that the other leads already. Or it
 * is the other that does not hear of it, so that leadership stays.
 */
function handover(cluster: Cluster, random: Random, hit: () => void): void {
  const { leader, others } = leaderAndOthers(cluster);
  if (leader === undefined || others.length < 2) return;
  const afterMs = random.between(0.5, 15);
  const isHeard = random.chance(0.5);
  cluster.onNextSend(leader, "MsgTimeoutNow", (message) => {
    const target = nodeIdOf(message.to);
    // A cut that is made now still stops the message.
    if (!isHeard) return cut(cluster, leader, target, 400, hit);
    for (const other of others) if (other !== target) later(cluster, 0, () => cut(cluster, leader, other, 400, hit));
    later(cluster, afterMs, () => cut(cluster, leader, target, 400, hit));
  });
  transferLeadership(cluster, random.below(2 ** 30), false, hit);
}

/** The leader is cut off; while it does not know yet that another leads, it is asked what it has. */
function staleRead(cluster: Cluster, random: Random, hit: () => void): void {
  const { leader, others } = leaderAndOthers(cluster);
  if (leader === undefined || others.length < 2) return;
  strike(cluster.world, { kind: "partition", groups: [[leader], others], forMs: 450 }, hit);
  for (let at = 0; at < 14; at++) {
    later(cluster, 130 + at * 15, () => {
      if (at < 4) campaign(cluster, random.pick(others));
      const next = cluster.leader();
      if (next !== undefined && nodeIdOf(next.engine.peer) !== leader)
        cluster.traffic?.writeAt(nodeIdOf(next.engine.peer));
      cluster.traffic?.readAt(leader);
    });
  }
}

/** The next message of this type that `node` sends is the last thing it does, and what it had not synced is gone. */
export function crashOnSend(
  cluster: Cluster,
  node: string,
  type: SentType | "MsgHeartbeat",
  restartAfterMs: number,
  hit: () => void,
): void {
  // As its own event: the process is in the middle of one when it sends.
  cluster.onNextSend(node, type, () => later(cluster, 0, () => crash(cluster, node, restartAfterMs, hit, "vanish")));
}
