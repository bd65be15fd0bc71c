// What a site on a database refuses an operator, and what to do instead.

import { TenureError } from "../../core/kit/errors.ts";

export function invalid(why: string): TenureError {
  return new TenureError("TRANSFER_TARGET_INVALID", why);
}

export function noSnapshots(): TenureError {
  return new TenureError(
    "NOT_SUPPORTED",
    "the state of a site on Postgres is in the database: back that up (pg_dump, or continuous archiving), and restore it there.",
  );
}

export function noMembers(): TenureError {
  return new TenureError(
    "NOT_SUPPORTED",
    "nodes on Postgres have no members to change: a node belongs to the site while it runs. Start it, or stop it.",
  );
}
