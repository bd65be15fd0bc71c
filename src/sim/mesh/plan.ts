// The faults of a run of the mesh: the kernel's, between the nodes of a site and between sites, and those of whole sites.

import { assertNever } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";
import { apply, type Fault, strike } from "../kernel/index.ts";
import { type MeshKnobs, SITES } from "./knobs.ts";
import { SITE_RESTART_MS } from "./limits.ts";
import { reached } from "./probes.ts";
import type { MeshStage } from "./stage.ts";

interface Lasting {
  readonly atMs: number;
  readonly forMs: number;
}

export type SiteFault =
  /** No message passes between these sites, in either direction. */
  | (Lasting & { readonly kind: "cut-sites"; readonly a: string; readonly b: string })
  | (Lasting & { readonly kind: "cut-sites-one-way"; readonly from: string; readonly to: string })
  /** One site reaches nobody. */
  | (Lasting & { readonly kind: "isolate-site"; readonly site: string })
  | (Lasting & { readonly kind: "split-sites"; readonly groups: readonly (readonly string[])[] })
  /** All nodes of it, and after a while again. */
  | (Lasting & { readonly kind: "crash-site"; readonly site: string })
  | (Lasting & { readonly kind: "crash-node"; readonly node: string })
  | (Lasting & { readonly kind: "pause-node"; readonly node: string })
  | (Lasting & { readonly kind: "crash-leader"; readonly site: string })
  /** Within the site of three nodes: its leader reaches neither of the others, and everybody else. */
  | (Lasting & { readonly kind: "depose-leader"; readonly site: string })
  /** All nodes of it, and when they are up one peer stays out of reach for so long. */
  | (Lasting & { readonly kind: "start-without-peer"; readonly site: string; readonly peer: string })
  | { readonly kind: "wall-jump-site"; readonly atMs: number; readonly site: string; readonly byMs: number }
  /** The site is started again, after this time, from what its disks are now. */
  | (Lasting & { readonly kind: "restore-site"; readonly site: string })
  /** An operator of one site evicts another one there. */
  | { readonly kind: "evict-site"; readonly atMs: number; readonly at: string; readonly site: string };

export type MeshFault = Fault | SiteFault;
type SiteKind = SiteFault["kind"];

const WEIGHTS: Readonly<Record<SiteKind, number>> = {
  "cut-sites": 4,
  "cut-sites-one-way": 3,
  "isolate-site": 2,
  "split-sites": 2,
  "crash-site": 2,
  "crash-node": 3,
  "pause-node": 2,
  "crash-leader": 2,
  "depose-leader": 2,
  "start-without-peer": 2,
  "wall-jump-site": 1,
  "restore-site": 0,
  "evict-site": 0,
};
const KINDS = (Object.keys(WEIGHTS) as SiteKind[]).flatMap((kind) => Array.from({ length: WEIGHTS[kind] }, () => kind));
const FAULTS_FROM_MS = 400;
const FOR_MS: readonly [number, number] = [50, 2_500];
/** Past the TTL of registrations, which is no matter of the wall clock. */
const JUMP_MS_MAX = 600_000;

export function drawMeshPlan(random: Random, stage: MeshStage, knobs: MeshKnobs): MeshFault[] {
  const kinds: SiteKind[] = [
    // A cut may meet no message: one fault has an effect in any case.
    "crash-node",
    ...Array.from({ length: knobs.faults }, (_, at) => random.fork(`kind/${at}`).pick(KINDS)),
    ...(knobs.aims as readonly SiteKind[]),
  ];
  if (knobs.evicts) kinds.push("evict-site");
  if (knobs.restores) kinds.push("restore-site");
  const faults = kinds.map((kind, at) => draw(kind, random.fork(`fault/${at}`), stage, knobs));
  return faults.sort((left, right) => left.atMs - right.atMs);
}

function draw(kind: SiteKind, random: Random, stage: MeshStage, knobs: MeshKnobs): SiteFault {
  const atMs = Math.floor(random.between(FAULTS_FROM_MS, knobs.faultsUntilMs));
  const drawnMs = FOR_MS[0] * Math.exp(random.next() * Math.log(FOR_MS[1] / FOR_MS[0]));
  const forMs = Math.max(1, Math.floor(Math.min(drawnMs, knobs.faultsUntilMs - atMs)));
  const [a, b, ...others] = shuffled(SITES, random) as [string, string, ...string[]];
  const linked = random.pick(stage.neighboursOf(a));
  const node = random.pick(stage.nodes);
  switch (kind) {
    case "cut-sites":
      return { atMs, kind, a, b: linked, forMs };
    case "cut-sites-one-way":
      return { atMs, kind, from: a, to: linked, forMs };
    case "isolate-site":
    case "crash-site":
      return { atMs, kind, site: a, forMs };
    case "restore-site": {
      const [copiedMs, afterMs] = [random.between(...knobs.copiedMs), random.between(...knobs.restoredAfterMs)];
      return { atMs: Math.floor(copiedMs), kind, site: a, forMs: Math.floor(afterMs) };
    }
    case "start-without-peer":
      return { atMs, kind, site: a, peer: linked, forMs: Math.max(1, knobs.faultsUntilMs - atMs) };
    case "crash-leader":
    case "depose-leader":
      return { atMs, kind, site: knobs.trio, forMs };
    case "split-sites": {
      const all = [a, b, ...others];
      const size = 1 + random.below(all.length - 1);
      return { atMs, kind, groups: [all.slice(0, size), all.slice(size)], forMs };
    }
    case "crash-node":
    case "pause-node":
      return { atMs, kind, node, forMs };
    case "evict-site":
      return { atMs, kind, at: a, site: b };
    case "wall-jump-site":
      return { atMs, kind, site: a, byMs: Math.floor(random.between(-JUMP_MS_MAX, JUMP_MS_MAX)) };
    default:
      return assertNever(kind, "kind of fault");
  }
}

function isOfSites(fault: MeshFault): fault is SiteFault {
  return fault.kind in WEIGHTS;
}

export function applyMeshFault(stage: MeshStage, fault: MeshFault, hit: () => void): void {
  const { world } = stage;
  if (!isOfSites(fault)) return apply(world, fault, { hit });
  const nodesOf = (...sites: readonly string[]): string[] => sites.flatMap((site) => [...stage.site(site).names]);
  switch (fault.kind) {
    case "cut-sites":
      return strike(
        world,
        { kind: "partition", groups: [nodesOf(fault.a), nodesOf(fault.b)], forMs: fault.forMs },
        hit,
      );
    case "cut-sites-one-way":
      for (const from of nodesOf(fault.from))
        for (const to of nodesOf(fault.to)) strike(world, { kind: "cut-one-way", from, to, forMs: fault.forMs }, hit);
      return;
    case "isolate-site": {
      const groups = [nodesOf(fault.site), nodesOf(...SITES.filter((site) => site !== fault.site))];
      return strike(world, { kind: "partition", groups, forMs: fault.forMs }, hit);
    }
    case "split-sites": {
      const groups = fault.groups.map((group) => nodesOf(...group));
      return strike(world, { kind: "partition", groups, forMs: fault.forMs }, hit);
    }
    case "crash-site":
      reached(stage.probes, "whole-site-restarted");
      for (const node of nodesOf(fault.site)) strike(world, { kind: "crash", node, restartAfterMs: fault.forMs }, hit);
      return;
    case "start-without-peer":
      for (const node of nodesOf(fault.site))
        strike(world, { kind: "crash", node, restartAfterMs: SITE_RESTART_MS }, hit);
      return strike(
        world,
        { kind: "partition", groups: [nodesOf(fault.site), nodesOf(fault.peer)], forMs: fault.forMs },
        hit,
      );
    case "crash-node":
      return strike(world, { kind: "crash", node: fault.node, restartAfterMs: fault.forMs }, hit);
    case "pause-node":
      return strike(world, { kind: "pause", node: fault.node, forMs: fault.forMs }, hit);
    case "crash-leader": {
      const leader = stage.site(fault.site).leader();
      if (leader !== undefined) strike(world, { kind: "crash", node: leader, restartAfterMs: fault.forMs }, hit);
      return;
    }
    case "depose-leader": {
      const { names } = stage.site(fault.site);
      const leader = stage.site(fault.site).leader();
      const others = names.filter((name) => name !== leader);
      if (leader === undefined || others.length === 0) return;
      return strike(world, { kind: "partition", groups: [[leader], others], forMs: fault.forMs }, hit);
    }
    case "wall-jump-site":
      stage.ledger.clocks(fault.site);
      for (const node of nodesOf(fault.site)) strike(world, { kind: "wall-jump", node, byMs: fault.byMs }, hit);
      return;
    case "restore-site":
      return stage.operator.restore(fault.site, fault.forMs, hit);
    case "evict-site":
      return stage.operator.evict(fault.at, fault.site, hit);
    default:
      return assertNever(fault, "fault");
  }
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  const result = [...items];
  for (let i = result.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [result[i], result[j]] = [result[j] as T, result[i] as T];
  }
  return result;
}
