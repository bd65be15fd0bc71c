// Those who pass the handshake and do not belong (trap 72): one that was never added, a disk that was removed, a disk that
// was swapped for another one and comes back; and a member gone mad, or a copy of its disk, that floods the others with
// terms. Each sends every kind of message with every term and index that might help it.
//
// What must hold at once: a message of a non-member changes nothing (no term, no vote, no role, no leader, no log), and a
// member raises a term only as far as time allows.

import { nodeIdOf, parsePeerKey, type PeerKey } from "../../core/kit/ids.ts";
import { TERM_JUMP_MAX, TERM_RISE_AT_START, TERM_RISE_PER_S_MAX } from "../../core/kit/limits.ts";
import type { Random } from "../../core/kit/random.ts";
import { configurationOf, isMember, members, type Message, type RaftStatus } from "../../core/raft/index.ts";
import { strike } from "../kernel/index.ts";
import type { Cluster } from "./cluster.ts";
import { crash, later } from "./hands.ts";
import { presentPeer } from "./operators.ts";
import { reached } from "./probes.ts";

const STRANGER = parsePeerKey("stranger@1")!;
const AHEAD = [0, 1, 2, 1_000, 2 ** 20, TERM_RISE_AT_START, TERM_JUMP_MAX] as const;
/** So many jumps at once as no bound per message alone would stop. */
const FLOOD = 40;
/** Until a lost disk was swapped: the silence of the old one, the catch-up of the new one, two changes. */
const SWAP_MS = [2_400, 3_600] as const;
const REVENANT_MS = 3_000;

/** A stranger, or a disk whose removal the node knows of, sends everything to one node. */
export function hostile(cluster: Cluster, random: Random, hit: () => void): void {
  const node = random.pick(cluster.names);
  const engine = cluster.member(node)?.engine;
  if (engine === undefined) return;
  const { configuration, committedConfiguration } = engine.status();
  const isSettled = configuration === committedConfiguration;
  const removed = isSettled ? (configuration.removed ?? []).filter((peer) => cluster.isUnnamed(peer)) : [];
  const from = removed.length > 0 && random.chance(0.7) ? random.pick(removed) : STRANGER;
  if (from === engine.peer) return;
  const isKnown = (): boolean => {
    const status = engine.status();
    if (from !== STRANGER && status.configuration !== configuration) return true;
    // It led this term until its removal was committed, and is heard within the term (core/raft/admission.ts).
    if (status.leader === from) return true;
    return isMember(status.configuration, from) || isMember(status.committedConfiguration, from);
  };
  for (const afterMs of [0, 25, 80]) {
    later(cluster, afterMs, () => {
      cluster.world.network.intrude(node, from, (send) => {
        if (isKnown() || !cluster.isUnnamed(from)) return;
        hit();
        reached(cluster.probes, from === STRANGER ? "stranger-refused" : "removed-disk-refused");
        assault(cluster, engine, from, random, send);
      });
    });
  }
}

interface Victim {
  readonly peer: PeerKey;
  status(): RaftStatus;
}

function assault(
  cluster: Cluster,
  victim: Victim,
  from: PeerKey,
  random: Random,
  send: (bytes: Uint8Array) => void,
): void {
  const before = victim.status();
  const messages = AHEAD.flatMap((ahead) => everything(from, before, before.term + ahead));
  for (const message of messages.sort(() => random.next() - 0.5)) {
    send(cluster.sealed(message));
    const changed = difference(before, victim.status());
    if (changed === null) continue;
    const text = `${message.type} of ${from}, which is no member, at term ${message.term} changed ${changed}`;
    return cluster.world.report(nodeIdOf(victim.peer), new Error(text));
  }
}

const WATCHED = ["term", "role", "vote", "leader", "lastIndex", "lastTerm", "commit", "configuration"] as const;

function difference(before: RaftStatus, now: RaftStatus): string | null {
  const field = WATCHED.find((name) => before[name] !== now[name]);
  return field === undefined
    ? null
    : `its ${field} from ${JSON.stringify(before[field])} to ${JSON.stringify(now[field])}`;
}

/** Every kind of message, with what might be believed of it. */
function everything(from: PeerKey, victim: RaftStatus, term: number): Message[] {
  const { peer: to, lastIndex: index, lastTerm, commit } = victim;
  const head = { from, to, term } as const;
  const logTerm = Math.min(lastTerm, term);
  const entries = [{ term, index: index + 1, type: "EntryNormal", data: new Uint8Array([102]) } as const];
  const snapshot = { index: index + 5, term, configuration: configurationOf([from]) };
  const answer = { index, rejectHint: 0, logTerm: 0, round: 0 } as const;
  const ask = { index: 2 ** 40, logTerm: term, transfer: true, priority: 255 } as const;
  return [
    { ...head, type: "MsgMembers", index: 2 ** 40, committed: true, members: [from, to].sort() },
    { ...head, type: "MsgApp", index, logTerm, entries, commit: index + 1, round: 1 },
    { ...head, type: "MsgApp", index, logTerm, entries: [], commit: index, round: 1 },
    { ...head, type: "MsgAppResp", ...answer, reject: false },
    { ...head, type: "MsgAppResp", ...answer, reject: true },
    { ...head, type: "MsgHeartbeat", commit, announced: 0, echo: 0, round: 1 },
    { ...head, type: "MsgHeartbeatResp", round: 1, priority: 0, willing: true, stalled: false },
    { ...head, type: "MsgSnap", snapshot, round: 1 },
    { ...head, type: "MsgVote", ...ask },
    { ...head, type: "MsgPreVote", ...ask },
    { ...head, type: "MsgVoteResp", reject: true },
    { ...head, type: "MsgVoteResp", reject: false },
    { ...head, type: "MsgPreVoteResp", reject: true },
    { ...head, type: "MsgPreVoteResp", reject: false },
    { ...head, type: "MsgTimeoutNow", force: false, attempt: 0 },
    { ...head, type: "MsgTransferRefused", attempt: 0 },
    { ...head, type: "MsgReadIndex", context: 1 },
    { ...head, type: "MsgReadIndexResp", context: 2 ** 40, index },
    { ...head, type: "MsgAskMembers" },
  ];
}

/** Once in a run: what the nodes may be raised by at once is gone then, and they catch up with each other by that. */
export function madMember(cluster: Cluster, random: Random, hit: () => void): void {
  const node = random.pick(cluster.names);
  const engine = cluster.member(node)?.engine;
  if (engine === undefined || cluster.hadFlood) return;
  // Not of a disk that is lost: to the others it would be back, and they would not swap it.
  const others = members(engine.status().committedConfiguration).filter(
    (peer) => peer !== engine.peer && presentPeer(cluster, nodeIdOf(peer)) === peer,
  );
  if (others.length === 0) return;
  const from = random.pick(others);
  cluster.world.network.intrude(node, from, (send) => {
    const before = engine.status();
    if (cluster.hadFlood || !isMember(before.configuration, from)) return;
    cluster.hadFlood = true;
    hit();
    reached(cluster.probes, "term-flood-bounded");
    for (let at = 0; at < FLOOD; at++) {
      for (const ahead of [TERM_JUMP_MAX, TERM_RISE_AT_START]) {
        const head = { from, to: engine.peer, term: engine.status().term + ahead } as const;
        send(
          cluster.sealed({ ...head, type: "MsgHeartbeatResp", round: 1, priority: 0, willing: true, stalled: false }),
        );
      }
    }
    const rise = engine.status().term - before.term;
    const most = TERM_RISE_AT_START + (cluster.world.nowMs / 1_000) * 2 * TERM_RISE_PER_S_MAX;
    if (rise > most) cluster.world.report(node, new Error(`a flood raised its term by ${rise}, more than ${most}`));
  });
}

/** A disk is lost and swapped for a new one; then the new one is silent for a while, and the old one comes back. */
export function revenant(cluster: Cluster, random: Random, hit: () => void): void {
  const { configuration, committedIndex } = cluster.oracle;
  const leader = cluster.leader()?.engine.peer;
  if (configuration === null || leader === undefined) return;
  const others = members(configuration).filter((peer) => nodeIdOf(peer) !== nodeIdOf(leader));
  // A learner is swapped in one step, so there is time to see what follows.
  const old = configuration.learners[0] ?? (others.length === 0 ? undefined : random.pick(others));
  if (old === undefined || presentPeer(cluster, nodeIdOf(old)) !== old) return;
  const node = nodeIdOf(old);
  if (!cluster.memory.mayLose(node, configuration, committedIndex)) return;
  cluster.memory.lost(node);
  strike(cluster.world, { kind: "disk-wipe", node, restartAfterMs: 20 }, hit);
  later(cluster, random.between(...SWAP_MS), () => {
    const now = cluster.leader()?.engine;
    const { committedConfiguration, configuration: inForce } = now?.status() ?? {};
    if (now === undefined || committedConfiguration?.removed?.includes(old) !== true) return;
    if (inForce !== committedConfiguration || nodeIdOf(now.peer) === node || !cluster.isUnnamed(old)) return;
    cluster.revenants.set(old, now.status().lastIndex);
    crash(cluster, node, REVENANT_MS, hit);
    for (const name of cluster.names) {
      if (name !== node) cluster.world.network.intrude(name, old, () => reached(cluster.probes, "revenant-refused"));
    }
  });
}
