// The database schema of the Postgres backend: the script that installs it, and what of it is there.
//
// - The script is one transaction under an advisory lock, so that many processes may start at once; applying it to a
//   database that has it changes nothing. Tables come by numbered migrations, each run once; functions are replaced
//   every time, which keeps their grants.
// - The rule of versions. Each migration stores its number and the oldest library version of the schema that still
//   works with it. A database that is older than the library: apply. Newer, and it still takes this library: use it
//   as it is, never apply over it (TN008). Newer, and it does not: refuse, the library must be upgraded.
// - Nothing is ever dropped by it.

import { TenureError } from "../../core/kit/errors.ts";
import type { SqlSession } from "../../ports/backends/sql.ts";
import { FENCE_KEY_MASK } from "../lock-key.ts";
import { fenceFunctions, MARK } from "./fence.ts";
import { electorFunctions } from "./functions.ts";
import {
  LOG_INTERNAL_ROUTINES,
  LOG_ROUTINES,
  LOG_TABLES,
  logFunctions,
  logTables,
  logTriggerFunction,
  SUBMIT_ROUTINES,
} from "./log.ts";
import { SITE_ROUTINES, SITE_TABLES, siteFunctions, siteTables } from "./site.ts";
import { tables, triggerFunctions } from "./tables.ts";

export { DEFAULT_CHANNEL } from "./tables.ts";

export const DEFAULT_SCHEMA = "public";
/** The number of the last migration that this library knows. */
export const SCHEMA_VERSION = 3;
/** The oldest library, by its SCHEMA_VERSION, that works with what this one installs. */
const WORKS_FROM = 1;
/** The letters "TENUREMG". */
const MIGRATION_LOCK_KEY = 0x54454e5552454d47n;
const MIGRATION_LOCK_WAIT = "10s";

const TABLES = ["tenure_leader_state", "tenure_heartbeat", "tenure_transition", "tenure_schema_version"] as const;

/** What others call: `permissions.md` says who. */
const ROUTINES = {
  tenure_wait: "bigint",
  tenure_bump: "bigint, text, text, jsonb, text, integer",
  tenure_beat: "bigint, bigint",
  tenure_resign: "bigint, bigint, text",
  tenure_ask_resign: "text, boolean",
  tenure_require_epoch: "text, bigint",
  tenure_fence: "bigint, bigint",
} as const;

/** What for a session is checked; each role has grants of its own. */
export type SchemaUse = "elector" | "log";

/** What `checkSchema` asks of a role for its use; the fence may belong to another. */
const NEEDED: Readonly<
  Record<SchemaUse, { readonly tables: readonly string[]; readonly routines: readonly string[] }>
> = {
  elector: { tables: TABLES, routines: ["tenure_wait", "tenure_bump", "tenure_beat", "tenure_resign"] },
  log: {
    tables: ["tenure_schema_version", ...LOG_TABLES, ...SITE_TABLES],
    routines: Object.keys({ ...LOG_ROUTINES, ...SITE_ROUTINES }),
  },
};

const INTERNAL_ROUTINES = {
  tenure_guard: "",
  tenure_notify: "",
  tenure_fence_key: "bigint",
  tenure_lock_holders: "bigint",
  tenure_holds: "bigint",
  tenure_record: "bigint, timestamptz, bigint, text, text, timestamptz",
  tenure_take_fence: "text, bigint",
} as const;

/** A name that needs no thought in any quoting, here or in a user's own scripts. */
export function quoteSchema(schema: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(schema) || /^pg_/i.test(schema)) {
    throw new TenureError(
      "CONFIG_INVALID",
      `schema is ${JSON.stringify(schema)}; it must be letters, digits and underscores, at most 63, not begin with a digit, nor with pg_, which is Postgres's own.`,
    );
  }
  return `"${schema}"`;
}

/** The whole script, for psql, for another migration tool, or for `applySchema`. */
export function schemaSql(schema: string): string {
  const quoted = quoteSchema(schema);
  return `-- Tenure's tables and functions, version ${SCHEMA_VERSION}. Safe to run again.
begin;
set local lock_timeout = '${MIGRATION_LOCK_WAIT}';
set local client_min_messages = warning;
select pg_catalog.pg_advisory_xact_lock(${MIGRATION_LOCK_KEY});
do $install$
begin
  if pg_catalog.current_setting('server_version_num')::integer < 140000 then
    raise exception using errcode = '0A000',
      message = 'Tenure needs Postgres 14 or newer: older ones can''t end the session of a frozen leader';
  end if;
  if pg_catalog.to_regnamespace('${quoted}') is null then create schema ${quoted}; end if;
  create table if not exists ${quoted}.tenure_schema_version (
    version integer primary key,
    works_from integer not null,
    applied_at timestamptz not null default pg_catalog.now()
  );
  if (select max(v.version) from ${quoted}.tenure_schema_version v) > ${SCHEMA_VERSION} then
    raise exception using errcode = 'TN008',
      message = 'the schema ${quoted} was installed by a newer version of Tenure than this one',
      hint = 'nothing was changed; upgrade this library, or leave the schema as it is';
  end if;
end $install$;
${triggerFunctions(quoted)}${logTriggerFunction(quoted)}
do $install$
begin
  if not exists (select from ${quoted}.tenure_schema_version v where v.version >= 1) then${tables(quoted)}
    insert into ${quoted}.tenure_schema_version (version, works_from) values (1, ${WORKS_FROM});
  end if;
  if not exists (select from ${quoted}.tenure_schema_version v where v.version >= 2) then${logTables(quoted)}${siteTables(quoted)}
    insert into ${quoted}.tenure_schema_version (version, works_from) values (2, ${WORKS_FROM});
  end if;
  -- No table: since version 3 the procedure tenure_fence, below, leaves a mark in its transaction.
  if not exists (select from ${quoted}.tenure_schema_version v where v.version >= 3) then
    insert into ${quoted}.tenure_schema_version (version, works_from) values (3, ${WORKS_FROM});
  end if;
end $install$;
${fenceFunctions(quoted, FENCE_KEY_MASK)}${electorFunctions(quoted)}${logFunctions(quoted)}${siteFunctions(quoted)}
${revokes(quoted)}
commit;
`;
}

function revokes(quoted: string): string {
  return Object.entries({
    ...ROUTINES,
    ...INTERNAL_ROUTINES,
    ...LOG_ROUTINES,
    ...SUBMIT_ROUTINES,
    ...SITE_ROUTINES,
    ...LOG_INTERNAL_ROUTINES,
  })
    .map(([name, types]) => `revoke all on routine ${quoted}.${name}(${types}) from public;`)
    .join("\n");
}

/** The statements of a session and of a fence, by the schema's name. */
export function statements(schema: string) {
  const quoted = quoteSchema(schema);
  const callOf = (lockKey: bigint, epoch: number): string =>
    `call ${quoted}.tenure_fence('${lockKey}'::bigint, '${epoch}'::bigint)`;
  return {
    /** lock key → `granted`: false after the session's lock_timeout. */
    wait: `select ${quoted}.tenure_wait($1::bigint) as granted`,
    /** lock key, scope, identity, metadata as JSON text, channel, idle_session_timeout in ms → `epoch` (text). */
    bump: `select ${quoted}.tenure_bump($1::bigint, $2::text, $3::text, $4::jsonb, $5::text, $6::integer) as epoch`,
    /** lock key, epoch → `verdict`: one of BEAT_VERDICTS. */
    beat: `select ${quoted}.tenure_beat($1::bigint, $2::bigint) as verdict`,
    /** lock key, epoch, "resigned" or "asked" → `resigned`: false if the epoch was not in force any more. */
    resign: `select ${quoted}.tenure_resign($1::bigint, $2::bigint, $3::text) as resigned`,
    /** scope, force → at most one row: `epoch` (text), `holder_identity`, `terminated` (sessions). */
    askResign: `select epoch::text, holder_identity, terminated from ${quoted}.tenure_ask_resign($1::text, $2::boolean)`,
    /**
     * TN001 is the refusal; else no rows, and the transaction has the mark. For any client, in its own transaction: all is in the
     * text, as each client numbers values in its own way. Typed: a small number is an integer, and a stranger's
     * `tenure_fence(bigint, integer)` would be called in its place.
     */
    fence: callOf,
    /** What the setting is while a transaction holds this fence, and was not fenced for another scope afterwards. */
    markOf: (lockKey: bigint, epoch: number): string => `${quoted}/${lockKey}/${epoch}`,
    /**
     * One row of one text, the mark; '' where there is none, 42704 where this session never had one. SHOW needs no plan. The nonce makes
     * each text another one for a cache, and comes after the semicolon: pg_stat_statements cuts a statement there in every version.
     */
    mark: (nonce: string): string => `show ${MARK}; /* ${nonce} */`,
    /** The start of a fenced transaction, as one query of the simple protocol. */
    begin: (lockKey: bigint, epoch: number, isolation: string): string =>
      `begin isolation level ${isolation}; ${callOf(lockKey, epoch)}`,
    /** lock key → at most one row: `epoch` (text), `holder_identity` ('' for nobody), `metadata`. */
    leader: `select epoch::text, holder_identity, metadata from ${quoted}.tenure_leader_state where scope_key = $1::bigint`,
  } as const;
}

export const BEAT_VERDICTS = ["held", "resign", "superseded", "unlocked", "read-only"] as const;
export type BeatVerdict = (typeof BEAT_VERDICTS)[number];

/** `newer` is usable; `unusable` is newer and says that it is not. */
export type SchemaState =
  | {
      readonly kind: "current" | "newer";
      readonly version: number;
      readonly denied: readonly string[];
      /** Routines of our names that somebody created who does not own our tables: they could be called in place of ours. */
      readonly foreign: readonly string[];
    }
  | { readonly kind: "missing"; readonly version: number; readonly missing: readonly string[] }
  | { readonly kind: "older" | "unusable"; readonly version: number };

/** Installs what is missing. Rejects with the server's error; the session is usable afterwards. */
export async function applySchema(session: SqlSession, schema: string): Promise<void> {
  try {
    await session.query(schemaSql(schema));
  } catch (error) {
    await session.query("rollback");
    throw error;
  }
}

interface Part {
  readonly name: string;
  readonly there: boolean;
  readonly allowed: boolean;
}

/** What is there, and what of it the present role may not use for this. Changes nothing, needs no right. */
export async function checkSchema(
  session: SqlSession,
  schema: string,
  use: SchemaUse = "elector",
): Promise<SchemaState> {
  const quoted = quoteSchema(schema);
  const { tables: readTables, routines } = NEEDED[use];
  const values = [quoted, [...TABLES, ...LOG_TABLES, ...SITE_TABLES], signatures(), [...routines], [...readTables]];
  const parts = await session.query<Part>(PARTS, values);
  const missing = parts.filter((part) => !part.there).map((part) => part.name);
  const denied = parts.filter((part) => part.there && !part.allowed).map((part) => part.name);
  const readable = parts.some((part) => part.name === "table tenure_schema_version" && part.there && part.allowed);
  const [row] = readable
    ? await session.query<{ version: number; works_from: number }>(
        `select version, works_from from ${quoted}.tenure_schema_version order by version desc limit 1`,
      )
    : [];
  const version = row?.version ?? 0;
  if (readable && version < SCHEMA_VERSION) return { kind: "older", version };
  if (row !== undefined && row.works_from > SCHEMA_VERSION) return { kind: "unusable", version };
  if (missing.length > 0) return { kind: "missing", version, missing };
  const foreign = await session.query<{ name: string }>(FOREIGN, [quoted]);
  return {
    kind: version > SCHEMA_VERSION ? "newer" : "current",
    version,
    denied,
    foreign: foreign.map((one) => one.name),
  };
}

function signatures(): string[] {
  return Object.entries({ ...ROUTINES, ...LOG_ROUTINES, ...SUBMIT_ROUTINES, ...SITE_ROUTINES }).map(
    ([name, types]) => `${name}(${types})`,
  );
}

/**
 * Values: quoted schema, tables, routines as name(types), names of the routines that the role must be able to call and of
 * the tables that it must be able to read.
 */
const PARTS = `
select 'schema ' || $1::text as name, to_regnamespace($1::text) is not null as there,
  coalesce(has_schema_privilege(to_regnamespace($1::text), 'usage'), false) as allowed
union all
select 'table ' || t.name, c.oid is not null,
    not t.name = any ($5::text[]) or coalesce(has_table_privilege(c.oid, 'select'), false)
  from unnest($2::text[]) as t (name)
  left join pg_catalog.pg_class c on c.relname = t.name and c.relnamespace = to_regnamespace($1::text)
union all
select 'function ' || r.signature, p.oid is not null,
    not p.proname = any ($4::text[]) or coalesce(has_function_privilege(p.oid, 'execute'), false)
  from unnest($3::text[]) as r (signature)
  left join pg_catalog.pg_proc p on p.pronamespace = to_regnamespace($1::text)
    and p.proname || '(' || replace(pg_catalog.oidvectortypes(p.proargtypes), '"', '') || ')' = r.signature`;

/** Value: quoted schema. */
const FOREIGN = `
select p.oid::regprocedure::text as name from pg_catalog.pg_proc p
  join pg_catalog.pg_class c on c.relname = 'tenure_leader_state' and c.relnamespace = p.pronamespace
  where p.pronamespace = to_regnamespace($1::text) and p.proname like 'tenure\\_%' and p.proowner <> c.relowner`;
