// What goes wrong in a run of spreading sites. Every fault ends by itself, so that any part of a plan is a plan.

import { assertNever } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";
import { weighted } from "../kernel/index.ts";
import { CROWD_CHURN_PER_S } from "./limits.ts";
import type { Stage } from "./stage.ts";

type Fault =
  | { readonly kind: "crash"; readonly node: string; readonly forMs: number }
  /** It comes back without what it had of other sites' lines. */
  | { readonly kind: "wipe"; readonly node: string; readonly forMs: number }
  /** `edge`: its place in the topology. */
  | { readonly kind: "cut"; readonly edge: number; readonly forMs: number }
  | { readonly kind: "silent-cut"; readonly edge: number; readonly forMs: number }
  /** Whatever page it sends must be refused. */
  | { readonly kind: "damage"; readonly node: string; readonly forMs: number }
  /** It can't read the pages that it should send. */
  | { readonly kind: "unreadable"; readonly node: string; readonly forMs: number }
  /** Pages that wait to be applied are lost. */
  | { readonly kind: "forget"; readonly node: string };
export type SpreadFault = Fault & { readonly atMs: number };

const KINDS = weighted<Fault["kind"]>({
  crash: 3,
  wipe: 1,
  cut: 3,
  "silent-cut": 2,
  damage: 2,
  unreadable: 1,
  forget: 4,
});
/** Faults come after the first links are connected. */
const FIRST_MS = 1_000;

export function drawPlan(random: Random, { knobs, edges }: Stage): SpreadFault[] {
  if (knobs.crowd) return drawChurn(random, knobs.sites, knobs.faultsUntilMs, edges.length);
  const faults = Array.from({ length: knobs.faults }, (_, at): SpreadFault => {
    const stream = random.fork(`fault/${at}`);
    return draw(stream, stream.pick(KINDS), stream.between(FIRST_MS, knobs.faultsUntilMs), knobs.sites, edges.length);
  });
  // One that certainly has an effect; in a star it is the hub's.
  const atMs = Math.floor(knobs.faultsUntilMs / 2);
  faults.push({ atMs, kind: "crash", node: "n1", forMs: 2_000 });
  return faults.sort((a, b) => a.atMs - b.atMs);
}

function draw(random: Random, kind: Fault["kind"], time: number, sites: number, edges: number): SpreadFault {
  const atMs = Math.floor(time);
  const node = `n${1 + random.below(sites)}`;
  const edge = random.below(edges);
  const forMs = Math.floor(random.between(50, 5_000));
  switch (kind) {
    case "crash":
    case "wipe":
    case "damage":
    case "unreadable":
      return { atMs, kind, node, forMs };
    case "cut":
    case "silent-cut":
      return { atMs, kind, edge, forMs };
    case "forget":
      return { atMs, kind, node };
    default:
      return assertNever(kind, "kind of fault");
  }
}

/** So large a share of the sites, and of the links, in each second. */
function drawChurn(random: Random, sites: number, untilMs: number, edges: number): SpreadFault[] {
  const seconds = (untilMs - FIRST_MS) / 1_000;
  const some = (kind: "crash" | "cut", count: number): SpreadFault[] =>
    Array.from({ length: count }, (_, at) => {
      const stream = random.fork(`${kind}/${at}`);
      return draw(stream, kind, stream.between(FIRST_MS, untilMs), sites, edges);
    });
  const crashes = some("crash", Math.round(sites * CROWD_CHURN_PER_S * seconds));
  const cuts = some("cut", Math.round(edges * CROWD_CHURN_PER_S * seconds));
  return [...crashes, ...cuts].sort((a, b) => a.atMs - b.atMs);
}

export function applySpreadFault(stage: Stage, fault: SpreadFault, hit: () => void): void {
  if (strike(stage, fault)) hit();
}

function strike(stage: Stage, fault: SpreadFault): boolean {
  switch (fault.kind) {
    case "crash":
      return stage.crash(placeOf(fault.node), fault.forMs);
    case "wipe":
      return stage.crash(placeOf(fault.node), fault.forMs, true);
    case "cut":
      return stage.cut(fault.edge, fault.forMs, false);
    case "silent-cut":
      return stage.cut(fault.edge, fault.forMs, true);
    case "damage":
      return stage.damage(placeOf(fault.node), fault.forMs);
    case "unreadable":
      return stage.hide(placeOf(fault.node), fault.forMs);
    case "forget":
      return stage.forget(placeOf(fault.node));
    default:
      return assertNever(fault, "fault");
  }
}

function placeOf(node: string): number {
  return Number(node.slice(1)) - 1;
}
