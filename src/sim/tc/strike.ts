// What each fault of a plan does to simulated coordinators. `hit` is called when it had an effect.

import { assertNever } from "../../core/kit/assert.ts";
import { nodeIdOf } from "../../core/kit/ids.ts";
import { generationOf } from "../../core/lease/index.ts";
import { LEASE_TTL_MS } from "../../core/lease/limits.ts";
import { LEASES_NAME, LEDGER_NAME } from "../../controller/coordinators/index.ts";
import { apply, type FileInfo, reached, type Region } from "../kernel/index.ts";
import { LEADER, type Operated, type OwnFault, type TcFault } from "./plan.ts";
import type { Stage } from "./stage.ts";

export function applyTcFault(stage: Stage, fault: TcFault, hit: () => void): void {
  const text = JSON.stringify(fault);
  const leader = stage.leader?.name;
  if (text.includes(`"${LEADER}"`) && leader === undefined) return;
  const resolved = JSON.parse(text.replaceAll(`"${LEADER}"`, `"${leader}"`)) as TcFault;
  if (resolved.kind === "cut" && resolved.a === resolved.b) return;
  if (resolved.kind === "cut-one-way" && resolved.from === resolved.to) return;
  strike(stage, resolved, hit);
}

function strike(stage: Stage, fault: TcFault, hit: () => void): void {
  const { world, operator } = stage;
  switch (fault.kind) {
    case "leave":
    case "resign":
    case "stop":
    case "unwilling":
    case "move":
    case "new-island":
      return operate(stage, fault, hit);
    case "wipe":
      if (!operator.mayWipe(fault.node)) return;
      return lose(stage, fault.node, fault.restartAfterMs, hit);
    case "damage": {
      if (!operator.mayWipe(fault.node)) return;
      const { node, restartAfterMs, atMs } = fault;
      stage.oracle.present.delete(node);
      return apply(world, { atMs, kind: "disk-corrupt", node, restartAfterMs }, { hit, corruptible: ledgerAlone });
    }
    case "old-copy": {
      const image = world.node(fault.node).disk.image();
      return after(stage, fault.ageMs, () => {
        if (!operator.mayWipe(fault.node)) return;
        hit();
        operator.putBack(fault.node, image);
      });
    }
    case "leases-lost":
      return loseLeases(stage, fault.restartAfterMs, hit);
    case "recover":
      return recover(stage, fault, hit);
    case "recover-beside":
      return recoverBeside(stage, fault, hit);
    case "forge-release":
    case "ghost-release":
    case "stale-roster":
      return forge(stage, fault, hit);
    case "odd-ttl":
    case "stop-and-go":
    case "others-restart":
    case "lost-founder":
      return strikeLeader(stage, fault, hit);
    case "deaf-member": {
      for (const name of stage.names)
        if (name !== fault.node) apply(world, { ...fault, kind: "cut-one-way", from: name, to: fault.node }, { hit });
      return;
    }
    case "stop-in-campaign":
      return stopInCampaign(stage, fault.restartAfterMs, hit);
    case "disk-torn":
      // With a ledger half written.
      return void stage.onWrite.set(fault.node, () => after(stage, 0.5, () => tear(stage, fault, hit)));
    default:
      return apply(world, fault, { hit });
  }
}

/** What operators do in order, at whatever moment. */
function operate(stage: Stage, fault: OwnFault & { kind: Operated }, hit: () => void): void {
  const { operator, places, oracle, world } = stage;
  switch (fault.kind) {
    case "leave":
      if (!operator.leave(fault.node)) return;
      hit();
      after(stage, 0.8 * fault.forMs, () => operator.leaveAgain(fault.node));
      return after(stage, fault.forMs, () => operator.rejoin(fault.node));
    case "resign":
      if (operator.resign()) hit();
      return;
    case "stop":
      if (operator.stop(fault.node, fault.restartAfterMs)) hit();
      return;
    case "unwilling":
      if (!operator.want(fault.node, false)) return;
      hit();
      return after(stage, fault.forMs, () => void operator.want(fault.node, true));
    case "move":
      // Founding waits for all seeds: one that is not there any more is the operator's to say (`tenure tc found --force`).
      if (stage.names.some((name) => (stage.durable(name)?.clusterId ?? null) === null)) return;
      operator.move(fault.node, fault.other ?? undefined, fault.restartAfterMs);
      return hit();
    case "new-island":
      places.newIsland(fault.node);
      reached(oracle.probes, "island-changed");
      return apply(world, { ...fault, kind: "crash" }, { hit });
    default:
      return assertNever(fault, "fault of an operator");
  }
}

function stopInCampaign(stage: Stage, restartAfterMs: number, hit: () => void): void {
  const { leader, onWrite, operator } = stage;
  const voters = leader?.coordinator.leadership?.roster.voters ?? [];
  const first = voters.find(({ peer }) => peer !== leader?.self);
  if (first === undefined || !operator.resign()) return;
  const name = nodeIdOf(first.peer);
  const stop = (): void => void (operator.stop(name, restartAfterMs) && hit());
  // First the release of whoever led, then its own grant.
  onWrite.set(name, () => onWrite.set(name, () => after(stage, 0, stop)));
}

export function loseLeases(stage: Stage, restartAfterMs: number, hit: () => void): void {
  const { world } = stage;
  for (const name of stage.names) {
    world.crash(name);
    world.node(name).disk.lose((file) => file === LEASES_NAME);
    world.startAfter(name, restartAfterMs);
  }
  hit();
}

function strikeLeader(
  stage: Stage,
  fault: OwnFault & { kind: "odd-ttl" | "stop-and-go" | "others-restart" | "lost-founder" },
  hit: () => void,
): void {
  const { world, leader } = stage;
  if (leader === undefined) return;
  const { name } = leader;
  const { atMs } = fault;
  switch (fault.kind) {
    case "odd-ttl":
      hit();
      stage.oddTtlMs.set(name, fault.ttlMs);
      return after(stage, fault.forMs, () => stage.oddTtlMs.delete(name));
    case "stop-and-go": {
      const { pauseMs, cutMs } = fault;
      const stop = (): void => {
        apply(world, { atMs, kind: "pause", node: name, forMs: pauseMs }, { hit });
        after(stage, pauseMs + 1, () => isolate(stage, name, cutMs));
      };
      // All of a round has left.
      stage.onRenewal.set(name, () => after(stage, 0, stop));
      return;
    }
    case "others-restart":
      isolate(stage, name, 2 * LEASE_TTL_MS);
      for (const node of stage.names.filter((one) => one !== name))
        apply(world, { atMs, kind: "crash", node, restartAfterMs: fault.restartAfterMs }, { hit });
      return;
    case "lost-founder": {
      const inCluster = (one: string): boolean => (stage.durable(one)?.clusterId ?? null) !== null;
      const other = stage.names.find((one) => one !== name && inCluster(one));
      if (other !== undefined) apply(world, { ...fault, kind: "cut", a: name, b: other }, { hit: () => {} });
      return lose(stage, name, 100, hit);
    }
    default:
      return assertNever(fault, "fault of a leader");
  }
}

function tear(stage: Stage, fault: TcFault & { kind: "disk-torn" }, hit: () => void): void {
  const torn = (): void => {
    reached(stage.oracle.probes, "torn-ledger-write");
    hit();
  };
  apply(stage.world, fault, { hit: torn });
}

function ledgerAlone(_node: string, { name, durableBytes }: FileInfo): Region | undefined {
  return name === LEDGER_NAME ? { fromByte: 0, toByte: durableBytes } : undefined;
}

function lose(stage: Stage, node: string, restartAfterMs: number, hit: () => void): void {
  stage.oracle.present.delete(node);
  stage.places.newLog(node);
  apply(stage.world, { atMs: stage.world.nowMs, kind: "disk-wipe", node, restartAfterMs }, { hit });
}

/** Two that recover into one generation make two clusters: the command asks, and this operator knows better. */
function mayRecover(stage: Stage): boolean {
  return stage.names.every((name) => generationOf(stage.durable(name)?.roster?.term ?? 0) === 0);
}

function recoverBeside(stage: Stage, fault: OwnFault & { kind: "recover-beside" }, hit: () => void): void {
  const { node, other, forMs, atMs } = fault;
  if (node === other || !mayRecover(stage)) return;
  for (const name of stage.names)
    if (name !== node && name !== other)
      apply(stage.world, { atMs, kind: "cut", a: node, b: name, forMs }, { hit: () => {} });
  if (stage.operator.recover(node)) hit();
}

function recover(stage: Stage, { node, forMs, atMs }: OwnFault & { kind: "recover" }, hit: () => void): void {
  if (!mayRecover(stage)) return;
  for (const name of stage.names)
    if (name !== node)
      apply(stage.world, { atMs, kind: "crash", node: name, restartAfterMs: forMs }, { hit: () => {} });
  if (stage.operator.recover(node)) hit();
}

/** What somebody with a certificate of this trust domain could send. */
function forge(
  stage: Stage,
  fault: OwnFault & { kind: "forge-release" | "ghost-release" | "stale-roster" },
  hit: () => void,
): void {
  const { leader } = stage;
  const leadership = leader?.coordinator.leadership ?? null;
  const clusterId = leader?.coordinator.ledger.clusterId ?? null;
  if (leader === undefined || leadership === null || clusterId === null) return;
  const { term, self: holder } = leadership;
  const by = fault.kind === "ghost-release" ? leader : stage.node(fault.node);
  if (by === undefined || (fault.kind !== "ghost-release" && by === leader)) return;
  const roster = by.coordinator.ledger.roster;
  if (fault.kind === "stale-roster" && roster === null) return;
  hit();
  for (const to of stage.names.filter((name) => name !== by.name)) {
    const voter = stage.oracle.present.get(to);
    // A server that forges rosters of its own term is outside of the model of faults.
    const isHolder = stage.durable(to)?.grant?.leader === by.self;
    if (voter === undefined || (fault.kind === "stale-roster" && isHolder)) continue;
    if (fault.kind === "forge-release") by.forge(to, { kind: "release", clusterId, holder, voter, term });
    else if (fault.kind === "ghost-release")
      by.forge(to, { kind: "release", clusterId, holder: `${by.name}@dead` as typeof holder, voter, term });
    else {
      const next = { ...roster!, version: roster!.version + 1 };
      const asked = { clusterId, holder: by.self, voter, term: next.term, ttlMs: LEASE_TTL_MS, mark: null };
      by.forge(to, { kind: "renew", ...asked, roster: next });
    }
  }
}

function isolate(stage: Stage, node: string, forMs: number): void {
  const others = stage.names.filter((name) => name !== node);
  apply(stage.world, { atMs: 0, kind: "partition", groups: [[node], others], forMs }, { hit: () => {} });
}

/** Not once the faults are over: then everything is as it should be already. */
function after(stage: Stage, forMs: number, fire: () => void): void {
  const { scheduler } = stage.world;
  scheduler.schedule(scheduler.nowMs + forMs, scheduler.owner("faults"), () => {
    if (!stage.isCalm) fire();
  });
}
