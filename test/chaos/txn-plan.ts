// What a run of `chaos txn` does in which order. The coordinator is killed as often as was asked for, at all of its points in turn; an island next to it every
// third time; and now and then something else happens. Each of them at least once, however short the run.

import type { Random } from "../../src/core/kit/random.ts";
import { COORDINATOR_POINTS, ISLAND_POINTS, type TxnPoint } from "./txn-points.ts";

/** Those that no point has: the victim is drawn when it comes to that. `…-leader`: of the coordinators. */
export const OTHER_FAULTS = [
  "kill-island",
  "kill-all",
  "stop-leader",
  "stop-island",
  "cut",
  "cut-one-way",
  "cut-off-leader",
  "cut-off-island",
] as const;
export type OtherFault = (typeof OTHER_FAULTS)[number];

export type TxnStep =
  /** `island`: killed at a point of its own, meanwhile. `isSlow`: the killed one stays down until another one leads. */
  | { readonly kind: "kill"; readonly point: TxnPoint; readonly island: TxnPoint | null; readonly isSlow: boolean }
  | { readonly kind: "other"; readonly fault: OtherFault };

/** Killed there, the coordinator leaves islands behind that have prepared and know no decision. */
const WHILE_PREPARED = ["first-prepared", "all-prepared", "before-commit-home", "home-committed"] as const;
/** Kills after which everything is silent for once, and audited. */
const STEPS_PER_ROUND = 6;
const OTHER_EVERY = 20;
const SLOW_EVERY = 40;
const BESIDE_EVERY = 3;

export function planOf(iterations: number, random: Random): readonly (readonly TxnStep[])[] {
  const kills = Math.max(iterations, COORDINATOR_POINTS.length);
  const coordinator = inTurn(COORDINATOR_POINTS, random);
  const island = inTurn(ISLAND_POINTS, random);
  const other = inTurn(OTHER_FAULTS, random);
  // Where there are few kills, each has one next to it until every point has had one.
  const besideEvery = kills < BESIDE_EVERY * ISLAND_POINTS.length ? 1 : BESIDE_EVERY;
  const otherEvery = Math.max(1, Math.min(OTHER_EVERY, Math.floor(kills / OTHER_FAULTS.length)));
  const prepared = inTurn(WHILE_PREPARED, random);
  const steps: TxnStep[] = [];
  for (let at = 0; at < kills; at++) {
    const beside = at % besideEvery === 0 ? island() : null;
    // Nobody asks home while the next leader is quicker than the time of what is prepared.
    const isAsked = beside === "before-inquire";
    const isSlow = isAsked || at % SLOW_EVERY === SLOW_EVERY - 1;
    steps.push({ kind: "kill", point: isAsked ? prepared() : coordinator(), island: beside, isSlow });
    if (at % otherEvery === otherEvery - 1) steps.push({ kind: "other", fault: other() });
  }
  const planned = new Set(steps.map((step) => (step.kind === "kill" ? step.point : null)));
  for (const point of COORDINATOR_POINTS)
    if (!planned.has(point)) steps.push({ kind: "kill", point, island: null, isSlow: false });
  return Array.from({ length: Math.ceil(steps.length / STEPS_PER_ROUND) }, (_, at) =>
    steps.slice(at * STEPS_PER_ROUND, (at + 1) * STEPS_PER_ROUND),
  );
}

/** Each once in a random order, then again. */
function inTurn<T>(all: readonly T[], random: Random): () => T {
  let left: T[] = [];
  return () => {
    if (left.length === 0) left = [...all];
    return left.splice(random.below(left.length), 1)[0]!;
  };
}
