// Looks at Tenure's tables, functions and triggers for the doctor: what is there, what the role lacks, and where the
// tables are if they are not where they should be. Reads the catalogue, which everybody may.

import { urlDriver } from "../../drivers/postgres/index.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import type { PostgresSettings } from "../../electors/postgres/index.ts";
import { SCHEMA_MS_MAX } from "../../postgres/limits.ts";
import { Line } from "../../postgres/line.ts";
import { checkSchema } from "../../postgres/schema/schema.ts";
import { DATABASES_SEARCHED_MAX } from "./limits.ts";
import { quoteName, type SchemaFacts } from "./postgres.ts";

const TRIGGERS = ["tenure_guard_row", "tenure_guard_table", "tenure_notify"];
const NAME = "tenure doctor";

export async function lookAtSchema(
  line: Line,
  { url, settings }: { readonly url: string; readonly settings: PostgresSettings },
): Promise<SchemaFacts> {
  const { schema } = settings;
  const state = await line.aloneLimited((session) => checkSchema(session, schema), SCHEMA_MS_MAX);
  const triggers = await triggersOf(line, schema);
  const isMissing = state.kind === "missing";
  return {
    state,
    // With a table here, it is the right place, and something was dropped.
    elsewhere: isMissing && state.missing.includes("table tenure_leader_state") ? await searchFor(line, url) : [],
    denied: "denied" in state ? await grantsFor(line, schema, state.denied) : [],
    owner: await ownerOf(line, schema),
    triggersOff: triggers.filter((one) => !one.on).map((one) => one.name),
    triggersMissing: isMissing ? [] : TRIGGERS.filter((name) => !triggers.some((one) => one.name === name)),
    unlogged: await unloggedOf(line, schema),
  };
}

const TABLES_ANYWHERE = `select current_database()::text as database, n.nspname::text as schema
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relname = 'tenure_leader_state' and c.relkind = 'r' order by 2`;

async function searchFor(line: Line, url: string): Promise<SchemaFacts["elsewhere"]> {
  const here = await line.ask<{ database: string; schema: string }>(TABLES_ANYWHERE);
  const others = await line.ask<{ name: string }>(`select datname::text as name from pg_catalog.pg_database
    where datallowconn and not datistemplate and datname <> current_database()
      and has_database_privilege(oid, 'connect') order by datname limit ${DATABASES_SEARCHED_MAX}`);
  const found = [...here];
  for (const { name } of others) found.push(...(await searchIn(url, name)));
  return found;
}

/** A database that lets us in and says nothing is no news: this is a hint, not a check. */
async function searchIn(url: string, database: string): Promise<{ database: string; schema: string }[]> {
  const other = new URL(url);
  other.pathname = `/${encodeURIComponent(database)}`;
  const line = new Line(urlDriver(other.href, NAME), systemClock);
  try {
    await line.open();
    return await line.ask<{ database: string; schema: string }>(TABLES_ANYWHERE);
  } catch {
    return [];
  } finally {
    await line.end();
  }
}

interface GrantRow {
  readonly what: string;
  readonly target: string;
}

/** `denied` names what the elector would complain about: "schema …", "table …", "function …". */
export async function grantsFor(line: Line, schema: string, denied: readonly string[]): Promise<SchemaFacts["denied"]> {
  if (denied.length === 0) return [];
  const rows = await line.ask<GrantRow>(
    `
select 'table ' || c.relname as what, format('select on table %I.%I', n.nspname, c.relname) as target
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where n.nspname = $1::text
union all
select 'function ' || p.proname || '(' || oidvectortypes(p.proargtypes) || ')',
    format('execute on routine %I.%I(%s)', n.nspname, p.proname, oidvectortypes(p.proargtypes))
  from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace where n.nspname = $1::text`,
    [schema],
  );
  const [who] = await line.ask<{ role: string }>("select quote_ident(current_user) as role");
  const role = who?.role ?? "?";
  return denied.flatMap((what) => {
    if (what.startsWith("schema ")) return [{ what, grant: `grant usage on schema ${quoteName(schema)} to ${role};` }];
    return rows.filter((row) => row.what === what).map((row) => ({ what, grant: `grant ${row.target} to ${role};` }));
  });
}

/** It may end sessions of the present role if it is that role, a member of it, or allowed to end any. */
async function ownerOf(line: Line, schema: string): Promise<SchemaFacts["owner"]> {
  const [row] = await line.ask<{ name: string; may_signal: boolean }>(
    `
select r.rolname::text as name, r.rolsuper or pg_has_role(r.oid, 'pg_signal_backend'::name, 'usage')
  or (pg_has_role(r.oid, current_user, 'usage')
    and not (select m.rolsuper from pg_catalog.pg_roles m where m.rolname = current_user)) as may_signal
from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
  join pg_catalog.pg_roles r on r.oid = p.proowner
where n.nspname = $1::text and p.proname = 'tenure_bump' limit 1`,
    [schema],
  );
  return row === undefined ? null : { name: row.name, maySignal: row.may_signal };
}

async function triggersOf(line: Line, schema: string): Promise<{ name: string; on: boolean }[]> {
  return await line.ask<{ name: string; on: boolean }>(
    `
select t.tgname::text as name, t.tgenabled in ('O', 'A') as on
from pg_catalog.pg_trigger t join pg_catalog.pg_class c on c.oid = t.tgrelid
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1::text and c.relname = 'tenure_leader_state' and t.tgname = any($2::text[]) order by 1`,
    [schema, TRIGGERS],
  );
}

/** In the order in which they can be logged again: a logged table may not refer to an unlogged one. */
async function unloggedOf(line: Line, schema: string): Promise<string[]> {
  const rows = await line.ask<{ name: string }>(
    `
select c.relname::text as name from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1::text and c.relkind = 'r' and c.relpersistence = 'u' and c.relname like 'tenure\\_%'
order by c.relname <> 'tenure_leader_state', 1`,
    [schema],
  );
  return rows.map((row) => row.name);
}
