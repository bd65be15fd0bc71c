// Who may report that something is done at an island. Home forgets what all have reported, and undoes what it has forgotten: of all calls between islands
// this one alone can make a transaction half done by mistake, so it is not believed from a server that is known to be of another island.

import { nodeIdOf } from "../../../core/kit/ids.ts";
import type { BackendHash } from "../../../core/txn/model.ts";
import type { Coordinators } from "../../../ports/coordinators.ts";
import { Refusal } from "../../refusal.ts";
import type { Caller } from "../../traffic/callers.ts";

/** Throws tc_forbidden. Where this node does not know at which address the caller is, or no island is registered there, it is believed. */
export function mustBeOf(
  from: BackendHash,
  caller: Caller,
  coordinators: Pick<Coordinators, "members" | "registry"> | undefined,
): void {
  if (coordinators === undefined || caller.how !== "certificate" || caller.identity?.kind !== "server") return;
  const { name } = caller.identity;
  const { voters, leases } = coordinators.members();
  const endpoints = new Set([
    ...voters.filter(({ peer }) => nodeIdOf(peer) === name).map(({ endpoint }) => endpoint),
    ...leases.filter(({ identity }) => identity === name).map(({ endpoint }) => endpoint),
  ]);
  const islands = coordinators
    .registry()
    .entries.filter(({ endpoint }) => endpoints.has(endpoint))
    .map(({ backendHash }) => backendHash);
  if (islands.length === 0 || islands.includes(from)) return;
  throw new Refusal(
    "tc_forbidden",
    `The server ${JSON.stringify(name)} is registered as one of the island ${islands[0]}, and reports for ${from}: nothing was recorded. An island reports for itself alone.`,
  );
}
