// Who founds a cluster of coordinators. Exactly one of those that are started together may: the one with the smallest endpoint of the list, and only
// when every other one has answered that it is in no cluster. A majority is not enough: a founder that lost its disk would found again while the
// members of its first cluster can't be reached.

import { normalisedEndpoint } from "./members.ts";

export interface SeedWord {
  readonly endpoint: string;
  /** Of what it answered: whether it is in a cluster. */
  readonly isInCluster: boolean;
}

export type Founding =
  | { readonly kind: "found" }
  /** These have not answered yet. */
  | { readonly kind: "wait"; readonly for: readonly string[] }
  /** It waits to be admitted: by another founder, or by the cluster that a seed is in. */
  | { readonly kind: "join" };

export function foundingOf(self: string, seeds: readonly string[], words: readonly SeedWord[]): Founding {
  const all = [...new Set(seeds.map(normalisedEndpoint))].sort();
  const others = all.filter((seed) => seed !== self);
  if (all[0] !== self || words.some(({ isInCluster }) => isInCluster)) return { kind: "join" };
  const silent = others.filter((seed) => !words.some(({ endpoint }) => endpoint === seed));
  return silent.length === 0 ? { kind: "found" } : { kind: "wait", for: silent };
}
