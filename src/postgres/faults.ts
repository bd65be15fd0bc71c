// What goes wrong between us and Postgres, as errors that say what to do.
//
// Two kinds: what repairs itself (BACKEND_UNAVAILABLE, BACKEND_READ_ONLY), and what a person must repair. The second kind
// ends a campaign only until a seat has once been served: a follower that ran for months must outlive a rolling
// change of passwords, so afterwards it is told in the same words and tried again.
// No message has a password in it: neither the URL nor what the client was given is ever quoted.

import { type ErrorCode, TenureError } from "../core/kit/errors.ts";
import { sqlstateOf } from "../core/kit/sql-outcome.ts";
import { messageOf } from "../core/kit/user-code.ts";

export interface FaultContext {
  /** `host:port/database`. */
  readonly where: string;
  readonly scope: string;
}

export function faultOf(error: unknown, context: FaultContext): TenureError {
  if (TenureError.is(error)) return error;
  const sqlstate = sqlstateOf(error);
  const [code, message] = sqlstate === undefined ? ofConnection(error, context) : ofServer(sqlstate, error, context);
  return new TenureError(code, message, { cause: error });
}

/**
 * As a retryable error, with the same words: for seats that have been served before. A clash is what it was: waiting
 * does not repair it, and nothing that was right before turns into one.
 */
export function softened(error: TenureError): TenureError {
  if (error.retryable || error.code === "SCOPE_CLASH") return error;
  return new TenureError("BACKEND_UNAVAILABLE", `${error.message} (It worked before, so it is tried again.)`, {
    cause: error,
  });
}

type Fault = readonly [ErrorCode, string];

function ofServer(sqlstate: string, error: unknown, { where, scope }: FaultContext): Fault {
  const said = `Postgres at ${where} says: ${textOf(error)} (SQLSTATE ${sqlstate}).${hintOf(sqlstate, error)}`;
  switch (sqlstate) {
    case "28P01":
    case "28000":
      return [
        "PERMISSION_DENIED",
        `${said} Check the user and the password of the URL, and pg_hba.conf on the server.`,
      ];
    case "42501":
      return [
        "PERMISSION_DENIED",
        `${said} Grant the role what docs/reference/permissions.md lists, or use another role.`,
      ];
    case "3D000":
      return ["CONFIG_INVALID", `${said} Create the database, or correct the last part of the URL.`];
    case "3F000":
    case "42883":
    case "42P01":
      return [
        "SCHEMA_MISSING",
        `${said} Run "tenure schema apply", or use migrate: "auto" with a role that may create tables.`,
      ];
    case "25006":
      return ["BACKEND_READ_ONLY", `${said} It is a standby or read-only: point the URL at the primary.`];
    case "TN002":
      return ["SCOPE_CLASH", `${said} Rename scope "${scope}", or give it a lockKey of its own.`];
    case "TN003":
      return ["POOLER_IN_PATH", `${said} ${POOLER_ADVICE}`];
    case "08P01":
      if (/unsupported startup parameter/i.test(textOf(error))) return ["POOLER_IN_PATH", `${said} ${POOLER_ADVICE}`];
      break;
    case "53300":
      return ["BACKEND_UNAVAILABLE", `${said} It has no connection left: raise max_connections, or use wait: "poll".`];
    default:
  }
  return ["BACKEND_UNAVAILABLE", `${said} Nobody acts for scope "${scope}" here meanwhile; it is tried again.`];
}

export const POOLER_ADVICE =
  "Leadership needs sessions of its own: give the URL of the server itself, or of a pool in session mode.";

function ofConnection(error: unknown, { where, scope }: FaultContext): Fault {
  const text = textOf(error);
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (
    /does not support SSL|establishing an SSL/.test(text) ||
    /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO)/.test(code)
  ) {
    return [
      "CONFIG_INVALID",
      `TLS with Postgres at ${where} failed: ${text}. Check sslmode in the URL, and the certificates.`,
    ];
  }
  if (/password must be|no password/i.test(text)) {
    return ["PERMISSION_DENIED", `Postgres at ${where} wants a password, and the URL has none. Add it to the URL.`];
  }
  return [
    "BACKEND_UNAVAILABLE",
    `can't reach Postgres at ${where}: ${reasonOf(code, text)}. Check host and port, and that the server runs; nobody acts for scope "${scope}" here meanwhile.`,
  ];
}

function reasonOf(code: string, text: string): string {
  switch (code) {
    case "ECONNREFUSED":
      return "connection refused";
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "the host name is not known (DNS)";
    case "ECONNRESET":
      return "connection reset";
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return "no route to the host";
    default:
      return code === "" ? text : `${text} (${code})`;
  }
}

/** Our own functions say what to do. */
function hintOf(sqlstate: string, error: unknown): string {
  if (!sqlstate.startsWith("TN") || !(error instanceof Error) || !("hint" in error)) return "";
  return typeof error.hint === "string" ? ` Hint: ${error.hint}.` : "";
}

/** Several addresses of one host fail as one error without a text of its own. */
export function textOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return textOf(error.errors[0]);
  return messageOf(error);
}
