// `tenure/postgres`: leadership in your own Postgres, with a fence in your own transactions.

import { createHash, randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { assert } from "../core/kit/assert.ts";
import { type PooledClient, poolDriver, poolLender, urlDriver, urlLender } from "../drivers/postgres/index.ts";
import { requireNode } from "../drivers/system/host.ts";
import {
  fenceOf,
  PostgresBackend,
  type PostgresOptions,
  type PostgresTerm,
  settingsOf,
} from "../electors/postgres/index.ts";
import type { Backend } from "../ports/backends/backend.ts";
import type { SqlDriver, SqlLender } from "../ports/backends/sql.ts";
import { lockKeyOf } from "../postgres/lock-key.ts";

export type { PooledClient } from "../drivers/postgres/index.ts";
export type { FenceRun, Isolation, PostgresOptions, PostgresTerm, TxOptions } from "../electors/postgres/index.ts";

requireNode();

/** Connects nothing before an elector campaigns or observes. Wrong options are refused here, with CONFIG_INVALID. */
export function postgres(url: string): Backend<PostgresTerm<PooledClient>>;
export function postgres<Client extends PooledClient = PooledClient>(
  options: PostgresOptions<Client>,
): Backend<PostgresTerm<Client>>;
export function postgres(given: string | PostgresOptions<PooledClient>): Backend<PostgresTerm<PooledClient>> {
  const options = typeof given === "string" ? { url: given } : given;
  const settings = settingsOf(options);
  const driver = driverOf(options);
  const lender = lenderOf(options);
  const keyOf = (scope: string): bigint => settings.lockKey ?? lockKeyOf(scope, sha256);
  return new PostgresBackend(settings, {
    driver,
    host: `${hostname()}-${process.pid}`,
    lockKeyOf: keyOf,
    extras: fenceOf({ lender, where: driver.where, schema: settings.schema, lockKeyOf: keyOf, nonce }),
    idle: () => lender.close(),
  });
}

const ownPrefix = randomBytes(8).toString("hex");
let nonces = 0;

function nonce(): string {
  return `${ownPrefix}n${++nonces}`;
}

function sha256(bytes: Uint8Array): Uint8Array {
  return createHash("sha256").update(bytes).digest();
}

function driverOf({ url, connect }: PostgresOptions<PooledClient>): SqlDriver {
  if (url !== undefined) return urlDriver(url, "tenure");
  assert(connect !== undefined, "settingsOf wants a url or connect");
  return poolDriver(connect, "the pool of connect()");
}

function lenderOf({ url, connect }: PostgresOptions<PooledClient>): SqlLender<PooledClient> {
  if (connect !== undefined) return poolLender(connect);
  assert(url !== undefined, "settingsOf wants a url or connect");
  return urlLender(url, "tenure tx");
}
