// Who may call what.
//
//   viewer ◀── submitter   jobs: submit, cancel, retry; schedules
//          ◀── agent       leases and results            ◀── operator   everything
//          ◀── client      scopes: acquire, renew, resign
//
// Everybody who is known may read. The three in the middle may do their own work and nothing of one another's: a key that
// holds a scope can't submit what an agent will execute. `public` routes answer anybody: they tell a probe whether the
// process lives and serves, and nothing else.

import { API_ROLES, type ApiRole } from "../core/kit/api-role.ts";
import { oneOf } from "./schema-kit.ts";

export const ROLES = API_ROLES;
export type Role = ApiRole;
export const RoleName = oneOf(...API_ROLES);

const RANKS: Readonly<Record<Role, number>> = { viewer: 0, submitter: 1, agent: 1, client: 1, operator: 2 };

export function allows(held: Role, needed: Role): boolean {
  return held === needed || RANKS[held] > RANKS[needed];
}

/** Once somebody has a key of `given`, nobody unknown may do what needs `needed`: of the same rank, or above. */
export function closes(given: Role, needed: Role): boolean {
  return RANKS[given] <= RANKS[needed];
}
