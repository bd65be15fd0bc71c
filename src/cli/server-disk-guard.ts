// New holds and new jobs are refused while the disk is low: what is left belongs to votes, no-ops, the ends of holds and the
// results of jobs. Renewals write nothing, and resigning frees: they go on.

import { TenureError } from "../core/kit/errors.ts";
import type { DataDirectory } from "../drivers/disk/index.ts";
import type { Scopes } from "../ports/scopes.ts";

type DiskState = Pick<DataDirectory, "state" | "freeBytes">;

/** Why nothing new is taken; null: it is. */
export function diskRefusal(directory: DiskState): TenureError | null {
  const state = directory.state();
  if (state === "ok") return null;
  const free = directory.freeBytes();
  const left = free === null ? "" : `, ${Math.floor(free / 2 ** 20)} MiB are free`;
  const why = `the disk of the leader is ${state}${left}: nothing new is taken. Free space; it goes on by itself`;
  return new TenureError("DISK_FULL", why);
}

export function diskGuarded(scopes: Scopes, directory: DiskState): Scopes {
  return {
    acquire: (request, signal) => {
      const refusal = diskRefusal(directory);
      return refusal === null ? scopes.acquire(request, signal) : Promise.reject(refusal);
    },
    renew: (scope, session, epoch) => scopes.renew(scope, session, epoch),
    resign: (scope, session, epoch) => scopes.resign(scope, session, epoch),
    askResign: (scope, force) => scopes.askResign(scope, force),
    list: (after, limit) => scopes.list(after, limit),
    get: (scope) => scopes.get(scope),
    history: (scope) => scopes.history(scope),
    changed: (scope, known, signal) => scopes.changed(scope, known, signal),
  };
}
