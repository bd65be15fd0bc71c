// Leadership on Tenure's own servers: a lease in their replicated log, the index of its grant as the epoch.

import type { Random } from "../../core/kit/random.ts";
import type { Backend } from "../../ports/backends/backend.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ScopeAdmin } from "../../ports/backends/scope-admin.ts";
import type { ServersWire } from "../../ports/backends/servers.ts";
import { ServersAdmin } from "./admin.ts";
import { LeaderClient } from "./leader-client.ts";
import { Members } from "./members.ts";
import type { ServersSettings } from "./options.ts";
import { ServersSeat } from "./seat.ts";
import { scopePath } from "./scopes-client.ts";
import type { ServersTerm } from "./term.ts";
import { type ServersValues, ServersValuesReader } from "./values.ts";

export type { TlsFiles as ServersTls } from "../../ports/backends/backend.ts";
export type { StoredValue, ValueItem } from "../../ports/stored-values.ts";
export type { ValueDeleted } from "../../ports/values.ts";
export { serversTerm, type ServersTerm, type ValueCondition, type ValueStore } from "./term.ts";
export type { ServersValues, ValuesWatchOptions } from "./values.ts";
export { serversSettings, type ServersOptions, type ServersSettings } from "./options.ts";

export interface ServersBackend extends Backend<ServersTerm> {
  readonly kind: "servers";
  /** For those who do not lead. Opens connections of its own; close it. */
  values(): ServersValues;
  /** For operators. Opens connections of its own; close it. */
  admin(): ScopeAdmin;
}

/** What the backend needs of the process that it runs in. */
export interface ServersWorld {
  readonly host: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Never the same twice, whoever asks. */
  readonly newSession: () => string;
  /** Sockets of its own for each seat: one that is abandoned takes nobody else's with it. */
  readonly connect: () => ServersWire;
}

export function serversBackend(settings: ServersSettings, world: ServersWorld): ServersBackend {
  const members = new Members(settings.urls, settings.learnMembers);
  const { requestTimeoutMs, budgetMs } = settings;
  const open = (clock: Clock, random: Random): LeaderClient =>
    new LeaderClient({ wire: world.connect(), members, clock, random, requestTimeoutMs, budgetMs });
  return {
    kind: "servers",
    host: world.host,
    timing: settings.timing,
    seat: (claim) => {
      scopePath(claim.scope);
      return new ServersSeat(claim, settings, open(claim.clock, claim.random), world.newSession);
    },
    values: () => {
      const { clock, random } = world;
      return new ServersValuesReader({ client: open(clock, random), clock, random });
    },
    admin: () => new ServersAdmin(open(world.clock, world.random)),
  };
}
