// What observers read: who leads the scopes with these keys, as one statement.

import type { Leader } from "../../ports/elector.ts";
import { quoteSchema } from "../../postgres/schema/schema.ts";
import { parseJson } from "../../core/kit/parse-json.ts";

/**
 * `held`: somebody has the lock. A leader that crashed leaves its name in the row, and no lock. A standby sees no locks
 * of its primary: there the row alone is the answer.
 */
export function leadersSql(schema: string): string {
  const quoted = quoteSchema(schema);
  return `
select s.scope_key::text as key, s.epoch::text as epoch, s.holder_identity as holder, s.metadata::text as metadata,
  round(extract(epoch from clock_timestamp() - h.last_heartbeat) * 1000)::text as age_ms,
  (pg_is_in_recovery() or exists (select from pg_catalog.pg_locks l
    where l.locktype = 'advisory' and l.granted and l.mode = 'ExclusiveLock' and l.objsubid = 1
      and l.classid::bigint = ((s.scope_key >> 32) & 4294967295) and l.objid::bigint = (s.scope_key & 4294967295)
      and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())))::text as held
from ${quoted}.tenure_leader_state s left join ${quoted}.tenure_heartbeat h on h.scope_key = s.scope_key
where s.scope_key = any($1::bigint[])`;
}

export interface LeaderRow {
  readonly key: string;
  readonly epoch: string;
  readonly holder: string;
  readonly metadata: string;
  readonly age_ms: string | null;
  readonly held: string;
}

export function leaderOf(row: LeaderRow | undefined): Leader | null {
  if (row === undefined || row.holder === "" || row.held !== "true") return null;
  return {
    epoch: Number(row.epoch),
    identity: row.holder,
    metadata: parseJson(row.metadata) as Readonly<Record<string, string>>,
  };
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
