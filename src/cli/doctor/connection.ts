// Where a connection to Postgres failed, from the error: name, network, TLS, login, database. Pure.

import { sqlstateOf } from "../../core/kit/sql-outcome.ts";
import { textOf } from "../../postgres/faults.ts";
import type { FailedStage } from "./postgres.ts";
import { type Check, problem } from "./report.ts";

const TLS = /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO|HOSTNAME_MISMATCH|EPROTO)/;
const TCP = new Set(["ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT", "EPIPE", "ENOENT"]);

export function stageOf(error: unknown): FailedStage {
  const sqlstate = sqlstateOf(error);
  const text = textOf(error);
  if (sqlstate !== undefined) return ofServer(sqlstate, text);
  const code = codeOf(error);
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "dns";
  if (TLS.test(code) || /does not support SSL|establishing an SSL|certificate/i.test(text)) return "tls";
  if (TCP.has(code)) return "tcp";
  if (/password must be|no password|SASL|SCRAM/i.test(text)) return "login";
  if (code === "BACKEND_UNAVAILABLE" || /terminated unexpectedly|closed the connection/.test(text)) return "silent";
  return code === "CONFIG_INVALID" || code.startsWith("ERR_INVALID") ? "client" : "other";
}

function ofServer(sqlstate: string, text: string): FailedStage {
  if (sqlstate.startsWith("28")) return "login";
  switch (sqlstate) {
    case "3D000":
      return "database";
    case "53300":
      return "full";
    case "57P03":
      return "starting";
    case "08P01":
      if (/no such user|authentication/i.test(text)) return "login";
      if (/no such database/i.test(text)) return "database";
      return /startup parameter|pool/i.test(text) ? "pooler" : "other";
    default:
      return "other";
  }
}

function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

const REMEDIES: Readonly<Record<FailedStage, { readonly what: string; readonly advice: string }>> = {
  dns: { what: "the host name is not known", advice: "Check the host in the URL, and DNS on this machine." },
  tcp: {
    what: "nothing answers at this address",
    advice: "Check host and port in the URL, that the server runs and listens there, and the firewalls between.",
  },
  silent: {
    what: "connected, but the server never answered the greeting",
    advice:
      "Something accepts connections there and is no healthy Postgres: look at the server, or what stands in front of it.",
  },
  tls: {
    what: "TLS could not be agreed on",
    advice:
      "Check sslmode in the URL, and the certificates: with this client, sslmode=require verifies them too (sslrootcert=FILE gives the authority).",
  },
  login: {
    what: "the server refused the login",
    advice: "Check user and password in the URL, pg_hba.conf on the server, and that the role may log in.",
  },
  database: {
    what: "there is no such database",
    advice: "Correct the last part of the URL, or create the database.",
  },
  full: {
    what: "no connection is left",
    advice: "Raise max_connections, or the limit of the role or the database, or close what is not needed.",
  },
  starting: { what: "the server is starting or stopping", advice: "Wait for it; if that lasts, read its log." },
  pooler: {
    what: "a pooler answers, and refused",
    advice: "Give the URL of the server itself, or of a pool in session mode.",
  },
  client: { what: "this machine can't speak to Postgres", advice: "The message says what is missing here." },
  other: { what: "the connection failed", advice: "The message is all that is known." },
};

export function failedConnection(stage: FailedStage, message: string): Check {
  const { what, advice } = REMEDIES[stage];
  return problem("connection", `failed at ${stage}: ${message}`, {
    means: `${what}; nobody can lead from here, and nothing else could be checked`,
    advice,
  });
}
