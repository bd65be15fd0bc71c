// The promises of an elector as a suite for the Postgres backend, against a real server, for either way of waiting.

import { Pool } from "pg";
import { afterAll, beforeAll, describe, it } from "vitest";
import { StaleEpochError } from "../../src/entry/index.ts";
import { postgres } from "../../src/entry/postgres.ts";
import { type ConformanceWorld, electorConformance } from "../../src/entry/testing.ts";
import { type PostgresServer, startPostgres } from "../servers/index.ts";
import { proxiedWorld } from "./test-worlds.ts";

/** Short, so that what waits for it takes seconds; what it may not be short of is a busy machine. */
const SERVER_TIMEOUT_MS = 3_000;

let server: PostgresServer;
let pool: Pool;

/** A transaction of the user's own, with the fence in it. */
async function fencedWrite(schema: string, scope: string, epoch: number, value: string): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    await client.query(`select ${schema}.tenure_require_epoch($1, $2)`, [scope, epoch]);
    await client.query("insert into ledger values ($1, $2, $3)", [scope, epoch, value]);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    const code = (error as { code?: string }).code;
    throw code === "TN001" ? new StaleEpochError(scope, epoch, { cause: error }) : error;
  } finally {
    client.release();
  }
}

let schemas = 0;

/** Each case has a schema of its own, so that it begins where Tenure has never been. */
async function world(wait: "block" | "poll"): Promise<ConformanceWorld> {
  const schema = `conformance_${++schemas}`;
  await pool.query(`create schema ${schema}`);
  return proxiedWorld({
    serverPort: server.port,
    killFreesAtOnce: true,
    backend: (port) => {
      const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
      return postgres({ url, wait, schema, serverTimeoutMs: SERVER_TIMEOUT_MS });
    },
    write: (scope, epoch, value) => fencedWrite(schema, scope, epoch, value),
  });
}

export function postgresConformance(wait: "block" | "poll"): void {
  beforeAll(async () => {
    server = await startPostgres();
    pool = new Pool({ connectionString: server.url() });
    pool.on("error", () => undefined);
    await pool.query("create table ledger (scope text not null, epoch bigint not null, value text not null)");
  });

  afterAll(async () => {
    await pool?.end();
    await server?.end();
  });

  describe(`postgres, wait: "${wait}"`, { concurrent: true }, () => {
    for (const { name, run } of electorConformance(() => world(wait))) it(name, run);
  });
}
