// `tenure/agent`: runs jobs of Tenure's servers in this process. It needs `fetch`, and no package next to this one.

import {
  type Agent,
  AGENT_SETTINGS,
  type AgentSettings,
  checkSettings,
  JobAgent,
  type JobHandlers,
  type JobKinds,
} from "../agent/index.ts";
import { CLIENT_OPTIONS, createWork } from "../client/client.ts";
import type { Client, ClientOptions } from "../client/index.ts";
import { refuseUnknownOptions } from "../core/kit/options.ts";
import { seededRandom } from "../core/kit/random.ts";
import type { Json } from "../core/kit/json.ts";
import { systemClock } from "../drivers/system/clock.ts";
import { requireNode } from "../drivers/system/host.ts";

export {
  type AbortReason,
  type Agent,
  type AgentJob,
  JobAborted,
  type JobContext,
  JobError,
  type JobHandler,
  type JobHandlers,
  type JobKinds,
} from "../agent/index.ts";
export { type ErrorCode, TenureError } from "../core/kit/errors.ts";

requireNode();

/** Of any kind, with whatever JSON can say. */
type AnyKinds = Readonly<Record<string, { readonly payload: Json; readonly result: unknown }>>;

/** A client, or what one is made of. */
type Where = { readonly client: Pick<Client, "work"> } | ({ readonly client?: undefined } & ClientOptions);

export type AgentOptions<Kinds extends JobKinds = AnyKinds> = Omit<AgentSettings, "handlers"> &
  Where & { readonly handlers: JobHandlers<Kinds> };

function workOf(where: Where): Client["work"] {
  if (where.client !== undefined) return where.client.work;
  const { urls, key, fetch: given, timeoutMs, leaderWaitMs } = where;
  return createWork({ urls, key, fetch: given, timeoutMs, leaderWaitMs });
}

const KNOWN = { ...AGENT_SETTINGS, client: true, ...CLIENT_OPTIONS } as const;

/** Does nothing before `start`; throws CONFIG_INVALID where the options are wrong. */
export function createAgent<Kinds extends JobKinds = AnyKinds>(options: AgentOptions<Kinds>): Agent {
  refuseUnknownOptions("createAgent", options, KNOWN);
  const settings = checkSettings(options);
  const work = workOf(options);
  return new JobAgent(settings, {
    clock: systemClock,
    desk: work,
    random: seededRandom(crypto.randomUUID()),
    newSession: () => crypto.randomUUID(),
  });
}
