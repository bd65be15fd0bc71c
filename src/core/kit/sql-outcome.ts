// What an error to a statement that commits says about the transaction: the one rule for `term.tx`, the log and the driver.
//
//   unsent   the statement never left                                   nothing was written
//   refused  the server refused it, and its session answers afterwards  nothing was written
//   unknown  everything else                                            written as a whole, or not at all (trap 66)
//
// - An error before COMMIT was sent needs no rule: without COMMIT nothing is written. The rule is for COMMIT itself, and for a
//   single statement without BEGIN, whose commit is part of it.
// - A PostgreSQL that writes a commit record and then fails can't take the commit back: it PANICs, and so does one that can't
//   write its log. Such an error has whatever SQLSTATE the system's error has (53100 disk full, 42501, 58030, XX000), and the
//   word PANIC comes in the server's language. So a class alone never proves a refusal: `refused` counts only if the same
//   session answers another statement afterwards, which no session does after FATAL or PANIC.
// - Some classes are never a refusal, whoever answers afterwards: 08 and 40003 say so themselves (other servers that speak
//   PostgreSQL's protocol send 40003 for a commit whose result is ambiguous, and go on); 58 and XX are what a pooler says of a
//   server that it has lost.

import type { SqlError } from "../../ports/backends/sql.ts";

export type SqlOutcome = "unsent" | "refused" | "unknown";

/** FATAL in every language: shutdown, crash of another session, database dropped, and the timeouts that end a session. */
const ENDS_SESSION = /^(57P0|25P0[34])/;
const SETTLES_NOTHING = /^(08|40003|58|XX)/;

/** `refused` is a refusal only if the session of the statement answers once more. */
export function outcomeOfCommit(error: unknown): SqlOutcome {
  if (isUnsent(error)) return "unsent";
  const sqlstate = sqlstateOf(error);
  if (sqlstate === undefined || SETTLES_NOTHING.test(sqlstate)) return "unknown";
  return endsSession(error) ? "unknown" : "refused";
}

/** The server closes the connection after such an error, whatever was asked. A translated FATAL shows when it does. */
export function endsSession(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ("severity" in error && (error.severity === "FATAL" || error.severity === "PANIC")) return true;
  const sqlstate = sqlstateOf(error);
  return sqlstate !== undefined && ENDS_SESSION.test(sqlstate);
}

/** The SQLSTATE that the server gave; undefined for what broke on the way. */
export function sqlstateOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("sqlstate" in error && typeof error.sqlstate === "string") return error.sqlstate;
  return undefined;
}

/**
 * An error of `pg`, with its `sqlstate`. An error of the server has a severity; `code` alone could be the system's (EPIPE has
 * five letters too).
 */
export function withSqlstate(error: unknown): unknown {
  // What pg says of a client whose end it has seen: the statement was not sent.
  if (error instanceof Error && error.message.endsWith("is not queryable"))
    return Object.assign(error, { unsent: true });
  if (!(error instanceof Error) || !("severity" in error) || !("code" in error)) return error;
  return Object.assign(error, { sqlstate: String(error.code) }) satisfies SqlError;
}

/** The driver knew that the connection had ended, and sent nothing. */
function isUnsent(error: unknown): boolean {
  return error instanceof Error && "unsent" in error && error.unsent === true;
}
