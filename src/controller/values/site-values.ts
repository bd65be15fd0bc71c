// Values on a site whose log is in a database: none. A leader there writes its state into the database itself, in the transaction that has the fence.

import { TenureError } from "../../core/kit/errors.ts";
import type { Values } from "../../ports/values.ts";

export function noValues(): Values {
  return { put: reject, delete: reject, get: refuse, list: refuse, changes: refuse, changed: reject };
}

function refuse(): never {
  throw new TenureError(
    "NOT_SUPPORTED",
    "nodes on Postgres keep no values. Write them into the database itself, with term.tx: that fences them.",
  );
}

async function reject(): Promise<never> {
  return refuse();
}
