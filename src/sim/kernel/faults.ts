// The vocabulary of faults of the kernel, and what each does to a world. Rooms above add kinds of their own.
// A fault with `forMs` (or `restartAfterMs`) ends by itself; without, it lasts until its counterpart or `calm`.
// Invariant: `hit` is called when the fault had an effect, not when it was applied: a cut that met no message, a
// failure that no operation ran into, a crash of a dead process have not fired (trap 33).

import { assertNever } from "../../core/kit/assert.ts";
import { type PeerKey, parsePeerKey } from "../../core/kit/ids.ts";
import type { FileInfo, Region } from "./disk.ts";
import type { DiskErrorCode } from "./disk-faults.ts";
import type { Tear } from "./disk-inode.ts";
import type { LinkModel, LinkWatch } from "./link.ts";
import { between } from "./network.ts";
import type { World } from "./world.ts";

interface Pair {
  readonly a: string;
  readonly b: string;
}

type Shape =
  | { kind: "crash"; node: string; restartAfterMs?: number; tear?: Tear | "random"; silent?: boolean }
  | { kind: "restart"; node: string }
  | { kind: "pause"; node: string; forMs?: number }
  | { kind: "resume"; node: string }
  | { kind: "clock-rate"; node: string; rate: number; forMs?: number }
  | { kind: "wall-jump"; node: string; byMs: number }
  | ({ kind: "cut"; forMs?: number } & Pair)
  | { kind: "cut-one-way"; from: string; to: string; forMs?: number }
  | { kind: "heal"; a?: string; b?: string }
  | { kind: "partition"; groups: readonly (readonly string[])[]; forMs?: number }
  | { kind: "bridge"; node: string; left: readonly string[]; right: readonly string[]; forMs?: number }
  | ({ kind: "flap"; periodMs: number; forMs: number } & Pair)
  | ({ kind: "lossy"; rate: number; forMs?: number } & Partial<Pair>)
  | ({ kind: "duplicating"; rate: number; forMs?: number } & Partial<Pair>)
  | ({ kind: "slow-link"; latencyMinMs: number; latencyTailMs: number; forMs?: number } & Partial<Pair>)
  | ({ kind: "reset-accepted" } & Pair)
  | ({ kind: "reset-refused" } & Pair)
  | { kind: "disk-slow"; node: string; factor: number; forMs?: number }
  | { kind: "disk-hang"; node: string; forMs?: number }
  | { kind: "disk-torn"; node: string; tear: "torn" | "sectors"; restartAfterMs?: number }
  | { kind: "disk-corrupt"; node: string; restartAfterMs?: number }
  | { kind: "disk-wipe"; node: string; restartAfterMs?: number }
  | { kind: "disk-fsync-error"; node: string; label?: string; code?: DiskErrorCode }
  | { kind: "disk-full"; node: string; forMs?: number }
  | { kind: "garbage"; node: string; from: string; sizeBytes: number };

type ReadonlyShape<S> = S extends unknown ? Readonly<S> & { readonly atMs: number } : never;
export type Fault = ReadonlyShape<Shape>;
export type FaultKind = Fault["kind"];

export interface FaultContext {
  readonly hit: () => void;
  /** Where `disk-corrupt` may strike. Default: bytes that a later sync testifies, so that no torn tail explains them. */
  readonly corruptible?: ((node: string, file: FileInfo) => Region | undefined) | undefined;
}

export function apply(world: World, fault: Fault, context: FaultContext): void {
  switch (fault.kind) {
    case "crash":
    case "restart":
    case "pause":
    case "resume":
    case "clock-rate":
    case "wall-jump":
      return applyToProcess(world, fault, context.hit);
    case "cut":
    case "cut-one-way":
    case "heal":
    case "partition":
    case "bridge":
    case "flap":
      return applyCut(world, fault, context.hit);
    case "lossy":
    case "duplicating":
    case "slow-link":
    case "reset-accepted":
    case "reset-refused":
    case "garbage":
      return applyToTraffic(world, fault, context.hit);
    case "disk-slow":
    case "disk-hang":
    case "disk-torn":
    case "disk-corrupt":
    case "disk-wipe":
    case "disk-fsync-error":
    case "disk-full":
      return applyToDisk(world, fault, context);
    default:
      return assertNever(fault, "fault");
  }
}

type Unscheduled = Fault extends infer F ? (F extends Fault ? Omit<F, "atMs"> : never) : never;

/** At this moment. */
export function strike(world: World, fault: Unscheduled, hit: () => void): void {
  apply(world, { ...fault, atMs: world.nowMs }, { hit });
}

type Only<K extends FaultKind> = Extract<Fault, { kind: K }>;

function applyToProcess(
  world: World,
  fault: Only<"crash" | "restart" | "pause" | "resume" | "clock-rate" | "wall-jump">,
  hit: () => void,
): void {
  const { process } = world.node(fault.node);
  switch (fault.kind) {
    case "crash":
      if (world.crash(fault.node, { tear: fault.tear, silent: fault.silent }) !== undefined) hit();
      if (fault.restartAfterMs !== undefined) world.startAfter(fault.node, fault.restartAfterMs);
      return;
    case "restart":
      if (world.start(fault.node)) hit();
      return;
    case "pause":
      if (!world.pause(fault.node)) return;
      hit();
      return after(world, fault.forMs, () => world.resume(fault.node));
    case "resume":
      if (world.resume(fault.node)) hit();
      return;
    case "clock-rate":
      if (!process.setClockRate(fault.rate)) return;
      hit();
      return after(world, fault.forMs, () => process.setClockRate(1));
    case "wall-jump":
      process.jumpWall(fault.byMs);
      return hit();
    default:
      return assertNever(fault, "fault of a process");
  }
}

function applyCut(
  world: World,
  fault: Only<"cut" | "cut-one-way" | "heal" | "partition" | "bridge" | "flap">,
  hit: () => void,
): void {
  const { network } = world;
  switch (fault.kind) {
    case "heal":
      if (network.heal(fault.a, fault.b)) hit();
      return;
    case "cut":
      return cut(
        world,
        [
          [fault.a, fault.b],
          [fault.b, fault.a],
        ],
        fault.forMs,
        hit,
      );
    case "cut-one-way":
      return cut(world, [[fault.from, fault.to]], fault.forMs, hit);
    case "partition":
      return cut(world, between(fault.groups), fault.forMs, hit);
    case "bridge":
      return cut(world, between([fault.left, fault.right]), fault.forMs, hit);
    case "flap":
      return flap(world, fault, hit);
    default:
      return assertNever(fault, "fault of a link");
  }
}

/** Only what this fault closed opens again at its end; a cut that an earlier fault made stays that one's. */
function cut(
  world: World,
  ways: readonly (readonly [string, string])[],
  forMs: number | undefined,
  hit: () => void,
): void {
  const { network } = world;
  const closed = ways.filter(([from, to]) => network.cutOneWay(from, to));
  for (const [from, to] of closed) network.link(from, to).watch.cut = hit;
  after(world, forMs, () => {
    for (const [from, to] of closed) network.openOneWay(from, to);
  });
}

function flap(world: World, fault: Only<"flap">, hit: () => void): void {
  const { network, scheduler } = world;
  const endMs = world.nowMs + fault.forMs;
  const owner = scheduler.owner(`flap/${fault.a}=${fault.b}`);
  const links = network.links(fault.a, fault.b);
  for (const link of links) {
    link.flapper = fault;
    link.watch.cut = hit;
  }
  const toggle = (down: boolean): void => {
    // Healed, or taken over by a later flap: the links are no longer this fault's.
    if (links.some((link) => link.flapper !== fault)) return;
    const last = world.nowMs >= endMs;
    network.setFlapped(fault.a, fault.b, down && !last);
    if (!last) scheduler.schedule(Math.min(world.nowMs + fault.periodMs, endMs), owner, () => toggle(!down));
  };
  toggle(true);
}

function applyToTraffic(
  world: World,
  fault: Only<"lossy" | "duplicating" | "slow-link" | "reset-accepted" | "reset-refused" | "garbage">,
  hit: () => void,
): void {
  switch (fault.kind) {
    case "lossy":
      return worsen(world, fault, { lossRate: fault.rate }, { lost: hit });
    case "duplicating":
      return worsen(world, fault, { duplicateRate: fault.rate }, { duplicated: hit });
    case "slow-link": {
      const { latencyMinMs, latencyTailMs } = fault;
      return worsen(world, fault, { latencyMinMs, latencyTailMs }, { carried: hit });
    }
    case "reset-accepted":
      if (world.network.reset(fault.a, fault.b, "accepted")) hit();
      return;
    case "reset-refused":
      if (world.network.reset(fault.a, fault.b, "refused")) hit();
      return;
    case "garbage": {
      const random = world.random.fork(`garbage/${fault.node}/${fault.atMs}`);
      const bytes = Uint8Array.from({ length: fault.sizeBytes }, () => random.below(256));
      world.network.inject(fault.node, (parsePeerKey(fault.from) ?? "forged@0") as PeerKey, bytes, hit);
      return;
    }
    default:
      return assertNever(fault, "fault of the traffic");
  }
}

/** One pair, or every link. At its end a link returns to the world's own model in what this fault changed. */
function worsen(
  world: World,
  where: { a?: string; b?: string; forMs?: number },
  change: Partial<LinkModel>,
  watch: LinkWatch,
): void {
  const links = world.network.links(where.a, where.b);
  for (const link of links) {
    link.model = { ...link.model, ...change };
    Object.assign(link.watch, watch);
  }
  after(world, where.forMs, () => {
    for (const link of links) link.model = { ...link.model, ...world.network.normal(change) };
  });
}

function applyToDisk(
  world: World,
  fault: Only<
    "disk-slow" | "disk-hang" | "disk-torn" | "disk-corrupt" | "disk-wipe" | "disk-fsync-error" | "disk-full"
  >,
  { hit, corruptible }: FaultContext,
): void {
  const { disk } = world.node(fault.node);
  switch (fault.kind) {
    case "disk-slow":
      disk.faults.setSlow(fault.factor, hit);
      return after(world, fault.forMs, () => disk.faults.setSlow(1));
    case "disk-hang":
      return disk.faults.hang(fault.forMs ?? "forever", hit);
    case "disk-full":
      disk.faults.setFull(true, hit);
      return after(world, fault.forMs, () => disk.faults.setFull(false));
    case "disk-fsync-error":
      return disk.faults.failNext({ operation: "fdatasync", label: fault.label, code: fault.code, onHit: hit });
    case "disk-torn": {
      const unsynced = world.crash(fault.node, { tear: fault.tear });
      if (unsynced !== undefined && unsynced.unsyncedFiles + unsynced.unsyncedNames > 0) hit();
      break;
    }
    case "disk-corrupt": {
      // What is on the platter is read again after a restart only.
      world.crash(fault.node);
      const random = world.random.fork(`corrupt/${fault.node}/${fault.atMs}`);
      const choose =
        corruptible ?? ((_node: string, file: FileInfo) => ({ fromByte: 0, toByte: file.durableBeforeBytes }));
      if (disk.corrupt(random, (file) => choose(fault.node, file)) !== undefined) hit();
      break;
    }
    case "disk-wipe":
      world.crash(fault.node);
      if (disk.files().length > 0) hit();
      disk.wipe();
      break;
    default:
      return assertNever(fault, "fault of a disk");
  }
  if (fault.restartAfterMs !== undefined) world.startAfter(fault.node, fault.restartAfterMs);
}

function after(world: World, forMs: number | undefined, end: () => void): void {
  if (forMs === undefined) return;
  world.scheduler.schedule(world.nowMs + forMs, world.scheduler.owner("faults"), end);
}
