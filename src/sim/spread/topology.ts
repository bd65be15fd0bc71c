// Who has whom as its parent: the edges between sites. The first of an edge dials.

import { assertNever } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";

export type Shape = "mesh" | "chain" | "tree" | "star" | "ring" | "random";
/** Places of two sites. */
export type Edge = readonly [number, number];

export function edgesOf(shape: Shape, sites: number, linksPerSite: number, random: Random): Edge[] {
  const others = Array.from({ length: sites - 1 }, (_, at) => at + 1);
  switch (shape) {
    case "mesh":
      return others.flatMap((to) => Array.from({ length: to }, (_, from): Edge => [from, to]));
    case "chain":
      return others.map((at): Edge => [at, at - 1]);
    case "tree":
      return others.map((at): Edge => [at, (at - 1) >> 1]);
    case "star":
      return others.map((at): Edge => [at, 0]);
    case "ring":
      return [...others.map((at): Edge => [at, at - 1]), ...(sites > 2 ? [[0, sites - 1] as const] : [])];
    case "random":
      return randomEdges(sites, linksPerSite, random);
    default:
      return assertNever(shape, "shape");
  }
}

/** A ring through all of them in a drawn order, so that all are connected, and then random edges up to the degree. */
function randomEdges(sites: number, linksPerSite: number, random: Random): Edge[] {
  const order = Array.from({ length: sites }, (_, at) => at);
  for (let at = sites - 1; at > 0; at--) {
    const other = random.below(at + 1);
    [order[at], order[other]] = [order[other]!, order[at]!];
  }
  const edges = new Map<number, Edge>();
  const add = (a: number, b: number): void => {
    if (a !== b) edges.set(Math.min(a, b) * sites + Math.max(a, b), [a, b]);
  };
  for (let at = 0; at < sites; at++) add(order[at]!, order[(at + 1) % sites]!);
  const wanted = Math.min(Math.floor((sites * linksPerSite) / 2), (sites * (sites - 1)) / 2);
  while (edges.size < wanted) add(random.below(sites), random.below(sites));
  return [...edges.values()];
}

/** How many edges are between a place and each other one, on the shortest way. All are connected. */
export function distancesFrom(place: number, edges: readonly Edge[]): ReadonlyMap<number, number> {
  const neighbours = new Map<number, number[]>();
  for (const [a, b] of [...edges, ...edges.map(([from, to]): Edge => [to, from])]) {
    neighbours.set(a, [...(neighbours.get(a) ?? []), b]);
  }
  const distances = new Map([[place, 0]]);
  // A map is gone through in the order in which it grows.
  for (const [at, distance] of distances) {
    for (const next of neighbours.get(at) ?? []) if (!distances.has(next)) distances.set(next, distance + 1);
  }
  return distances;
}
