// What the service of a simulated coordinator may show.

import { generationOf, type RegistryEntry } from "../../core/lease/index.ts";
import type { TcNode } from "./node.ts";

/** Null: nothing is wrong. In no plan does a disk forget, or an identity have two. */
export function wrongInService(node: TcNode, moves: number): string | null {
  const { name, service, coordinator } = node;
  const seen = service.seen();
  // Who moved there and back may look like two.
  if (moves < 2 && seen.shared.includes(name)) return "it reports itself as two";
  const [forgetful] = seen.forgetful;
  if (forgetful !== undefined) return `it reports that ${forgetful} has forgotten a grant`;
  const { actsInTerm } = service.view();
  return actsInTerm === coordinator.leads ? null : `it shows that it acts in ${actsInTerm}`;
}

/** The leader of this generation in whose registry an entry is; null: it is in none. On two sides of a cut each generation has one. */
export function registeredAt(
  { endpoint, backendHash }: RegistryEntry,
  generation: number,
  nodes: readonly TcNode[],
): string | null {
  const leader = nodes.find(({ coordinator: { leads } }) => leads !== null && generationOf(leads) === generation);
  const registry = leader?.coordinator.leadership?.committed?.registry ?? [];
  const isThere = registry.some((one) => one.endpoint === endpoint && one.backendHash === backendHash);
  return isThere ? (leader?.name ?? null) : null;
}
