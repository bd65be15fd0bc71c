// The doctor's judgement over what was seen of a Postgres server: pure, one function for each row.

import { assertNever } from "../../core/kit/assert.ts";
import { HEARTBEAT_JITTER } from "../../core/kit/limits.ts";
import { POSTGRES_VERSION_MIN } from "../../postgres/limits.ts";
import { failedConnection } from "./connection.ts";
import type {
  ClockFacts,
  Connections,
  Latency,
  Pooler,
  PostgresFacts,
  SchemaFacts,
  Server,
  SessionTimeouts,
} from "./postgres.ts";
import { quoteName } from "./postgres.ts";
import { judgeLog } from "./postgres-log.ts";
import { judgeScopes } from "./postgres-scopes.ts";
import { judgeSettings } from "./postgres-settings.ts";
import { type Check, judged, ok, problem, unknown, warning } from "./report.ts";

/** An elector takes a session to campaign with and one to observe; a transaction of `term.tx` one more. */
const SESSIONS_NEEDED = 3;
const CONNECTIONS_LOW_PART = 0.1;
/** Crystals are right to a few hundred ppm; beyond this a clock is broken, slewed hard, or was set. */
const RATE_ODD = 0.01;

export function judgePostgres(facts: PostgresFacts): Check[] {
  const { connection, server, settings } = facts;
  if (connection.stage !== "open") return [failedConnection(connection.stage, connection.message)];
  const opened = ok("connection", `${facts.where}, open after ${connection.ms.toFixed(0)} ms`);
  if (server === undefined) return [opened, unknown("server", "the connection ended before anything could be asked")];
  const { timing, schema } = settings;
  const isInstalled = "value" in server.schema && "denied" in server.schema.value.state;
  return [
    opened,
    version(server),
    standby(server),
    ...judged("pooler", server.pooler, (pooler) => [judgePooler(pooler)]),
    ...judged("settings", server.configured, (configured) => judgeSettings(configured, server, settings.session)),
    ...judged("session timeouts", server.session, judgeSession),
    ...judged("connections", server.connections, (one) => [connections(one, server)]),
    ...judged("schema", server.schema, (one) => judgeSchema(one, schema, server)),
    ...(isInstalled ? judged("log", server.log, (log) => judgeLog(log, schema, server.role)) : []),
    ...judged("notify", server.notify, ({ arrived }) => [notify(arrived)]),
    ...judged("clock rate", server.clock, (clock) => [judgeClock(clock, timing)]),
    ...judged("latency", server.latency, (latency) => [judgeLatency(latency, timing)]),
    ...(isInstalled
      ? judged("scopes", server.scopes, (scopes) => judgeScopes(scopes, facts.scope, timing.serverTimeoutMs))
      : []),
  ];
}

function version({ version: number, versionText }: Server): Check {
  if (number >= POSTGRES_VERSION_MIN) return ok("version", `PostgreSQL ${versionText}`);
  return problem("version", `PostgreSQL ${versionText}`, {
    means: "it must be 14 or newer: older ones can't end the session of a frozen leader (idle_session_timeout)",
    advice: "Upgrade the server, or use another.",
  });
}

function standby({ isStandby, primary }: Server): Check {
  if (!isStandby) return ok("primary", "not in recovery");
  return problem("primary", `a standby${primary === null ? "" : `; it follows ${primary}`}`, {
    means: "it grants locks that mean nothing to the primary; nobody leads through this URL",
    advice: "Point the URL at the primary, or at a name that moves with it. After a failover: promote a standby first.",
  });
}

function judgePooler(pooler: Pooler): Check {
  switch (pooler.kind) {
    case "none":
      return ok("pooler", "none that shares sessions");
    case "transaction":
    case "statement":
      return problem("pooler", `one in ${pooler.kind} mode: ${pooler.evidence}`, {
        means: "it would leave the lock with a session that nobody owns; campaigns are refused (POOLER_IN_PATH)",
        advice:
          "Give the URL of the server itself, or of a pool in session mode (PgBouncer: pool_mode = session). Your own queries may stay behind the pooler: options url and connect.",
      });
    default:
      return assertNever(pooler, "pooler");
  }
}

function judgeSession({ wanted, found, checksConnection }: SessionTimeouts): Check[] {
  const off = Object.keys(wanted).filter((name) => wanted[name] !== found[name]);
  const timeouts =
    off.length === 0
      ? ok("session timeouts", timeoutsText(Object.keys(wanted), found))
      : problem("session timeouts", `asked for ${timeoutsText(off, wanted)}; got ${timeoutsText(off, found)}`, {
          means: "a frozen leader would keep the scope, or a healthy one lose it",
          advice:
            "Something on the way undoes SET: a pooler, or a server that forbids it. Connect to the server itself.",
        });
  if (checksConnection) return [timeouts, ok("client check", "client_connection_check_interval works")];
  return [
    timeouts,
    warning("client check", "this server can't set client_connection_check_interval", {
      means: "a leader killed in the middle of a long statement is followed only when that statement ends",
      advice: "Keep fenced statements short, or run the server on a platform that has POLLRDHUP (Linux).",
    }),
  ];
}

function timeoutsText(names: readonly string[], values: Readonly<Record<string, number>>): string {
  return names.map((name) => `${name} ${values[name] ?? "?"} ms`).join(", ");
}

function connections({ used, max, role, database }: Connections, server: Server): Check {
  const limits = [
    { what: "the server", used, max, sql: [] as string[] },
    ...(role === null
      ? []
      : [{ what: `role ${server.role}`, ...role, sql: [`alter role ${quoteName(server.role)} connection limit -1;`] }]),
    ...(database === null
      ? []
      : [
          {
            what: `database ${server.database}`,
            ...database,
            sql: [`alter database ${quoteName(server.database)} connection limit -1;`],
          },
        ]),
  ];
  const seen = limits.map((limit) => `${limit.used} of ${limit.max} (${limit.what})`).join(", ");
  const full = limits.filter((limit) => limit.max - limit.used < SESSIONS_NEEDED);
  const low = limits.filter((limit) => limit.max - limit.used < limit.max * CONNECTIONS_LOW_PART);
  const tight = full.length > 0 ? full : low;
  if (tight.length === 0) return ok("connections", `${seen} in use`);
  const names = tight.map((limit) => limit.what).join(" and ");
  const level = full.length > 0 ? problem : warning;
  return level("connections", `${seen} in use`, {
    means: `${names} ${full.length > 0 ? "has no room for another elector" : "is nearly full"}: one takes ${SESSIONS_NEEDED} connections`,
    advice: tight.some((limit) => limit.what === "the server")
      ? "Raise max_connections (needs a restart), close idle connections, or put your own queries behind a pooler."
      : "",
    sql: tight.flatMap((limit) => limit.sql),
  });
}

function judgeSchema(found: SchemaFacts, schema: string, server: Server): Check[] {
  const { state, elsewhere, denied, owner } = found;
  const place = `schema ${quoteName(schema)} of database ${quoteName(server.database)}`;
  const apply = 'Run "tenure schema apply" as a role that may create tables, or start one instance with such a role.';
  switch (state.kind) {
    case "missing": {
      const places = elsewhere.map((one) => `database ${quoteName(one.database)}, schema ${quoteName(one.schema)}`);
      return [
        problem("schema", `${missingText(state.missing)} in ${place}`, {
          means:
            places.length === 0
              ? "Tenure's tables are not here: nobody has campaigned here yet, or this is the wrong database"
              : `this looks like the wrong place: Tenure's tables are in ${places.join("; ")}. Instances in two places would both lead`,
          advice:
            places.length === 0
              ? apply
              : `Correct the database in the URL, or TENURE_PG_SCHEMA. If this is another application, with scopes of its own: ${apply}`,
        }),
      ];
    }
    case "older":
      return [
        problem("schema", `version ${state.version} in ${place}`, { means: "too old for this version", advice: apply }),
      ];
    case "unusable":
      return [
        problem("schema", `version ${state.version} in ${place}`, {
          means: "it was installed by a newer version of Tenure, which says that this one can't use it",
          advice: "Upgrade this one.",
        }),
      ];
    case "current":
    case "newer":
      return [
        ok(
          "schema",
          `${state.version === 0 ? "a version that this role may not read" : `version ${state.version}`} in ${place}`,
        ),
        ...strangers(state.foreign, schema),
        rights(denied, server),
        signals(owner, server),
        ...safety(found, schema),
      ];
    default:
      return assertNever(state, "schema");
  }
}

/** Routines of our names that are not ours: an overload is called where its types fit better. */
function strangers(foreign: readonly string[], schema: string): Check[] {
  if (foreign.length === 0) return [];
  return [
    problem("strangers", `${foreign.join(", ")} belong to another role than Tenure's tables`, {
      means: "they could be called in place of Tenure's own, with its rights or instead of its fence",
      advice: "Find out who created them, then drop them, and let nobody else create in this schema.",
      sql: [
        ...foreign.map((one) => `drop routine ${one};`),
        `revoke create on schema ${quoteName(schema)} from public;`,
      ],
    }),
  ];
}

/** Nothing at all is there, or something is not: which of them is worth telling. */
function missingText(missing: readonly string[]): string {
  return missing.includes("table tenure_leader_state") ? "no tables of Tenure" : `no ${missing.join(", no ")}`;
}

function rights(denied: SchemaFacts["denied"], { role }: Server): Check {
  if (denied.length === 0) return ok("rights", `role ${role} may use all that an elector uses`);
  return problem("rights", `role ${role} may not use ${denied.map((one) => one.what).join(", ")}`, {
    means: "campaigns of this role are refused (PERMISSION_DENIED)",
    advice: "As the owner of these, or as a superuser:",
    sql: denied.map((one) => one.grant),
  });
}

/** Whoever owns tenure_bump ends transactions that still hold the fence: of any role that may fence. */
function signals(owner: SchemaFacts["owner"], { role }: Server): Check {
  if (owner === null || owner.maySignal)
    return ok("ending sessions", "the owner of the functions may end those who hold a fence");
  return warning("ending sessions", `role ${owner.name} owns the functions and may not end sessions of other roles`, {
    means: `a fenced transaction of another role (${role}) that hangs keeps the next leader waiting`,
    sql: [`grant pg_signal_backend to ${quoteName(owner.name)};`],
  });
}

/** What keeps an epoch from being given out twice, and what makes observers quick. */
function safety({ triggersOff, triggersMissing, unlogged }: SchemaFacts, schema: string): Check[] {
  const table = (name: string): string => `${quoteName(schema)}.${name}`;
  const checks: Check[] = [];
  if (triggersMissing.length > 0) {
    checks.push(
      problem("triggers", `${triggersMissing.join(", ")} gone from ${table("tenure_leader_state")}`, {
        means: "epochs are not guarded against a restore or a hand that lowers them, or changes are not notified",
        advice: "Somebody dropped them. Restore the table's definition: tenure schema print shows it.",
      }),
    );
  } else if (triggersOff.length > 0) {
    const guards = triggersOff.some((name) => name.startsWith("tenure_guard"));
    checks.push(
      (guards ? problem : warning)("triggers", `${triggersOff.join(", ")} switched off`, {
        means: guards
          ? "nothing refuses a change that would give an epoch out twice"
          : "observers hear of a new leader by polling only, up to a second late",
        sql: triggersOff.map((name) => `alter table ${table("tenure_leader_state")} enable trigger ${name};`),
      }),
    );
  } else checks.push(ok("triggers", "all on"));
  if (unlogged.length === 0) return [...checks, ok("durable tables", "all logged")];
  checks.push(
    problem("durable tables", `${unlogged.join(", ")} unlogged`, {
      means: "a crash empties them, and epochs start again: an old leader's writes would pass the fence",
      sql: unlogged.map((name) => `alter table ${table(name)} set logged;`),
    }),
  );
  return checks;
}

function notify(arrived: boolean): Check {
  if (arrived) return ok("notify", "LISTEN and NOTIFY work");
  return warning("notify", "a NOTIFY to ourselves did not arrive", {
    means: "observers hear of a new leader by polling only, up to a second late",
    advice: "A pooler that shares sessions loses notifications: connect to the server itself.",
  });
}

/**
 * The server ends a session after `serverTimeoutMs` of its own time; the gate closes `marginMs` earlier by ours. A server
 * whose clock is faster than T / (T − margin) ends it while the gate is still open.
 */
function judgeClock(
  clock: ClockFacts,
  { serverTimeoutMs, marginMs }: { serverTimeoutMs: number; marginMs: number },
): Check {
  const { rate, uncertainty, overMs, offsetMs } = clock;
  const rateMax = serverTimeoutMs / (serverTimeoutMs - marginMs);
  const seen = `${rate.toFixed(4)} ± ${uncertainty.toFixed(4)} server seconds in one of ours, over ${overMs.toFixed(0)} ms; wall clocks differ by ${offsetMs.toFixed(0)} ms, which does not matter`;
  const advice =
    "Run this again, for a clock that was set just now looks the same; then look at NTP and the virtual machine's clock on both.";
  if (rate - uncertainty > rateMax) {
    return problem("clock rate", seen, {
      means: `the margin covers a rate up to ${rateMax.toFixed(3)}: a leader would still trust itself after the server has given its scope away`,
      advice,
    });
  }
  if (Math.abs(rate - 1) - uncertainty > RATE_ODD) {
    return warning("clock rate", seen, {
      means: "the two clocks run at different rates; the margin still covers it",
      advice,
    });
  }
  return ok("clock rate", seen);
}

/** A heartbeat that is sent on time must be answered before the trust of the one before it ends. */
function judgeLatency(
  { samples, p50Ms, p99Ms }: Latency,
  { serverTimeoutMs, marginMs, heartbeatMs }: { serverTimeoutMs: number; marginMs: number; heartbeatMs: number },
): Check {
  const roomMs = serverTimeoutMs - marginMs - heartbeatMs * (1 + HEARTBEAT_JITTER);
  const seen = `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms of ${samples} round trips; a heartbeat has ${roomMs.toFixed(0)} ms`;
  const advice = "Move the instance nearer to the database, or raise TENURE_SERVER_TIMEOUT_MS on every instance.";
  if (p99Ms >= roomMs) {
    return problem("latency", seen, {
      means: "the gate closes between heartbeats: a healthy leader can't act",
      advice,
    });
  }
  if (p99Ms >= roomMs / 4) {
    return warning("latency", seen, { means: "a few slow answers in a row close the gate", advice });
  }
  return ok("latency", seen);
}
