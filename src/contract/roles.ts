// Who may call what. operator > client > viewer; a higher role may do everything that a lower one may.
// `public` routes answer anybody: they tell a probe whether the process lives and serves, and nothing else.

import { oneOf } from "./schema-kit.ts";

export const ROLES = ["viewer", "client", "operator"] as const;
export type Role = (typeof ROLES)[number];
export const RoleName = oneOf("viewer", "client", "operator");

export function allows(held: Role, needed: Role): boolean {
  return ROLES.indexOf(held) >= ROLES.indexOf(needed);
}
