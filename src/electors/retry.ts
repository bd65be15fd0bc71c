// Which errors of `work` a retry may repair (`lead(work, { onError: "retry" })`): a database or a network that went away, or was
// too busy. One table, here; docs/library.md has it in words. Whatever is not in it is a mistake that a retry would only repeat
// (a TypeError, a refused constraint, a missing permission), and ends `lead`.
//
// An error of ours decides by its code alone. Errors of other libraries are known by their code, their own or that of what they
// wrap: query builders and `fetch` hand on the driver's error as `cause`.

import { type ErrorCode, TenureError } from "../core/kit/errors.ts";
import { CAUSES_MAX } from "./limits.ts";

/**
 * Not `retryable` by the registry, because the same request must not simply be sent again. `work` is not the same request: it
 * runs in a new epoch, and begins by reading what is there.
 */
const RETRIED_IN_A_NEW_EPOCH: ReadonlySet<ErrorCode> = new Set(["OUTCOME_UNKNOWN", "STALE_EPOCH"]);

/**
 * SQLSTATEs: the connection (08), a rollback by the server (40: serialization, deadlock), no resources (53), ended or cancelled by an
 * operator or a timeout (57, 55P03, 25P03, 25P04), a standby (25006), the system under the server (58), our fence (TN001).
 */
const SQLSTATES = /^(?:08...|40...|53...|57014|57P0.|55P03|25P0[34]|25006|58...|TN001)$/;

const NETWORK: ReadonlySet<string> = new Set([
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTDOWN",
  "EHOSTUNREACH",
  "ENETDOWN",
  "ENETRESET",
  "ENETUNREACH",
  "EPIPE",
  "ETIMEDOUT",
  // Names that a failover changes.
  "EAI_AGAIN",
  "ENOTFOUND",
  // postgres.js
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "CONNECT_TIMEOUT",
  // undici, which is `fetch`
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_SOCKET",
]);

/** What `pg` says of a connection that ended, and of its own `query_timeout`, has no code. */
const PG_TEXTS =
  /^(?:Connection terminated|Query read timeout$|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed and is not queryable)/;

/** Never throws, whatever was thrown at it. */
export function isRetryable(thrown: unknown): boolean {
  try {
    return isTransient(thrown, CAUSES_MAX);
  } catch {
    // A proxy or a getter that refuses to be read.
    return false;
  }
}

function isTransient(thrown: unknown, causesLeft: number): boolean {
  if (typeof thrown !== "object" || thrown === null || causesLeft === 0) return false;
  if (TenureError.is(thrown)) return thrown.retryable || RETRIED_IN_A_NEW_EPOCH.has(thrown.code);
  const { code, message, cause } = thrown as {
    readonly code?: unknown;
    readonly message?: unknown;
    readonly cause?: unknown;
  };
  if (typeof code === "string" && (SQLSTATES.test(code) || NETWORK.has(code))) return true;
  if (typeof message === "string" && PG_TEXTS.test(message)) return true;
  return isTransient(cause, causesLeft - 1);
}
