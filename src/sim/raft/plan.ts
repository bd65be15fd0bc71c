// The faults of one run: those of the kernel, and those that only a consensus cluster knows. Every fault ends
// by itself, so any part of a plan is a plan, and a failing one can be shrunk.

import { assertNever } from "../../core/kit/assert.ts";
import { nodeIdOf } from "../../core/kit/ids.ts";
import { DISK_HUNG_TIMEOUTS } from "../../core/kit/limits.ts";
import type { Random } from "../../core/kit/random.ts";
import { apply, randomPlan, type DrawnKind, type Fault, weighted } from "../kernel/index.ts";
import type { Cluster } from "./cluster.ts";
import type { Knobs } from "./knobs.ts";
import { changeMembership, drain, transferLeadership } from "./operators.ts";
import { crashOnSend, PLOYS, SENT_TYPES, type PloyKind, type SentType } from "./ploys.ts";
import { reached } from "./probes.ts";

/** `draw` seeds what is decided only when its time has come, when it is known who leads. */
type ClusterFault = { readonly atMs: number } & (
  | { readonly kind: "membership"; readonly draw: number; readonly count: number }
  | { readonly kind: "transfer"; readonly draw: number; readonly force: boolean }
  | { readonly kind: "replace"; readonly node: string }
  | { readonly kind: "bounce"; readonly node: string; readonly restartAfterMs: number }
  | { readonly kind: "power-loss"; readonly restartAfterMs: number }
  | { readonly kind: "crash-on-send"; readonly node: string; readonly type: SentType; readonly restartAfterMs: number }
  | { readonly kind: "crash-leader"; readonly restartAfterMs: number; readonly silent: boolean }
  | { readonly kind: "pause-leader"; readonly forMs: number }
  | { readonly kind: "isolate-leader"; readonly forMs: number }
  | { readonly kind: "hang-leader-disk"; readonly forMs: number }
  | { readonly kind: "drain-leader"; readonly forMs: number }
  | { readonly kind: "reset-leader"; readonly redial: "accepted" | "refused" }
  | { readonly kind: PloyKind; readonly draw: number }
);
export type RaftFault = Fault | ClusterFault;
export type OwnKind = ClusterFault["kind"];

/** Where a run has aims. */
const AIMED_FAULTS = 4;

const KERNEL_WEIGHTS: Partial<Record<DrawnKind, number>> = {
  crash: 4,
  pause: 2,
  "clock-rate": 2,
  "wall-jump": 1,
  cut: 2,
  "cut-one-way": 2,
  partition: 3,
  bridge: 2,
  flap: 1,
  lossy: 2,
  duplicating: 2,
  "slow-link": 1,
  "reset-accepted": 1,
  "reset-refused": 2,
  "disk-slow": 1,
  "disk-hang": 1,
  "disk-torn": 2,
  "disk-corrupt": 1,
  "disk-wipe": 2,
  "disk-fsync-error": 1,
  "disk-full": 1,
  garbage: 1,
};
const OWN_KINDS = weighted<OwnKind>({
  membership: 4,
  transfer: 2,
  replace: 1,
  "crash-leader": 2,
  "pause-leader": 1,
  "isolate-leader": 2,
  "drain-leader": 1,
  "hang-leader-disk": 1,
  "reset-leader": 1,
  bounce: 1,
  "power-loss": 1,
  "crash-on-send": 2,
  forged: 1,
  hostile: 3,
  "mad-member": 1,
  contest: 1,
  usurp: 1,
  amnesia: 3,
  drift: 1,
  succession: 2,
  "figure-8": 2,
  schism: 1,
  "stale-read": 2,
  relapse: 2,
  hearsay: 1,
  handover: 1,
});

/** What can happen to a node that is alone. */
const LONELY_KINDS: readonly OwnKind[] = [
  "bounce",
  "power-loss",
  "crash-leader",
  "pause-leader",
  "hang-leader-disk",
  "membership",
];

/** What etcd's specification knows of: crashes, hand-overs, and a network that loses, repeats, delays and parts. */
const PLAIN_WEIGHTS: Partial<Record<DrawnKind, number>> = {
  crash: 3,
  pause: 2,
  cut: 2,
  "cut-one-way": 2,
  partition: 3,
  bridge: 2,
  flap: 1,
  lossy: 3,
  duplicating: 3,
  "slow-link": 1,
  "reset-accepted": 1,
  "reset-refused": 1,
};
const PLAIN_KINDS: readonly OwnKind[] = [
  "transfer",
  "crash-leader",
  "crash-leader",
  "pause-leader",
  "isolate-leader",
  "reset-leader",
  "bounce",
  "power-loss",
  "crash-on-send",
];

export function drawPlan(random: Random, names: readonly string[], knobs: Knobs): RaftFault[] {
  const untilMs = knobs.faultsUntilMs;
  const weights = knobs.plain ? PLAIN_WEIGHTS : KERNEL_WEIGHTS;
  const kinds = names.length < 2 ? LONELY_KINDS : knobs.plain ? PLAIN_KINDS : OWN_KINDS;
  const kernel: RaftFault[] =
    names.length < 2
      ? []
      : randomPlan(random.fork("kernel"), { nodes: names, fromMs: 500, untilMs, count: knobs.faults, weights });
  const own = Array.from({ length: Math.ceil(knobs.faults / 2) }, (_, at) =>
    drawOwn(random.fork(`own/${at}`), kinds, names, untilMs),
  );
  // One that certainly has an effect: of a few faults on a small cluster, all may meet nobody (trap 33).
  const sure = knobs.plain ? [] : [drawOwn(random.fork("sure"), ["power-loss"], names, untilMs)];
  const loses = !knobs.plain && names.length > 2 && random.fork("loses").chance(0.25);
  const lapse = loses ? [drawOwn(random.fork("lapse"), ["lapse", "oblivion"], names, untilMs)] : [];
  const returns = !knobs.plain && names.length > 2 && random.fork("returns").chance(0.15);
  const revenant = returns ? [drawOwn(random.fork("revenant"), ["revenant"], names, Math.min(untilMs, 2_000))] : [];
  const aimed = Array.from({ length: knobs.aims.length === 0 || names.length < 2 ? 0 : AIMED_FAULTS }, (_, at) =>
    drawOwn(random.fork(`aimed/${at}`), knobs.aims, names, untilMs),
  );
  return [...kernel, ...own, ...sure, ...lapse, ...revenant, ...aimed].sort((a, b) => a.atMs - b.atMs);
}

function drawOwn(random: Random, kinds: readonly OwnKind[], names: readonly string[], untilMs: number): RaftFault {
  const atMs = Math.floor(random.between(600, untilMs));
  const forMs = Math.floor(Math.min(untilMs - atMs + 1, 20 * Math.exp(random.next() * Math.log(100))));
  const draw = random.below(2 ** 30);
  const kind = random.pick(kinds);
  switch (kind) {
    case "membership":
      return { atMs, kind, draw, count: random.pick([1, 1, 2, 3, 4]) };
    case "transfer":
      return { atMs, kind, draw, force: random.chance(0.4) };
    case "replace":
      return { atMs, kind, node: random.pick(names) };
    case "bounce":
      return { atMs, kind, node: random.pick(names), restartAfterMs: random.between(1, 15) };
    case "power-loss":
      return { atMs, kind, restartAfterMs: forMs };
    case "crash-on-send":
      return {
        atMs,
        kind,
        node: random.pick(names),
        type: random.pick(SENT_TYPES),
        restartAfterMs: random.between(1, 100),
      };
    case "crash-leader":
      return { atMs, kind, restartAfterMs: forMs, silent: random.chance(0.2) };
    case "pause-leader":
    case "isolate-leader":
    case "drain-leader":
      return { atMs, kind, forMs };
    // As a disk must hang for longer than a leader may be silent to end a leadership.
    case "hang-leader-disk":
      return { atMs, kind, forMs: Math.min(untilMs - atMs + 1, DISK_HUNG_TIMEOUTS * forMs) };
    case "reset-leader":
      return { atMs, kind, redial: random.pick(["accepted", "refused"]) };
    default:
      return { atMs, kind, draw };
  }
}

function isPloy(fault: RaftFault): fault is Extract<ClusterFault, { kind: PloyKind }> {
  return Object.hasOwn(PLOYS, fault.kind);
}

export function applyRaftFault(cluster: Cluster, fault: RaftFault, hit: () => void): void {
  if (isPloy(fault)) return PLOYS[fault.kind](cluster, cluster.world.random.fork(`${fault.kind}/${fault.draw}`), hit);
  switch (fault.kind) {
    case "membership":
      return changeMembership(cluster, fault.draw, fault.count, hit);
    case "transfer":
      return transferLeadership(cluster, fault.draw, fault.force, hit);
    case "replace":
      if (cluster.leader()?.engine.replace(fault.node).ok === true) hit();
      return;
    case "bounce":
      return apply(cluster.world, { ...fault, kind: "crash" }, { hit });
    case "power-loss":
      for (const node of cluster.names) apply(cluster.world, { ...fault, kind: "crash", node, silent: true }, { hit });
      return;
    case "crash-on-send":
      return crashOnSend(cluster, fault.node, fault.type, fault.restartAfterMs, hit);
    case "crash-leader":
    case "pause-leader":
    case "isolate-leader":
    case "hang-leader-disk":
    case "drain-leader":
    case "reset-leader":
      return applyToLeader(cluster, fault, hit);
    case "disk-wipe":
    case "disk-corrupt": {
      // Raft promises nothing once a majority has lost its memory: at most a minority of disks is lost at a time.
      const { configuration, committedIndex } = cluster.oracle;
      if (configuration === null || !cluster.memory.mayLose(fault.node, configuration, committedIndex)) return;
      cluster.memory.lost(fault.node);
      return apply(cluster.world, fault, { hit });
    }
    default:
      return apply(cluster.world, fault, { hit });
  }
}

type LeaderFault = Extract<ClusterFault, { kind: `${string}-leader` | "hang-leader-disk" }>;

function applyToLeader(cluster: Cluster, fault: LeaderFault, hit: () => void): void {
  const leader = cluster.leader();
  if (leader === undefined) return;
  const { atMs } = fault;
  const node = nodeIdOf(leader.engine.peer);
  const others = cluster.names.filter((name) => name !== node);
  switch (fault.kind) {
    case "crash-leader":
      return apply(cluster.world, { ...fault, kind: "crash", node }, { hit });
    case "pause-leader":
      reached(cluster.probes, "process-paused-while-leading");
      return apply(cluster.world, { ...fault, kind: "pause", node }, { hit });
    case "isolate-leader":
      return apply(cluster.world, { ...fault, kind: "partition", groups: [[node], others] }, { hit });
    case "hang-leader-disk":
      return apply(cluster.world, { ...fault, kind: "disk-hang", node }, { hit });
    case "drain-leader":
      return drain(cluster, leader.engine, fault.forMs, hit);
    case "reset-leader":
      if (fault.redial === "refused" && others.length > 0) reached(cluster.probes, "living-leader-taken-for-gone");
      for (const other of others)
        apply(cluster.world, { atMs, kind: `reset-${fault.redial}`, a: other, b: node }, { hit });
      return;
    default:
      return assertNever(fault, "fault of the leader");
  }
}
