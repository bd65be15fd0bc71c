// What an operator reads in Postgres, as statements for one schema: scopes, transitions, and who has which lock. They
// need SELECT on Tenure's tables and nothing else: everybody may read pg_locks.

import { FENCE_KEY_MASK } from "../../postgres/lock-key.ts";
import { quoteSchema } from "../../postgres/schema/schema.ts";

/** Rows of pg_locks for a 64-bit key of this database: its halves are in classid and objid, with objsubid 1. */
function lockOf(key: string): string {
  return `l.locktype = 'advisory' and l.objsubid = 1
    and l.classid::bigint = ((${key} >> 32) & 4294967295) and l.objid::bigint = (${key} & 4294967295)
    and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())`;
}

/** All of them, or the one that $1 names. A standby sees no locks of its primary: there the row alone is the answer. */
export function scopesSql(schema: string, which: "all" | "one"): string {
  const quoted = quoteSchema(schema);
  return `
select s.scope, s.scope_key::text as key, s.epoch::text as epoch, s.holder_identity as holder,
  s.metadata::text as metadata, (extract(epoch from s.acquired_at) * 1000)::text as acquired_ms,
  (extract(epoch from clock_timestamp() - h.last_heartbeat) * 1000)::text as age_ms,
  coalesce(h.resign_epoch = s.epoch and s.epoch > 0, false)::text as asked,
  (pg_is_in_recovery() or exists (select from pg_catalog.pg_locks l
    where l.granted and l.mode = 'ExclusiveLock' and ${lockOf("s.scope_key")}))::text as held
from ${quoted}.tenure_leader_state s left join ${quoted}.tenure_heartbeat h on h.scope_key = s.scope_key
${which === "one" ? "where s.scope = $1::text" : ""} order by s.scope`;
}

export interface ScopeRow {
  readonly scope: string;
  readonly key: string;
  readonly epoch: string;
  /** '' for nobody. */
  readonly holder: string;
  readonly metadata: string;
  readonly acquired_ms: string | null;
  readonly age_ms: string | null;
  readonly asked: string;
  readonly held: string;
}

export function transitionsSql(schema: string): string {
  const quoted = quoteSchema(schema);
  return `
select (extract(epoch from t.at) * 1000)::text as at_ms, t.epoch::text as epoch, t.holder_identity as holder, t.reason,
  t.held_ms::text as held_ms
from ${quoted}.tenure_transition t join ${quoted}.tenure_leader_state s on s.scope_key = t.scope_key
where s.scope = $1::text order by t.id desc`;
}

export interface TransitionRow {
  readonly at_ms: string;
  readonly epoch: string;
  readonly holder: string;
  readonly reason: string;
  readonly held_ms: string | null;
}

/** $1: lock keys. Prepared transactions have locks without a process; the lock on their own xid tells which it is. */
export function locksSql(): string {
  const fence = `(k.key # ${FENCE_KEY_MASK})`;
  return `
select k.key::text as key, case when ${lockOf("k.key")} then 'lock' else 'fence' end as kind, l.granted::text as granted,
  l.pid, l.mode, a.usename::text as "user", a.application_name as app, host(a.client_addr) as client,
  (extract(epoch from clock_timestamp() - a.xact_start) * 1000)::text as age_ms, x.gid as prepared,
  (extract(epoch from clock_timestamp() - x.prepared) * 1000)::text as prepared_ms
from unnest($1::bigint[]) as k (key)
  join pg_catalog.pg_locks l on (${lockOf("k.key")}) or (${lockOf(fence)})
  left join pg_catalog.pg_stat_activity a on a.pid = l.pid
  left join pg_catalog.pg_locks t on l.pid is null and t.pid is null and t.locktype = 'transactionid'
    and t.virtualtransaction = l.virtualtransaction
  left join pg_catalog.pg_prepared_xacts x on x.transaction = t.transactionid
where l.pid is distinct from pg_backend_pid()
order by k.key, l.granted desc, l.waitstart nulls first, l.pid`;
}

export interface LockRow {
  readonly key: string;
  readonly kind: "lock" | "fence";
  readonly granted: string;
  readonly pid: number | null;
  readonly mode: string;
  readonly user: string | null;
  readonly app: string | null;
  readonly client: string | null;
  /** Of its transaction; null where the role may not see it. */
  readonly age_ms: string | null;
  readonly prepared: string | null;
  readonly prepared_ms: string | null;
}
