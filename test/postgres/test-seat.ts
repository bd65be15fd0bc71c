// Seats and electors on a real server, for the tests of this folder.

import { Client } from "pg";
import { seededRandom } from "../../src/core/kit/random.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { postgres } from "../../src/entry/postgres.ts";
import type { PostgresOptions, PooledClient } from "../../src/entry/postgres.ts";
import type { Claim, LossReason, Seat } from "../../src/ports/backends/backend.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { LogFields } from "../../src/ports/logger.ts";

/** Short enough for tests, long enough for a busy machine. */
export const FAST = {
  heartbeatMs: 150,
  serverTimeoutMs: 1_500,
  marginMs: 300,
  retryMinMs: 20,
  retryMaxMs: 100,
} as const;

/** A leader that does not hear of anything while a test runs, on however busy a machine. */
export const DEAF = { heartbeatMs: 20_000 } as const;

export interface TestSeat extends Seat {
  readonly lost: readonly { readonly epoch: number; readonly reason: LossReason }[];
  readonly logged: readonly { readonly fields: LogFields; readonly message: string }[];
}

let seats = 0;

/** A seat without an elector: what the backend does by itself. */
export function seatOf(
  options: PostgresOptions<PooledClient> | ReturnType<typeof postgres>,
  scope: string,
  identity = `${scope}-${++seats}`,
  clock: Clock = systemClock,
): TestSeat {
  const backend = "seat" in options ? options : postgres({ ...FAST, ...options });
  const lost: { epoch: number; reason: LossReason }[] = [];
  const logged: { fields: LogFields; message: string }[] = [];
  const log = (fields: LogFields, message: string): void => void logged.push({ fields, message });
  const claim: Claim = {
    scope,
    identity,
    metadata: { name: identity },
    clock,
    random: seededRandom(identity),
    logger: { info: log, warn: log, error: log },
    lost: (epoch, reason) => void lost.push({ epoch, reason }),
  };
  return Object.assign(backend.seat(claim), { lost, logged });
}

export const NEVER = new AbortController().signal;

/** Runs ahead of the server's, so that a client's patience is over sooner. */
export function fasterClock(times: number): Clock {
  return {
    monotonicMs: () => systemClock.monotonicMs() * times,
    wallMs: () => systemClock.wallMs(),
    setTimer: (atMs, fire) => systemClock.setTimer(atMs / times, fire),
  };
}

/** A session of a test's own. */
export async function connectTo(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}
