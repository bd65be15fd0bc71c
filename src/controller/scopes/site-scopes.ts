// Scopes on a site whose log is in a database: none. Whoever can reach the nodes can reach the database, whose own elector has
// the fence in the user's transactions; a detour through a node would only add a way to fail.

import { TenureError } from "../../core/kit/errors.ts";
import type { Scopes } from "../../ports/scopes.ts";

export function noScopes(): Scopes {
  return {
    acquire: reject,
    renew: reject,
    resign: reject,
    askResign: reject,
    list: refuse,
    get: refuse,
    history: refuse,
    changed: reject,
  };
}

function refuse(): never {
  throw new TenureError(
    "NOT_SUPPORTED",
    'nodes on Postgres lead no scopes for others. Use the database itself as the backend: --backend postgres://… or postgres(url) of "tenure/postgres".',
  );
}

async function reject(): Promise<never> {
  return refuse();
}
