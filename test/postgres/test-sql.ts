// The functions of the schema, called by hand as an elector's session calls them.

import type { Client } from "pg";
import { schemaSql } from "../../src/postgres/schema/schema.ts";
import type { PostgresServer } from "../servers/index.ts";
import { connectTo } from "./test-seat.ts";

let databases = 0;

/** A database of a test's own, with the schema in `public`. */
export async function freshDatabase(server: PostgresServer): Promise<string> {
  const url = await server.createDatabase(`sql_${++databases}`);
  const client = await connectTo(url);
  await client.query(schemaSql("public"));
  await client.end();
  return url;
}

/** A session that takes the lock and the next epoch of a scope. */
export async function bump(client: Client, key: number | string, scope: string, identity = "me"): Promise<number> {
  await client.query("select pg_advisory_lock($1)", [key]);
  return bumpAgain(client, key, scope, identity);
}

export async function bumpAgain(client: Client, key: number | string, scope: string, identity = "me"): Promise<number> {
  const text = "select public.tenure_bump($1, $2, $3, '{}', 'tenure_leader_change', null) as epoch";
  return Number(await one(client, text, [key, scope, identity]));
}

/** The only column of the only row. */
export async function one(client: Client, text: string, values: readonly unknown[] = []): Promise<unknown> {
  const { rows } = await client.query<Record<string, unknown>>(text, [...values]);
  return Object.values(rows[0] ?? {})[0];
}

/** The SQLSTATE that it is refused with; "" where it is not. */
export async function refusal(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return "";
  } catch (error) {
    return String((error as { code?: unknown }).code);
  }
}
