// What goes wrong in a run of jobs: the kernel's faults on the servers, faults of whoever leads then, and faults of agents.

import { assertNever } from "../../../core/kit/assert.ts";
import { DISK_HUNG_TIMEOUTS } from "../../../core/kit/limits.ts";
import type { Random } from "../../../core/kit/random.ts";
import { apply, randomPlan, type DrawnKind, type Fault, weighted } from "../../kernel/index.ts";
import { type ClockFault, drawClockFaults } from "../clocks.ts";
import type { JobsCluster } from "../cluster.ts";
import type { JobsKnobs } from "../knobs.ts";
import { supervisorOf } from "../moonlight.ts";
import { JOBS_PLOYS, type JobsPloyKind, ploy } from "./ploys.ts";
import { reached } from "../probes.ts";
import { workerName as workerOf } from "../../../supervisor/index.ts";
import { usurp, type Usurpation } from "../usurpers.ts";
import { applyViewsFault, drawViewsFault, drawViewsFaults, isViewsFault, type ViewsFault } from "./views.ts";

type OwnFault = { readonly atMs: number } & (
  | { readonly kind: "crash-leader"; readonly restartAfterMs: number }
  /** Where servers work: of the leader's machine. Its controller and its worker see it, and end. */
  | { readonly kind: "crash-leading-supervisor"; readonly restartAfterMs: number }
  | { readonly kind: "crash-supervisor"; readonly node: string; readonly restartAfterMs: number }
  | { readonly kind: "pause-supervisor" | "pause-worker"; readonly node: string; readonly forMs: number }
  | { readonly kind: "crash-worker" | "crash-loop" | "stop-node"; readonly node: string }
  | { readonly kind: "pause-leader" | "isolate-leader" | "hang-leader-disk"; readonly forMs: number }
  | { readonly kind: "transfer" }
  | { readonly kind: "jump-leader"; readonly byMs: number }
  | { readonly kind: "crash-agent"; readonly node: string; readonly restartAfterMs: number }
  | { readonly kind: "pause-agent" | "cut-agent"; readonly node: string; readonly forMs: number }
);
interface PloyFault {
  readonly atMs: number;
  readonly kind: JobsPloyKind;
  readonly draw: number;
}
export type JobsFault = Fault | OwnFault | PloyFault | Usurpation | ClockFault | ViewsFault;
export type OwnKind = OwnFault["kind"];

const WEIGHTS: Partial<Record<DrawnKind, number>> = {
  crash: 3,
  pause: 2,
  "wall-jump": 4,
  cut: 2,
  "cut-one-way": 2,
  partition: 3,
  lossy: 2,
  duplicating: 1,
  "slow-link": 1,
  "reset-refused": 1,
  "disk-slow": 2,
  "disk-hang": 1,
};
const OWN_KINDS = weighted<OwnKind>({
  "crash-leader": 2,
  "pause-leader": 2,
  "isolate-leader": 3,
  "hang-leader-disk": 1,
  transfer: 1,
  "jump-leader": 2,
  "crash-agent": 2,
  "pause-agent": 2,
  "cut-agent": 1,
});
/** Of servers that work. */
const MOONLIGHT_KINDS: readonly OwnKind[] = [
  ...OWN_KINDS,
  ...weighted<OwnKind>({
    "crash-leader": 1,
    "crash-leading-supervisor": 2,
    "crash-supervisor": 2,
    "pause-supervisor": 2,
    "pause-worker": 2,
    transfer: 1,
    "crash-worker": 1,
    "crash-loop": 1,
    "stop-node": 1,
  }),
];
/** Of a race: leaders die, are cut off, stand still and give up. */
const RACE_KINDS = weighted<OwnKind>({ "crash-leader": 2, "isolate-leader": 2, "pause-leader": 1, transfer: 1 });
const RACE_WEIGHTS: Partial<Record<DrawnKind, number>> = { crash: 2, cut: 1, "cut-one-way": 1, partition: 3, lossy: 1 };
const DURATION_MS: readonly [number, number] = [40, 3_000];
/** Of clocks that are right otherwise; those that are days off: clocks.ts. */
const WALL_JUMP_MS_MAX = 4_000;
/** Of what a run is aimed at: one after the other. */
const AIMED_FAULTS = 4;
/** How often a run has a ploy that nobody asked for. */
const PLOY_RATE = 0.3;

/** Requests are remembered for a day: all outages of a run are shorter than half of that. */
const OUTAGE_MS: readonly [number, number] = [600_000, 4 * 3_600_000];
const LAST_OUTAGE_MS = 50;
const LAST_OUTAGE_HOURS_MS = 2 * 3_600_000;
/** After the start of all servers: in the middle of what it catches up with. */
const NEXT_LEADER_ENDS_MS: readonly [number, number] = [400, 1_800];

export function drawJobsPlan(random: Random, cluster: JobsCluster, knobs: JobsKnobs): JobsFault[] {
  const { names, agents } = cluster;
  const untilMs = knobs.faultsUntilMs;
  const kernel = randomPlan(random.fork("kernel"), {
    nodes: names,
    fromMs: 600,
    untilMs,
    count: knobs.faults,
    weights: knobs.race ? RACE_WEIGHTS : WEIGHTS,
    durationMs: DURATION_MS,
  }).map((fault) => (fault.kind === "wall-jump" ? { ...fault, byMs: fault.byMs % WALL_JUMP_MS_MAX } : fault));
  const kinds = knobs.race ? RACE_KINDS : knobs.moonlights ? MOONLIGHT_KINDS : OWN_KINDS;
  const own = Array.from({ length: knobs.faults }, (_, at) =>
    drawOwn(random.fork(`own/${at}`), kinds, { names, agents }, untilMs),
  );
  const jumps = Array.from({ length: knobs.wallJumps }, (_, at) => drawJump(random.fork(`jump/${at}`), untilMs));
  const outages = Array.from({ length: knobs.outages }, (_, at) => drawOutage(random.fork(`outage/${at}`), untilMs));
  // What was missed in the last one is caught up with when nothing else fails: who leads then stays.
  const last: JobsFault = {
    atMs: untilMs - LAST_OUTAGE_MS,
    kind: "outage",
    forMs: 2 * LAST_OUTAGE_MS,
    hoursMs: LAST_OUTAGE_HOURS_MS,
  };
  if (knobs.outages > 0) outages.push([last]);
  // One that certainly has an effect (trap 33).
  const sure: JobsFault = { atMs: Math.floor(untilMs / 2), kind: "crash-leader", restartAfterMs: 200 };
  const usurped = Array.from({ length: knobs.usurpations }, (_, at) =>
    drawUsurpation(random.fork(`usurp/${at}`), agents, untilMs),
  );
  const clocks = drawClockFaults(random.fork("clocks"), knobs.clocks, names, untilMs);
  const views = drawViewsFaults(random.fork("views"), names, knobs);
  const aimed = [...drawAimed(random.fork("aimed"), cluster, knobs), ...drawPloy(random.fork("ploy"), knobs)];
  return [...kernel, ...own, ...jumps, ...outages.flat(), ...usurped, ...clocks, ...views, ...aimed, sure].sort(
    (a, b) => a.atMs - b.atMs,
  );
}

/** At about equal distances: most take a while, and would be in each other's way. */
function drawAimed(random: Random, { names, agents }: JobsCluster, knobs: JobsKnobs): JobsFault[] {
  const { aims, faultsUntilMs } = knobs;
  const everyMs = faultsUntilMs / (AIMED_FAULTS + 1);
  return Array.from({ length: aims.length === 0 ? 0 : AIMED_FAULTS }, (_, at): JobsFault => {
    const stream = random.fork(`${at}`);
    const kind = stream.pick(aims);
    const atMs = Math.floor(everyMs * (at + stream.between(0.5, 1)));
    if (isViewsFault(kind)) return { ...drawViewsFault(stream, [kind], names, knobs), atMs };
    if (isPloy(kind)) return { atMs, kind, draw: stream.below(2 ** 30) };
    return { ...drawOwn(stream, [kind], { names, agents }, faultsUntilMs), atMs };
  });
}

function drawPloy(random: Random, { race, faultsUntilMs }: JobsKnobs): JobsFault[] {
  if (race || !random.chance(PLOY_RATE)) return [];
  const atMs = Math.floor(random.between(600, faultsUntilMs));
  return [{ atMs, kind: random.pick(JOBS_PLOYS), draw: random.below(2 ** 30) }];
}

function isPloy(kind: string): kind is JobsPloyKind {
  return JOBS_PLOYS.some((one) => one === kind);
}

function isPloyFault(fault: JobsFault): fault is PloyFault {
  return isPloy(fault.kind);
}

/** Early: it takes longer than most faults. */
function drawUsurpation(random: Random, agents: readonly string[], untilMs: number): JobsFault {
  const atMs = Math.floor(random.between(600, untilMs / 3));
  return { atMs, kind: "usurp-agent", node: random.pick(agents), removes: random.chance(0.5) };
}

function drawJump(random: Random, untilMs: number): JobsFault {
  const atMs = Math.floor(random.between(600, untilMs));
  return { atMs, kind: "jump-leader", byMs: Math.floor(random.between(-0.3, 1) * WALL_JUMP_MS_MAX) };
}

/** Times of schedules pass meanwhile; and mostly who leads next does not stay for long. */
function drawOutage(random: Random, untilMs: number): JobsFault[] {
  const atMs = Math.floor(random.between(0.35, 0.8) * untilMs);
  const forMs = Math.floor(random.between(50, 600));
  const hoursMs = Math.floor(random.between(...OUTAGE_MS));
  const nextMs = atMs + forMs + Math.floor(random.between(...NEXT_LEADER_ENDS_MS));
  const next = random.pick<JobsFault>([
    { atMs: nextMs, kind: "crash-leader", restartAfterMs: 300 },
    { atMs: nextMs, kind: "transfer" },
  ]);
  return [{ atMs, kind: "outage", forMs, hoursMs }, ...(random.chance(0.7) && nextMs < untilMs ? [next] : [])];
}

function drawOwn(
  random: Random,
  kinds: readonly OwnKind[],
  { names, agents }: Pick<JobsCluster, "names" | "agents">,
  untilMs: number,
): JobsFault {
  const atMs = Math.floor(random.between(600, untilMs));
  const drawnMs = DURATION_MS[0] * Math.exp(random.next() * Math.log(DURATION_MS[1] / DURATION_MS[0]));
  const forMs = Math.max(1, Math.floor(Math.min(drawnMs, untilMs - atMs)));
  const kind = random.pick(kinds);
  const node = random.pick(agents);
  switch (kind) {
    case "crash-leader":
    case "crash-leading-supervisor":
      return { atMs, kind, restartAfterMs: forMs };
    case "crash-supervisor":
      return { atMs, kind, node: supervisorOf(random.pick(names)), restartAfterMs: forMs };
    case "pause-supervisor":
      return { atMs, kind, node: supervisorOf(random.pick(names)), forMs };
    case "pause-worker":
      return { atMs, kind, node: workerOf(random.pick(names)), forMs };
    case "crash-worker":
      return { atMs, kind, node: workerOf(random.pick(names)) };
    case "crash-loop":
    case "stop-node":
      return { atMs, kind, node: random.pick(names) };
    case "pause-leader":
    case "isolate-leader":
      return { atMs, kind, forMs };
    // As a disk must hang for longer than a leader may be silent to end a leadership.
    case "hang-leader-disk":
      return { atMs, kind, forMs: Math.max(1, Math.min(untilMs - atMs, DISK_HUNG_TIMEOUTS * forMs)) };
    case "transfer":
      return { atMs, kind };
    case "jump-leader":
      return { atMs, kind, byMs: Math.floor(random.between(-WALL_JUMP_MS_MAX, WALL_JUMP_MS_MAX)) };
    case "crash-agent":
      return { atMs, kind, node, restartAfterMs: forMs };
    case "pause-agent":
    case "cut-agent":
      return { atMs, kind, node, forMs };
    default:
      return assertNever(kind, "kind of fault");
  }
}

export function applyJobsFault(cluster: JobsCluster, fault: JobsFault, hit: () => void): void {
  if (isPloyFault(fault)) return ploy(cluster, fault.kind, fault.draw, hit);
  switch (fault.kind) {
    case "crash-leader":
    case "crash-leading-supervisor":
    case "pause-leader":
    case "isolate-leader":
    case "hang-leader-disk":
    case "jump-leader":
    case "transfer":
      return applyToLeader(cluster, fault, hit);
    case "pause-supervisor":
    case "pause-agent":
      return apply(cluster.world, { ...fault, kind: "pause" }, { hit });
    case "pause-worker":
      if (isThere(cluster, fault.node)) apply(cluster.world, { ...fault, kind: "pause" }, { hit });
      return;
    case "crash-supervisor":
    case "crash-agent":
      return apply(cluster.world, { ...fault, kind: "crash" }, { hit });
    case "crash-worker":
      // Its supervisor starts the next.
      if (isThere(cluster, fault.node) && cluster.world.crash(fault.node)) hit();
      return;
    case "stop-node":
      hit();
      return cluster.moonlight.stop(fault.node);
    case "crash-loop":
      hit();
      return cluster.moonlight.crashLoop(fault.node);
    case "usurp-agent":
      return usurp(cluster, fault, hit);
    case "cut-agent":
      // Its letters are no messages of the network's own: that nobody reads them is the effect.
      hit();
      return apply(cluster.world, { ...fault, kind: "partition", groups: [[fault.node], cluster.names] }, { hit });
    case "crash-views":
    case "wipe-views":
    case "wipe-node":
    case "wipe-history":
    case "fail-history":
      return applyViewsFault(cluster, fault, hit);
    case "shift-clocks":
    case "shift-leader":
    case "outage":
      return cluster.clocks.apply(fault, hit);
    default:
      return apply(cluster.world, fault, { hit });
  }
}

/** A worker is, since it was first wanted. */
function isThere({ world }: JobsCluster, worker: string): boolean {
  return world.nodes.some(({ name }) => name === worker);
}

type LeaderFault = Extract<
  OwnFault,
  { kind: `${string}-leader` | "crash-leading-supervisor" | "hang-leader-disk" | "transfer" }
>;

function applyToLeader(cluster: JobsCluster, fault: LeaderFault, hit: () => void): void {
  const node = cluster.leader();
  if (node === undefined) return;
  const { world } = cluster;
  switch (fault.kind) {
    case "crash-leader":
      return apply(world, { ...fault, kind: "crash", node }, { hit });
    case "crash-leading-supervisor":
      return apply(world, { ...fault, kind: "crash", node: supervisorOf(node) }, { hit });
    case "pause-leader":
      reached(cluster.probes, "leader-paused");
      return apply(world, { ...fault, kind: "pause", node }, { hit });
    case "isolate-leader": {
      const others = cluster.names.filter((name) => name !== node);
      return apply(world, { ...fault, kind: "partition", groups: [[node], others] }, { hit });
    }
    case "hang-leader-disk":
      return apply(world, { ...fault, kind: "disk-hang", node }, { hit });
    case "jump-leader":
      return apply(world, { ...fault, kind: "wall-jump", node }, { hit });
    case "transfer":
      world.call(node, () => {
        hit();
        void cluster.server(node)?.transfer(null);
      });
      return;
    default:
      return assertNever(fault, "fault of the leader");
  }
}
