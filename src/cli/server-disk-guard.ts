// New holds are refused while the disk is low: what is left belongs to votes, no-ops and the ends of holds. Renewals write
// nothing, and resigning frees: they go on.

import { TenureError } from "../core/kit/errors.ts";
import type { DataDirectory } from "../drivers/disk/index.ts";
import type { Scopes } from "../ports/scopes.ts";

export function diskGuarded(scopes: Scopes, directory: Pick<DataDirectory, "state" | "freeBytes">): Scopes {
  return {
    acquire: (request, signal) => {
      const state = directory.state();
      if (state === "ok") return scopes.acquire(request, signal);
      const free = directory.freeBytes();
      const left = free === null ? "" : `, ${Math.floor(free / 2 ** 20)} MiB are free`;
      const why = `the disk of the leader is ${state}${left}: nothing new is taken. Free space; it goes on by itself`;
      return Promise.reject(new TenureError("DISK_FULL", why));
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
