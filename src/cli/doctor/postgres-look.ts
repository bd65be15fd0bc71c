// Looks at a Postgres server for the doctor: connects, asks, measures, and judges nothing. It writes nothing, takes no
// lock, and needs no right: what it may not see comes back as unknown, with the reason.

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { TenureError } from "../../core/kit/errors.ts";
import { urlDriver } from "../../drivers/postgres/index.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { operatorFault } from "../../electors/postgres/admin.ts";
import { type LockRow, locksSql, type ScopeRow, scopesSql } from "../../electors/postgres/admin-sql.ts";
import type { PostgresSettings } from "../../electors/postgres/index.ts";
import { Line } from "../../postgres/line.ts";
import { lockKeyOf } from "../../postgres/lock-key.ts";
import { refusePooler } from "../../postgres/probe.ts";
import { configure } from "../../postgres/ready.ts";
import type { SqlDriver } from "../../ports/backends/sql.ts";
import { stageOf } from "./connection.ts";
import { NOTIFY_MS_MAX } from "./limits.ts";
import type { Connections, Occupant, Pooler, PostgresFacts, ScopeFacts, Server, Setting } from "./postgres.ts";
import { lookAtLog } from "./postgres-log-look.ts";
import { measureClock, measureLatency } from "./postgres-measure.ts";
import { lookAtSchema } from "./postgres-schema.ts";
import { SETTING_NAMES } from "./postgres-settings.ts";
import type { Fact } from "./report.ts";

const NAME = "tenure doctor";
const CHANNEL = "tenure_doctor";
const SHARED = { unknown: "not tried: the session may be shared, and somebody else would get its settings" };

export interface Subject {
  readonly url: string;
  readonly settings: PostgresSettings;
  readonly scope: string | undefined;
}

export async function lookAtPostgres({ url, settings, scope }: Subject): Promise<PostgresFacts> {
  const driver = urlDriver(url, NAME);
  const base = { where: driver.where, settings, scope };
  const line = new Line(driver, systemClock);
  const startedMs = systemClock.monotonicMs();
  try {
    await line.open();
  } catch (error) {
    line.destroy();
    const { message } = operatorFault(error, driver.where);
    return { ...base, connection: { stage: stageOf(error), message }, server: undefined };
  }
  const connection = { stage: "open", ms: systemClock.monotonicMs() - startedMs } as const;
  try {
    return { ...base, connection, server: await lookAtServer(line, driver, { url, settings, scope }) };
  } catch (error) {
    const { message } = operatorFault(error, driver.where);
    return { ...base, connection: { stage: stageOf(error), message }, server: undefined };
  } finally {
    await line.end();
  }
}

interface IdentityRow {
  readonly role: string;
  readonly database: string;
  readonly version: string;
  readonly version_text: string;
  readonly standby: boolean;
}

async function lookAtServer(line: Line, driver: SqlDriver, subject: Subject): Promise<Server> {
  const [row] = await line.ask<IdentityRow>(`select current_user::text as role, current_database()::text as database,
    current_setting('server_version_num') as version, current_setting('server_version') as version_text,
    pg_is_in_recovery() as standby`);
  if (row === undefined) throw new TenureError("BACKEND_UNSUPPORTED", `${driver.where} gave no answer to a query`);
  const { settings } = subject;
  const version = Number(row.version);
  // One after the other: the session is one, and what is measured must not wait for what is asked.
  const fact = <T>(look: () => Promise<T>): Promise<Fact<T>> => factOf(driver.where, look);
  const pooler = await fact(() => poolerOf(line, driver));
  // What is set on a session that a pooler shares would stay there, for whoever gets it next.
  const isOurs = "value" in pooler && pooler.value.kind === "none";
  const alone = <T>(look: () => Promise<T>): Promise<Fact<T>> => (isOurs ? fact(look) : Promise.resolve(SHARED));
  return {
    role: row.role,
    database: row.database,
    version,
    versionText: row.version_text,
    isStandby: row.standby,
    primary: row.standby ? await primaryOf(line) : null,
    configured: await fact(() => configuredOf(line)),
    latency: await fact(() => measureLatency(line)),
    clock: await fact(() => measureClock(line)),
    connections: await fact(() => connectionsOf(line)),
    schema: await fact(() => lookAtSchema(line, subject)),
    log: await fact(() => lookAtLog(line, settings.schema)),
    scopes: await fact(() => scopesOf(line, subject)),
    pooler,
    notify: await alone(() => notifyOf(driver)),
    session: await alone(() => sessionOf(driver, settings)),
  };
}

async function factOf<T>(where: string, look: () => Promise<T>): Promise<Fact<T>> {
  try {
    return { value: await look() };
  } catch (error) {
    return { unknown: operatorFault(error, where).message };
  }
}

/** Only for those who may read it. */
async function primaryOf(line: Line): Promise<string | null> {
  const text = "select sender_host || ':' || sender_port as primary from pg_catalog.pg_stat_wal_receiver";
  const [row] = await line.ask<{ primary: string | null }>(text);
  return row?.primary ?? null;
}

async function configuredOf(line: Line): Promise<ReadonlyMap<string, Setting>> {
  const text = "select name, setting as value, source from pg_catalog.pg_settings where name = any($1::text[])";
  const rows = await line.ask<Setting & { name: string }>(text, [[...SETTING_NAMES]]);
  return new Map(rows.map(({ name, value, source }) => [name, { value, source }]));
}

interface ConnectionsRow {
  readonly used: number;
  readonly max: number;
  readonly role_used: number;
  readonly role_max: number;
  readonly database_used: number;
  readonly database_max: number;
}

/** Superusers are bound by no limit of a role or a database; this role's own session is among those in use. */
async function connectionsOf(line: Line): Promise<Connections> {
  const [row] = await line.ask<ConnectionsRow>(`
select count(*)::integer as used, current_setting('max_connections')::integer
    - case when r.rolsuper then 0 else current_setting('superuser_reserved_connections')::integer
      + coalesce(current_setting('reserved_connections', true), '0')::integer end as max,
  count(*) filter (where a.usesysid = r.oid)::integer as role_used,
  case when r.rolsuper then -1 else r.rolconnlimit end as role_max,
  count(*) filter (where a.datname = current_database())::integer as database_used,
  case when r.rolsuper then -1 else d.datconnlimit end as database_max
from pg_catalog.pg_roles r join pg_catalog.pg_database d on d.datname = current_database(),
  pg_catalog.pg_stat_activity a
where r.rolname = current_user and a.usesysid is not null and a.datname is not null
group by r.oid, r.rolsuper, r.rolconnlimit, d.datconnlimit`);
  if (row === undefined) throw new TenureError("BACKEND_UNSUPPORTED", "pg_stat_activity does not show our own session");
  return {
    used: row.used,
    max: row.max,
    role: row.role_max < 0 ? null : { used: row.role_used, max: row.role_max },
    database: row.database_max < 0 ? null : { used: row.database_used, max: row.database_max },
  };
}

async function scopesOf(line: Line, { settings, scope }: Subject): Promise<readonly ScopeFacts[]> {
  const rows = await line.ask<ScopeRow>(scopesSql(settings.schema, "all"));
  const names = scope === undefined ? rows.map((row) => row.scope) : [scope];
  const wanted = names.map((name) => {
    const row = rows.find((one) => one.scope === name);
    // A lock key that was set is meant for one scope: the one that was asked about.
    const set = name === scope ? settings.lockKey : undefined;
    const expectedKey = (set ?? lockKeyOf(name, sha256)).toString();
    return { name, row, expectedKey, key: row?.key ?? expectedKey };
  });
  const locks = await line.ask<LockRow>(locksSql(), [[...new Set(wanted.map((one) => one.key))]]);
  const holders = (key: string, kind: LockRow["kind"]): Occupant[] =>
    locks.filter((one) => one.key === key && one.kind === kind && one.granted === "true").map(occupantOf);
  return wanted.map(({ name, row, expectedKey, key }) => ({
    scope: name,
    storedKey: row?.key ?? null,
    expectedKey,
    keyBelongsTo: rows.find((one) => one.key === expectedKey)?.scope ?? null,
    holder: row === undefined || row.holder === "" ? null : row.holder,
    isHeld: row?.held === "true",
    heartbeatAgeMs: row === undefined || row.age_ms === null ? null : Number(row.age_ms),
    lockHolders: holders(key, "lock"),
    fenceHolders: holders(key, "fence"),
  }));
}

function sha256(bytes: Uint8Array): Uint8Array {
  return createHash("sha256").update(bytes).digest();
}

function occupantOf({ pid, user, app, client, prepared, age_ms: age, prepared_ms: preparedAge }: LockRow): Occupant {
  const ageMs = age ?? preparedAge;
  return { pid, user, applicationName: app, client, prepared, ageMs: ageMs === null ? null : Number(ageMs) };
}

async function poolerOf(line: Line, driver: SqlDriver): Promise<Pooler> {
  try {
    await refusePooler(line, driver, systemClock);
    return { kind: "none" };
  } catch (error) {
    if (TenureError.is(error) && error.code === "POOLER_IN_PATH")
      return { kind: "transaction", evidence: error.message };
    if (error instanceof Error && /statement pooling/i.test(error.message)) {
      return { kind: "statement", evidence: error.message };
    }
    throw error;
  }
}

/** On a channel of our own: on the real one every observer would wake. */
async function notifyOf(driver: SqlDriver): Promise<{ arrived: boolean }> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const line = new Line(driver, systemClock, { notified: (channel) => channel === CHANNEL && resolve(true) });
  const timer = setTimeout(() => resolve(false), NOTIFY_MS_MAX);
  try {
    await line.open();
    await line.ask(`listen ${CHANNEL}`);
    await line.ask(`select pg_notify('${CHANNEL}', '')`);
    return { arrived: await promise };
  } finally {
    clearTimeout(timer);
    await line.end();
  }
}

/** Tells a session what leaders are told, and reads back what became of it. */
async function sessionOf(driver: SqlDriver, { timing, session }: PostgresSettings) {
  const wanted: Readonly<Record<string, number>> = {
    statement_timeout: session.statementMs,
    lock_timeout: session.lockMs,
    idle_session_timeout: timing.serverTimeoutMs,
    idle_in_transaction_session_timeout: session.statementMs,
  };
  const line = new Line(driver, systemClock);
  try {
    await line.open();
    await configure(line, {
      name: NAME,
      statementTimeoutMs: session.statementMs,
      lockTimeoutMs: session.lockMs,
      idleSessionTimeoutMs: timing.serverTimeoutMs,
      idleInTransactionTimeoutMs: session.statementMs,
    });
    // Time for a pooler to give the next statement to another session.
    await sleep(1);
    const names = [...Object.keys(wanted), "client_connection_check_interval"];
    const text = "select name, setting from pg_catalog.pg_settings where name = any($1::text[])";
    const rows = await line.ask<{ name: string; setting: string }>(text, [names]);
    const all = Object.fromEntries(rows.map(({ name, setting }) => [name, Number(setting)]));
    const { client_connection_check_interval: check = 0, ...found } = all;
    return { wanted, found, checksConnection: check > 0 };
  } finally {
    await line.end();
  }
}
