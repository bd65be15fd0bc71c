// Leadership in your etcd: a lease, a key that can only be created, and its create_revision as the epoch.

import type { Backend } from "../../ports/backends/backend.ts";
import type { EtcdWire } from "../../ports/backends/etcd.ts";
import type { ScopeAdmin } from "../../ports/backends/scope-admin.ts";
import { EtcdAdmin } from "./admin.ts";
import { scopeKeys } from "./keys.ts";
import type { EtcdSettings } from "./options.ts";
import { EtcdSeat } from "./seat.ts";
import { EtcdSession } from "./session.ts";
import type { EtcdTerm } from "./term.ts";

export type { TlsFiles as EtcdTls } from "../../ports/backends/backend.ts";
export { etcdSettings, type EtcdOptions, type EtcdSettings } from "./options.ts";
export type { EtcdGuard, EtcdTerm, EtcdTxn, EtcdTxnResult } from "./term.ts";

export interface EtcdBackend extends Backend<EtcdTerm> {
  readonly kind: "etcd";
  /** For operators. Opens connections of its own; close it. */
  admin(): ScopeAdmin;
}

/** What the backend needs of the process that it runs in. */
export interface EtcdWorld {
  readonly host: string;
  readonly wallMs: () => number;
  /** Sockets of its own for each seat: one that is abandoned takes nobody else's with it. */
  readonly connect: () => EtcdWire;
}

export function etcdBackend(settings: EtcdSettings, world: EtcdWorld): EtcdBackend {
  const open = (): EtcdSession => new EtcdSession(world.connect(), settings.credentials, settings.requestTimeoutMs);
  return {
    kind: "etcd",
    host: world.host,
    timing: settings.timing,
    seat: (claim) => {
      scopeKeys(settings.prefix, claim.scope);
      return new EtcdSeat(claim, settings, open());
    },
    admin: () => new EtcdAdmin(open(), settings.prefix, world.wallMs),
  };
}
