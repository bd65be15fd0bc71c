// What a term can do with the database: write so that its epoch is checked in the same transaction as the write.
//
//   tx:     borrowed ──BEGIN + fence──▶ fenced ──work──▶ worked ──COMMIT──▶ committed | rolled back | unknown
//   fence:  the check alone, inside a transaction that the user's own library has begun
//
// Invariants:
// - Nothing of `work` is sent before the fence has let the transaction in, in one round trip with BEGIN.
// - `tx` resolves only after the server has said that it committed. A transaction that failed inside, although `work`
//   caught the error, is not committed: COMMIT would answer ROLLBACK, and nobody would notice.
// - Where a COMMIT was sent and no answer of the server settles it, the outcome is unknown, and the error says so
//   (trap 66): never a refusal, never a success.
// - A client is lent again only when its transaction has certainly ended; else it is destroyed.
// - TN001 for this scope and epoch, wherever it surfaces, ends the term.

import { StaleEpochError, TenureError } from "../../core/kit/errors.ts";
import type { Hold } from "../../ports/backend.ts";
import type { SqlLender, SqlLoan } from "../../ports/sql.ts";
import { faultOf, sqlstateOf } from "./faults.ts";
import { statements } from "./schema.ts";

export interface PostgresTerm<Client> {
  /**
   * Runs `work` in a transaction of a client of its own, and commits it if the epoch is still in force. Do not end the
   * transaction in `work`. Throws StaleEpochError where the epoch is over: nothing was written.
   */
  tx<R>(work: (client: Client) => Promise<R> | R, options?: TxOptions): Promise<R>;
  /**
   * The check alone: `run` sends the text with the values inside a transaction that is open already, before or after
   * its writes, and not inside a savepoint that may be rolled back.
   */
  fence(run: (text: string, values: unknown[]) => PromiseLike<unknown>): Promise<void>;
}

export interface TxOptions {
  /** Default: "read committed". */
  readonly isolation?: Isolation | undefined;
}

export type Isolation = (typeof ISOLATIONS)[number];

export interface FenceTools<Client> {
  readonly lender: SqlLender<Client>;
  /** `host:port/database`, for messages. */
  readonly where: string;
  readonly schema: string;
  readonly lockKeyOf: (scope: string) => bigint;
}

const ISOLATIONS = ["read committed", "repeatable read", "serializable"] as const;
/** Above READ COMMITTED a bump may come between snapshot and check; nothing of `work` has run by then. */
const BEGINS_MAX = 3;
const CAUSES_MAX = 8;

/** Deferred constraints are checked by COMMIT anyway; here it is the statement that a failed transaction refuses. */
const COMMIT = "set constraints all immediate; commit";

export function fenceOf<Client>(tools: FenceTools<Client>): (hold: Hold) => PostgresTerm<Client> {
  const sql = statements(tools.schema);
  return (hold) => ({
    tx: async (work, options) => {
      const isolation = isolationOf(options);
      return transact(hold, tools, work, sql.begin(tools.lockKeyOf(hold.scope), hold.epoch, isolation));
    },
    fence: async (run) => {
      hold.check();
      try {
        await run(sql.requireEpoch, [hold.scope, hold.epoch]);
      } catch (error) {
        throw staleOr(hold, error);
      }
    },
  });
}

async function transact<Client, R>(
  hold: Hold,
  tools: FenceTools<Client>,
  work: (client: Client) => Promise<R> | R,
  begin: string,
): Promise<R> {
  hold.check();
  const loan = await borrow(hold, tools);
  let result: R;
  try {
    // A client may have been waited for.
    hold.check();
    await beginFenced(loan, begin);
    result = await work(loan.client);
  } catch (error) {
    await rollBack(loan);
    throw staleOr(hold, error);
  }
  try {
    await loan.query(COMMIT);
  } catch (error) {
    if (!isSettled(error)) {
      loan.giveBack(true);
      throw isUnsent(error) ? endedBefore(hold, tools.where, error) : outcomeUnknown(hold, tools.where, error);
    }
    await rollBack(loan);
    throw staleOr(hold, error);
  }
  loan.giveBack(false);
  return result;
}

async function borrow<Client>(hold: Hold, { lender, where }: FenceTools<Client>): Promise<SqlLoan<Client>> {
  try {
    return await lender.borrow();
  } catch (error) {
    throw faultOf(error, { where, scope: hold.scope });
  }
}

async function beginFenced(loan: SqlLoan<unknown>, begin: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await loan.query(begin);
      return;
    } catch (error) {
      if (sqlstateOf(error) !== "40001" || attempt === BEGINS_MAX) throw error;
      await loan.query("rollback");
    }
  }
}

async function rollBack(loan: SqlLoan<unknown>): Promise<void> {
  try {
    await loan.query("rollback");
    loan.giveBack(false);
  } catch {
    loan.giveBack(true);
  }
}

/** An error of the server that leaves the session alive means: rolled back. */
function isSettled(error: unknown): boolean {
  const sqlstate = sqlstateOf(error);
  if (sqlstate === undefined || /^(08|57P|XX)/.test(sqlstate)) return false;
  return !(error instanceof Error && "severity" in error && error.severity !== "ERROR");
}

/** The driver knew that the connection had ended, and sent nothing. */
function isUnsent(error: unknown): boolean {
  return error instanceof Error && "unsent" in error && error.unsent === true;
}

function endedBefore(hold: Hold, where: string, cause: unknown): TenureError {
  return new TenureError(
    "BACKEND_UNAVAILABLE",
    `the connection to Postgres at ${where} ended before a transaction of scope "${hold.scope}", epoch ${hold.epoch}, was committed: nothing was written. If the epoch is over, the term's signal says so.`,
    { cause },
  );
}

function outcomeUnknown(hold: Hold, where: string, cause: unknown): TenureError {
  return new TenureError(
    "OUTCOME_UNKNOWN",
    `the connection to Postgres at ${where} broke while a transaction of scope "${hold.scope}", epoch ${hold.epoch}, was committing: it was written as a whole or not at all, and which of the two is not known. Read what you wrote, or repeat it with an idempotency key.`,
    { cause },
  );
}

function staleOr(hold: Hold, error: unknown): unknown {
  if (StaleEpochError.is(error) || !refuses(error, hold)) return error;
  hold.lost("superseded");
  return new StaleEpochError(hold.scope, hold.epoch, { cause: error });
}

/** Whether a fence refused this hold: another scope's fence may stand in the same transaction. */
function refuses(error: unknown, { scope, epoch }: Hold): boolean {
  const refusal = refusalIn(error, CAUSES_MAX);
  if (refusal === undefined) return false;
  const detail = refusal["detail"];
  return typeof detail !== "string" || detail === `scope "${scope}", epoch ${epoch}`;
}

/** Query builders wrap the server's error, each in a place of its own; the driver's `code` or `sqlstate` is kept. */
function refusalIn(error: unknown, causesLeft: number): Readonly<Record<string, unknown>> | undefined {
  if (typeof error !== "object" || error === null || causesLeft === 0) return undefined;
  const one = error as Readonly<Record<string, unknown>>;
  if (one["code"] === "TN001" || one["sqlstate"] === "TN001") return one;
  const inner = [one["cause"], one["driverError"], one["original"], one["meta"], ...errorsOf(one["errors"])];
  for (const next of inner) {
    const found = refusalIn(next, causesLeft - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

function errorsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function isolationOf(options: TxOptions | undefined): Isolation {
  const isolation = options?.isolation ?? "read committed";
  if (ISOLATIONS.includes(isolation)) return isolation;
  throw new TenureError(
    "CONFIG_INVALID",
    `isolation is ${JSON.stringify(isolation)}; it must be ${ISOLATIONS.map((one) => `"${one}"`).join(", ")}, or left out.`,
  );
}
