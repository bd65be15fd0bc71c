// What goes wrong in a run of coordinators: faults of the kernel, and those of this room. Every fault ends by itself, so that any part of a plan
// is a plan. "leader" is whoever leads, or tries to, when the fault comes.

import { assertNever } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";
import { generationOf } from "../../core/lease/index.ts";
import { LEASE_TTL_MS, MEMBERSHIP_TTL_MS } from "../../core/lease/limits.ts";
import { apply, type Fault, type FileInfo, reached, type Region, weighted } from "../kernel/index.ts";
import { COORDINATOR_RATE_MAX, COORDINATOR_RATE_MIN, type TcKnobs } from "./knobs.ts";
import { LEASES_NAME, LEDGER_NAME } from "../../controller/coordinators/index.ts";
import type { Stage } from "./stage.ts";

const LEADER = "leader";

type Shape =
  | { kind: "leave"; node: string; forMs: number }
  | { kind: "resign" }
  /** It is stopped in order, and started again. */
  | { kind: "stop"; node: string; restartAfterMs: number }
  /** Nobody there wants to lead. */
  | { kind: "unwilling"; node: string; forMs: number }
  /** It is started again at another address, which nobody had before, or which was another node's. */
  | { kind: "move"; node: string; other: string | null; restartAfterMs: number }
  /** It is started again as a node of an island that was restored. */
  | { kind: "new-island"; node: string; restartAfterMs: number }
  /** It is started again with its disk as it was so long before, whose log is set aside. */
  | { kind: "old-copy"; node: string; ageMs: number }
  /** All are started again, and their membership leases are gone. */
  | { kind: "leases-lost"; restartAfterMs: number }
  /** Its disk is gone, or one bit of its ledger is wrong. */
  | { kind: "wipe"; node: string; restartAfterMs: number }
  | { kind: "damage"; node: string; restartAfterMs: number }
  /** Everybody is gone; one is recovered into the next generation; the others come back. */
  | { kind: "recover"; node: string; forMs: number }
  /** A node asks the others to release the leader's lease. */
  | { kind: "forge-release"; node: string }
  /** The leader's former disk asks for it. */
  | { kind: "ghost-release" }
  /** An old term's leader sends its roster once more. */
  | { kind: "stale-roster"; node: string }
  /** The leader's next requests ask for another time. */
  | { kind: "odd-ttl"; ttlMs: number; forMs: number }
  /** The leader stops with renewals under way, and goes on. */
  | { kind: "stop-and-go"; pauseMs: number; cutMs: number }
  /** The leader is cut off, and everybody else starts again: nobody remembers what was promised. */
  | { kind: "others-restart"; restartAfterMs: number }
  /** The first leader loses its disk, and can't reach all others. */
  | { kind: "lost-founder"; forMs: number }
  /** A member that is listed does not answer, while the registry is written. */
  | { kind: "deaf-member"; node: string; forMs: number };

type OwnFault = Shape extends infer S ? (S extends Shape ? Readonly<S> & { readonly atMs: number } : never) : never;
export type TcFault = Fault | OwnFault;

const WEIGHTS = {
  crash: 4,
  pause: 3,
  "clock-rate": 1,
  "wall-jump": 1,
  cut: 2,
  "cut-one-way": 3,
  partition: 3,
  lossy: 1,
  duplicating: 1,
  "slow-link": 2,
  "disk-slow": 1,
  "disk-torn": 2,
  "disk-fsync-error": 1,
  leave: 4,
  resign: 2,
  stop: 2,
  unwilling: 1,
  move: 1,
  "new-island": 1,
  "old-copy": 1,
  "leases-lost": 0.5,
  wipe: 2,
  damage: 1,
  recover: 0.3,
  "forge-release": 1,
  "ghost-release": 1,
  "stale-roster": 1,
  "odd-ttl": 1,
  "stop-and-go": 2,
  "others-restart": 1,
  "lost-founder": 0,
  "deaf-member": 1,
} as const;
type Kind = keyof typeof WEIGHTS;
const KINDS = weighted<Kind>(Object.fromEntries(Object.entries(WEIGHTS).map(([kind, weight]) => [kind, 10 * weight])));

const AIMED: Readonly<Record<TcKnobs["aim"], readonly Kind[]>> = {
  none: [],
  founding: ["lost-founder"],
  roster: ["leave", "partition", "cut-one-way", "crash", "wipe", "unwilling"],
  recovery: ["recover"],
  clock: ["stop-and-go", "stop-and-go", "others-restart", "cut", "resign", "odd-ttl"],
  registry: ["deaf-member", "deaf-member", "crash", "cut-one-way"],
  places: ["move", "move", "leases-lost", "new-island", "stop"],
  copies: ["old-copy", "old-copy", "crash"],
};
const AIMED_FAULTS = 5;
/** The first node never moves: seeds that are all wrong are an operator's to repair. */
const ANCHOR = "n1";

export function drawPlan(random: Random, names: readonly string[], knobs: TcKnobs): TcFault[] {
  const faults = Array.from({ length: knobs.faults }, (_, at) => draw(random.fork(`fault/${at}`), KINDS, names, knobs));
  const aimed = AIMED[knobs.aim];
  const aimedFaults = aimed.length === 1 ? 1 : AIMED_FAULTS;
  for (let at = 0; aimed.length > 0 && at < aimedFaults; at++)
    faults.push(draw(random.fork(`aimed/${at}`), aimed, names, knobs));
  const stream = random.fork("certain");
  // One that certainly has an effect (trap 33).
  faults.push({ atMs: Math.floor(knobs.faultsUntilMs * 0.5), kind: "pause", node: stream.pick(names), forMs: 50 });
  return faults.sort((a, b) => a.atMs - b.atMs);
}

function draw(random: Random, kinds: readonly Kind[], names: readonly string[], knobs: TcKnobs): TcFault {
  const kind = random.pick(kinds);
  const atMs = Math.floor(random.between(1_000, knobs.faultsUntilMs));
  const node = random.chance(0.5) ? LEADER : random.pick(names);
  const other = random.pick(names);
  // Around a lease: over before trust ends, between trust and the lease, after both; and around a membership lease.
  const drawnMs = LEASE_TTL_MS * random.pick([0.2, 0.6, 0.9, 1.1, 1.5, 3, 4]) * random.between(0.9, 1.1);
  const forMs = Math.floor(Math.min(drawnMs, Math.max(100, knobs.faultsUntilMs - atMs)));
  switch (kind) {
    case "crash":
      return { atMs, kind, node, restartAfterMs: forMs, silent: random.chance(0.4) };
    case "pause":
      return { atMs, kind, node, forMs };
    case "clock-rate":
      return { atMs, kind, node, rate: random.between(COORDINATOR_RATE_MIN, COORDINATOR_RATE_MAX), forMs };
    case "wall-jump":
      return { atMs, kind, node, byMs: random.pick([-3_600_000, -10_000, 10_000, 3_600_000]) };
    case "cut":
      return { atMs, kind, a: node, b: other, forMs };
    case "cut-one-way":
      return random.chance(0.5)
        ? { atMs, kind, from: node, to: other, forMs }
        : { atMs, kind, from: other, to: node, forMs };
    case "partition": {
      const mixed = names.filter(() => random.chance(0.5));
      const size = Math.max(1, Math.min(mixed.length, names.length - 1));
      const one = mixed.length === 0 ? [other] : mixed.slice(0, size);
      const groups = [one, names.filter((name) => !one.includes(name))];
      const long = random.chance(0.4) ? MEMBERSHIP_TTL_MS * random.between(1.1, 1.6) : forMs;
      return { atMs, kind, groups, forMs: Math.floor(long) };
    }
    case "lossy":
    case "duplicating":
      return { atMs, kind, rate: random.between(0.05, 0.6), forMs };
    case "slow-link":
      return { atMs, kind, latencyMinMs: random.between(5, 600), latencyTailMs: random.between(1, 300), forMs };
    case "disk-slow":
      return { atMs, kind, node, factor: random.between(5, 200), forMs };
    case "disk-torn":
      return { atMs, kind, node, tear: random.chance(0.5) ? "torn" : "sectors", restartAfterMs: forMs };
    case "disk-fsync-error":
      return { atMs, kind, node };
    case "leave":
      return { atMs, kind, node, forMs: Math.floor(random.between(500, 15_000)) };
    case "resign":
    case "ghost-release":
      return { atMs, kind };
    case "stop":
    case "new-island":
      return { atMs, kind, node, restartAfterMs: forMs };
    case "unwilling":
      return { atMs, kind, node, forMs: 4 * forMs };
    case "move": {
      const movable = names.filter((name) => name !== ANCHOR);
      const [mover, another] = [random.pick(movable), random.pick(movable)];
      const isSwap = mover !== another && random.chance(0.3);
      return { atMs, kind, node: mover, other: isSwap ? another : null, restartAfterMs: Math.floor(forMs / 4) };
    }
    case "old-copy":
      return { atMs, kind, node: other, ageMs: Math.floor(random.between(1_000, 15_000)) };
    case "leases-lost":
      return { atMs, kind, restartAfterMs: Math.floor(random.between(100, 12_000)) };
    case "wipe":
    case "damage":
      return { atMs, kind, node, restartAfterMs: Math.floor(random.between(100, 12_000)) };
    case "recover":
      return { atMs, kind, node: other, forMs: Math.floor(random.between(500, 12_000)) };
    case "forge-release":
    case "stale-roster":
      return { atMs, kind, node: other };
    case "odd-ttl":
      return { atMs, kind, ttlMs: random.pick([1, 50, 3_600_000]), forMs };
    case "stop-and-go":
      return { atMs, kind, pauseMs: Math.floor(LEASE_TTL_MS * random.between(0.3, 0.8)), cutMs: 2 * LEASE_TTL_MS };
    case "others-restart":
      return { atMs, kind, restartAfterMs: Math.floor(random.between(10, 500)) };
    case "lost-founder":
      return { atMs: Math.floor(random.between(1_500, 6_000)), kind, forMs: Math.floor(random.between(3_000, 9_000)) };
    case "deaf-member":
      return { atMs, kind, node: other, forMs: Math.floor(random.between(500, 6_000)) };
    default:
      return assertNever(kind, "kind of fault");
  }
}

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
    case "disk-torn":
      // With a ledger half written.
      return void stage.onWrite.set(fault.node, () => after(stage, 0.5, () => tear(stage, fault, hit)));
    default:
      return apply(world, fault, { hit });
  }
}

/** What operators do in order, at whatever moment. */
function operate(
  stage: Stage,
  fault: OwnFault & { kind: "leave" | "resign" | "stop" | "unwilling" | "move" | "new-island" },
  hit: () => void,
): void {
  const { operator, places, oracle, world } = stage;
  switch (fault.kind) {
    case "leave":
      if (!operator.leave(fault.node)) return;
      hit();
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

function recover(stage: Stage, { node, forMs, atMs }: OwnFault & { kind: "recover" }, hit: () => void): void {
  // Two that recover into one generation make two clusters: the command asks, and this operator knows better.
  const isFirst = stage.names.every((name) => generationOf(stage.durable(name)?.roster?.term ?? 0) === 0);
  if (!isFirst) return;
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
