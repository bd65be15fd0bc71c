// `tenure/servers`: leadership on Tenure's own servers, over their HTTP API. No package next to this one is needed.

import { hostname } from "node:os";
import { seededRandom } from "../core/kit/random.ts";
import { serversHttpWire } from "../drivers/servers/index.ts";
import { systemClock } from "../drivers/system/clock.ts";
import { requireNode } from "../drivers/system/host.ts";
import {
  type ServersBackend,
  serversBackend,
  type ServersOptions,
  serversSettings,
} from "../electors/servers/index.ts";

export type {
  ServersBackend,
  ServersOptions,
  ServersTerm,
  ServersTls,
  ServersValues,
  StoredValue,
  ValueCondition,
  ValueDeleted,
  ValueItem,
  ValuesWatchOptions,
} from "../electors/servers/index.ts";
export type { Json } from "../core/kit/json.ts";

requireNode();

/** The API address of each node. Does no I/O; throws CONFIG_INVALID where the options are wrong. */
export function servers(urls: string | readonly string[], options: ServersOptions = {}): ServersBackend {
  const settings = serversSettings(urls, options);
  const { key, tls } = settings;
  return serversBackend(settings, {
    host: `${hostname()}-${process.pid}`,
    clock: systemClock,
    random: seededRandom(crypto.randomUUID()),
    newSession: () => crypto.randomUUID(),
    connect: () => serversHttpWire({ key, tls }),
  });
}
