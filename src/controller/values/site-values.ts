// Values on a site whose log is in a database: none. Whoever can reach the nodes can reach the database, which keeps what is written there, and whose
// own elector has the fence.

import { TenureError } from "../../core/kit/errors.ts";
import type { Values } from "../../ports/values.ts";

export function noValues(): Values {
  return { put: reject, delete: reject, get: refuse, list: refuse, changes: refuse, changed: reject };
}

function refuse(): never {
  throw new TenureError(
    "NOT_SUPPORTED",
    "nodes on Postgres keep no values. Keep them in the database, in a transaction that checks the epoch: term.tx, or tenure_require_epoch.",
  );
}

async function reject(): Promise<never> {
  return refuse();
}
