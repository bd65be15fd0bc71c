// Who may call what.
//
//   viewer ◀── submitter   jobs: submit, cancel, retry; schedules
//          ◀── agent       leases and results            ◀── operator   everything
//          ◀── client      scopes: acquire, renew, resign
//   backup                 snapshots: save, fetch        ◀── operator
//   controller             another site of the mesh       ◀── operator
//
// Everybody but `backup` and `controller` may read. A site of the mesh gets what sites exchange, under its own id, and reads nothing else. The three in the middle may do their own work and nothing of one another's: a key that
// holds a scope can't submit what an agent will execute. `backup` is for a machine that stores copies: it saves snapshots and
// reads nothing else. `public` routes answer anybody: they report whether the process lives and serves, and nothing else.
//
// A replicated key may have a role that this release does not know, made by a newer one: such a key may do nothing here, and
// closes everything to those without a key.

import { API_ROLES, type ApiRole } from "../core/kit/api-role.ts";
import { oneOf } from "./schema-kit.ts";

export const ROLES = API_ROLES;
export type Role = ApiRole;
export const RoleName = oneOf(...API_ROLES);

const ALLOWED = known<readonly Role[]>({
  viewer: ["viewer"],
  submitter: ["viewer", "submitter"],
  agent: ["viewer", "agent"],
  client: ["viewer", "client"],
  backup: ["backup"],
  controller: ["controller"],
  operator: API_ROLES,
});

const RANKS = known<number>({ viewer: 0, submitter: 1, agent: 1, client: 1, backup: 1, controller: 1, operator: 2 });

export function allows(held: Role, needed: Role): boolean {
  return ALLOWED.get(held)?.includes(needed) ?? false;
}

/** Of a route that has something for other sites too (Route.isForSites). */
export function allowsSite(held: Role, { isForSites }: { readonly isForSites: boolean }): boolean {
  return isForSites && allows(held, "controller");
}

/**
 * Once somebody has a key of `given`, nobody unknown may do what needs `needed`: of the same rank, or above. Whoever passes for another
 * site writes what all nodes keep and pass on: any key at all ends that.
 */
export function closes(given: Role, needed: Role): boolean {
  if (needed === "controller") return true;
  return (RANKS.get(given) ?? 0) <= RANKS.get(needed)!;
}

function known<T>(byRole: Readonly<Record<Role, T>>): ReadonlyMap<string, T> {
  return new Map(Object.entries(byRole));
}
