// What is checked on each new session before it asks for anything, and what the session is told about timeouts.
//
//   connected ──▶ version, standby ──▶ settings ──▶ schema ──▶ no pooler in the path ──▶ ready
//
// Each check names what a person has to do. Nothing is asked of a standby: it would grant locks that mean nothing
// (trap 37).

import { assertNever } from "../core/kit/assert.ts";
import { TenureError } from "../core/kit/errors.ts";
import type { SqlSession } from "../ports/backends/sql.ts";
import { APPLICATION_NAME_BYTES_MAX, CONNECTION_CHECK_MS, POSTGRES_VERSION_MIN, SCHEMA_MS_MAX } from "./limits.ts";
import type { Line } from "./line.ts";
import { applySchema, checkSchema, type SchemaUse } from "./schema/schema.ts";

/** What holds for all sessions of one `postgres()`. */
export interface SessionRules {
  readonly schema: string;
  readonly migrate: "auto" | "check";
  readonly session: SessionTimeouts;
}

/** What the server enforces on a session (design D19). */
interface SessionTimeouts {
  /** A waiter's: it may have been granted the lock while it was frozen (trap 49a). */
  readonly waitingIdleMs: number;
  /** A waiter asks again so often, for the same reason. */
  readonly lockMs: number;
  /** A leader's statement, and a leader between BEGIN and COMMIT. */
  readonly statementMs: number;
}

/** The server: new enough, and a primary. */
export async function checkServer(line: Line): Promise<void> {
  const text = "select current_setting('server_version_num') as version, pg_is_in_recovery()::text as standby";
  const [row] = await line.ask<{ version: string; standby: string }>(text);
  const version = Number(row?.version);
  if (!(version >= POSTGRES_VERSION_MIN)) {
    const found = `${Math.floor(version / 10_000)} (server_version_num ${row?.version ?? "unknown"})`;
    throw new TenureError(
      "BACKEND_UNSUPPORTED",
      `Postgres at ${line.where} is version ${found}, and must be 14 or newer: older ones can't end the session of a frozen leader (idle_session_timeout). Upgrade the server, or use another.`,
    );
  }
  if (row?.standby !== "false") {
    throw new TenureError(
      "BACKEND_READ_ONLY",
      `Postgres at ${line.where} is a standby: its locks mean nothing to the primary. Point the URL at the primary; it is tried again, for this one may be promoted.`,
    );
  }
}

export interface SessionSettings {
  /** `tenure <scope>`: what an operator sees in pg_stat_activity. */
  readonly name: string;
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  readonly idleSessionTimeoutMs: number;
  readonly idleInTransactionTimeoutMs: number;
}

/** All settings of a session, in one round trip. */
export async function configure(line: Line, settings: SessionSettings): Promise<void> {
  const values: Readonly<Record<string, string | number>> = {
    application_name: applicationName(settings.name),
    statement_timeout: settings.statementTimeoutMs,
    lock_timeout: settings.lockTimeoutMs,
    idle_session_timeout: settings.idleSessionTimeoutMs,
    idle_in_transaction_session_timeout: settings.idleInTransactionTimeoutMs,
  };
  const calls = Object.entries(values).map(([name, value]) => `set_config('${name}', '${value}', false)`);
  // Servers on some platforms can't look at the socket while a statement runs, and refuse the setting.
  const check = `do $tenure$ begin
  perform set_config('client_connection_check_interval', '${CONNECTION_CHECK_MS}', false);
exception when undefined_object or invalid_parameter_value then null;
end $tenure$`;
  await line.ask(`${check}; select ${calls.join(", ")}`);
}

/** The server keeps printable ASCII only; quotes are left out too, for this goes into the text of a statement. */
export function applicationName(name: string): string {
  return name.replaceAll(/[^ -~]|['\\]/g, "?").slice(0, APPLICATION_NAME_BYTES_MAX);
}

/** Tables and functions: there, of a version that we know, and ours to use. */
export async function ensureSchema(line: Line, settings: SessionRules, use: SchemaUse): Promise<void> {
  await line.aloneLimited((session) => ensure(session, line.where, settings, use), SCHEMA_MS_MAX);
}

async function ensure(
  session: SqlSession,
  where: string,
  { schema, migrate }: SessionRules,
  use: SchemaUse,
): Promise<void> {
  let state = await checkSchema(session, schema, use);
  if ((state.kind === "missing" || state.kind === "older") && migrate === "auto") {
    await applySchema(session, schema);
    state = await checkSchema(session, schema, use);
  }
  const place = `in schema "${schema}" of Postgres at ${where}`;
  const apply = 'Run "tenure schema apply" as a role that may create tables, or use migrate: "auto" with such a role.';
  switch (state.kind) {
    case "current":
    case "newer":
      if (state.foreign.length > 0) {
        throw new TenureError(
          "PERMISSION_DENIED",
          `somebody who does not own Tenure's tables has created ${state.foreign.join(", ")} ${place}, which could be called in place of Tenure's own. Find out who, drop it, and "revoke create on schema ${schema} from public".`,
        );
      }
      if (state.denied.length === 0) return;
      throw new TenureError(
        "PERMISSION_DENIED",
        `this role may not use ${state.denied.join(", ")} ${place}. Grant it what docs/reference/permissions.md lists.`,
      );
    case "missing":
      throw new TenureError("SCHEMA_MISSING", `there is no ${state.missing.join(", no ")} ${place}. ${apply}`);
    case "older":
      throw new TenureError(
        "SCHEMA_MISSING",
        `Tenure's tables ${place} are of version ${state.version}, too old. ${apply}`,
      );
    case "unusable":
      throw new TenureError(
        "SCHEMA_MISSING",
        `Tenure's tables ${place} are of version ${state.version}, which this library does not know. Upgrade the library.`,
      );
    default:
      assertNever(state, "ensureSchema");
  }
}
