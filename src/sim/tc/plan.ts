// What goes wrong in a run of coordinators: faults of the kernel, and those of this room. Every fault ends by itself, so that any part of a plan
// is a plan. "leader" is whoever leads, or tries to, when the fault comes. What each does: strike.ts.

import { assertNever } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";
import { LEASE_TTL_MS, MEMBERSHIP_TTL_MS } from "../../core/lease/limits.ts";
import { type Fault, weighted } from "../kernel/index.ts";
import { COORDINATOR_RATE_MAX, COORDINATOR_RATE_MIN, type TcKnobs } from "./knobs.ts";

export const LEADER = "leader";

type Shape =
  | { kind: "leave"; node: string; forMs: number }
  | { kind: "resign" }
  /** It is stopped in order, and started again. */
  | { kind: "stop"; node: string; restartAfterMs: number }
  /** The leader resigns, and whoever campaigns first after that is stopped in order, with its own grant on the way to its disk. */
  | { kind: "stop-in-campaign"; restartAfterMs: number }
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
  /** One is recovered while the others go on, and reaches a single one of them. */
  | { kind: "recover-beside"; node: string; other: string; forMs: number }
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

export type OwnFault = Shape extends infer S
  ? S extends Shape
    ? Readonly<S> & { readonly atMs: number }
    : never
  : never;
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
  "stop-in-campaign": 0,
  "recover-beside": 0,
  "deaf-member": 1,
} as const;
type Kind = keyof typeof WEIGHTS;
const KINDS = weighted<Kind>(Object.fromEntries(Object.entries(WEIGHTS).map(([kind, weight]) => [kind, 10 * weight])));

const AIMED: Readonly<Record<TcKnobs["aim"], readonly Kind[]>> = {
  none: [],
  founding: ["lost-founder"],
  roster: ["leave", "partition", "cut-one-way", "crash", "wipe", "unwilling", "stop-in-campaign"],
  recovery: ["recover", "recover-beside"],
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
    case "cut-one-way":
    case "partition":
    case "lossy":
    case "duplicating":
    case "slow-link":
      return drawOfLinks(random, kind, { atMs, node, other, forMs }, names);
    case "disk-slow":
      return { atMs, kind, node, factor: random.between(5, 200), forMs };
    case "disk-torn":
      return { atMs, kind, node, tear: random.chance(0.5) ? "torn" : "sectors", restartAfterMs: forMs };
    case "leave":
    case "resign":
    case "stop":
    case "unwilling":
    case "move":
    case "new-island":
      return drawOperated(random, kind, { atMs, node, forMs }, names);
    case "ghost-release":
      return { atMs, kind };
    case "old-copy":
      return { atMs, kind, node: other, ageMs: Math.floor(random.between(1_000, 15_000)) };
    case "leases-lost":
      return { atMs, kind, restartAfterMs: Math.floor(random.between(100, 12_000)) };
    case "wipe":
    case "damage":
      return { atMs, kind, node, restartAfterMs: Math.floor(random.between(100, 12_000)) };
    case "recover":
      return { atMs, kind, node: other, forMs: Math.floor(random.between(500, 12_000)) };
    case "recover-beside":
      return { atMs, kind, node: other, other: random.pick(names), forMs: Math.floor(random.between(500, 12_000)) };
    case "disk-fsync-error":
    case "forge-release":
    case "stale-roster":
      return { atMs, kind, node: kind === "disk-fsync-error" ? node : other };
    case "odd-ttl":
      return { atMs, kind, ttlMs: random.pick([1, 50, 3_600_000]), forMs };
    case "stop-and-go":
      return { atMs, kind, pauseMs: Math.floor(LEASE_TTL_MS * random.between(0.3, 0.8)), cutMs: 2 * LEASE_TTL_MS };
    case "stop-in-campaign":
      return { atMs, kind, restartAfterMs: forMs };
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

/** What happens between nodes. */
type OfLinks = "cut" | "cut-one-way" | "partition" | "lossy" | "duplicating" | "slow-link";

interface Drawn {
  readonly atMs: number;
  readonly node: string;
  readonly other: string;
  readonly forMs: number;
}

function drawOfLinks(
  random: Random,
  kind: OfLinks,
  { atMs, node, other, forMs }: Drawn,
  names: readonly string[],
): TcFault {
  switch (kind) {
    case "cut":
      return { atMs, kind, a: node, b: other, forMs };
    case "cut-one-way":
      return random.chance(0.5)
        ? { atMs, kind, from: node, to: other, forMs }
        : { atMs, kind, from: other, to: node, forMs };
    case "partition":
      return drawPartition(random, { atMs, forMs, other }, names);
    case "lossy":
    case "duplicating":
      return { atMs, kind, rate: random.between(0.05, 0.6), forMs };
    case "slow-link":
      return { atMs, kind, latencyMinMs: random.between(5, 600), latencyTailMs: random.between(1, 300), forMs };
    default:
      return assertNever(kind, "kind of fault between nodes");
  }
}

function drawPartition(
  random: Random,
  { atMs, forMs, other }: { readonly atMs: number; readonly forMs: number; readonly other: string },
  names: readonly string[],
): TcFault {
  const mixed = names.filter(() => random.chance(0.5));
  const size = Math.max(1, Math.min(mixed.length, names.length - 1));
  const one = mixed.length === 0 ? [other] : mixed.slice(0, size);
  const groups = [one, names.filter((name) => !one.includes(name))];
  const long = random.chance(0.4) ? MEMBERSHIP_TTL_MS * random.between(1.1, 1.6) : forMs;
  return { atMs, kind: "partition", groups, forMs: Math.floor(long) };
}

/** Done by an operator. */
export type Operated = "leave" | "resign" | "stop" | "unwilling" | "move" | "new-island";

/** What an operator does. */
function drawOperated(
  random: Random,
  kind: Operated,
  { atMs, node, forMs }: { readonly atMs: number; readonly node: string; readonly forMs: number },
  names: readonly string[],
): TcFault {
  switch (kind) {
    case "leave":
      return { atMs, kind, node, forMs: Math.floor(random.between(500, 15_000)) };
    case "resign":
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
    default:
      return assertNever(kind, "what an operator does");
  }
}
