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
// - What `work` throws comes out as it is, with one exception: the client's own error where its session has ended. That is
//   the database's failure, not an answer to a statement, and pg gives it no code.

import { TenureError } from "../../../core/kit/errors.ts";
import { outcomeOfCommit, sqlstateOf } from "../../../core/kit/sql-outcome.ts";
import type { Hold } from "../../../ports/backends/backend.ts";
import type { SqlLender, SqlLoan } from "../../../ports/backends/sql.ts";
import { faultOf } from "../../../postgres/faults.ts";
import { lentClient } from "./lent-client.ts";
import { type FenceProof, type FenceRun, fenceThrough } from "./proof.ts";
import { isIn, staleOr } from "./refusal.ts";
import { statements } from "../../../postgres/schema/schema.ts";
import { FENCE_BEGINS_MAX } from "../limits.ts";

export interface PostgresTerm<Client> {
  /**
   * Runs `work` in a transaction of a client of its own, and commits it if the epoch is still in force. Do not end the
   * transaction in `work`. Throws StaleEpochError where the epoch is over: nothing was written.
   */
  tx<R>(work: (client: Client) => Promise<R> | R, options?: TxOptions): Promise<R>;
  /**
   * The check alone: `run` sends the text inside a transaction that is open already, before or after its writes and not
   * inside a savepoint that may be rolled back, and returns the client's answer. It is called twice, one after the other.
   * Throws TX_MISUSED unless the answers prove that the fence is held by a transaction that is still open.
   */
  fence(run: FenceRun): Promise<void>;
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
  /** Letters and digits; never the same twice. */
  readonly nonce: () => string;
}

const ISOLATIONS = ["read committed", "repeatable read", "serializable"] as const;

/** Answers ROLLBACK, and succeeds, where the transaction had failed: what it says is looked at. */
const COMMIT = "commit";
/**
 * A cursor lives as long as its transaction. It is declared before the first text of `work` that could end ours, and
 * closing it fails if this is another transaction by then, or none.
 */
const MARK = "declare tenure_open cursor for values (1)";
const COMMIT_MARKED = "close tenure_open; commit";
const NO_SUCH_CURSOR = "34000";
/**
 * Without one of these words a statement can't end a transaction: procedures and DO blocks can't inside of one. A
 * savepoint ends nothing, but the mark must be older than it, or ROLLBACK TO would take it away.
 */
const MAY_END = /\b(?:begin|start|commit|end|rollback|abort|prepare|savepoint)\b/i;

const GIVES_BACK: ReadonlySet<string | symbol> = new Set(["release", Symbol.dispose, Symbol.asyncDispose]);

export function fenceOf<Client>(tools: FenceTools<Client>): (hold: Hold) => PostgresTerm<Client> {
  const sql = statements(tools.schema);
  return (hold) => {
    const lockKey = tools.lockKeyOf(hold.scope);
    const proof: FenceProof = {
      call: sql.fence(lockKey, hold.epoch),
      mark: sql.markOf(lockKey, hold.epoch),
      show: () => sql.mark(tools.nonce()),
    };
    return {
      tx: async (work, options) => transact(hold, tools, work, sql.begin(lockKey, hold.epoch, isolationOf(options))),
      fence: (run) => fenceThrough(hold, proof, run),
    };
  };
}

async function transact<Client, R>(
  hold: Hold,
  tools: FenceTools<Client>,
  work: (client: Client) => Promise<R> | R,
  begin: string,
): Promise<R> {
  hold.check();
  const loan = await borrow(hold, tools);
  const lent = lend(loan);
  let result: R;
  try {
    // A client may have been waited for.
    hold.check();
    await beginFenced(loan, begin);
  } catch (error) {
    await rollBack(loan, lent);
    throw faultOf(staleOr(hold, error), { where: tools.where, scope: hold.scope });
  }
  try {
    result = await lent.to(work);
  } catch (error) {
    const isAnswered = await rollBack(loan, lent);
    throw !isAnswered && lent.hasRejectedWith(error) ? endedBefore(hold, tools.where, error) : staleOr(hold, error);
  }
  let end: "committed" | "rolled back";
  try {
    end = await loan.finish(lent.isMarked ? COMMIT_MARKED : COMMIT);
  } catch (error) {
    throw await failedCommit(hold, tools.where, loan, lent, error);
  }
  lent.giveBack(false);
  if (end === "rolled back") throw failedInside(hold);
  return result;
}

/** A refusal counts if the session of the COMMIT answers the rollback (core/kit/sql-outcome.ts). */
async function failedCommit<Client>(
  hold: Hold,
  where: string,
  loan: SqlLoan<Client>,
  lent: { giveBack(broken: boolean): void },
  error: unknown,
): Promise<unknown> {
  const outcome = sqlstateOf(error) === NO_SUCH_CURSOR ? "ended inside" : outcomeOfCommit(error);
  if (outcome === "refused" && (await rollBack(loan, lent))) return staleOr(hold, error);
  lent.giveBack(true);
  if (outcome === "ended inside") return endedInside(hold, error);
  return outcome === "unsent" ? endedBefore(hold, where, error) : outcomeUnknown(hold, where, error);
}

/** Lends the client for as long as `work` runs: what is sent on it afterwards would not be fenced, or be another's. */
function lend<Client>(loan: SqlLoan<Client>) {
  let isOver = false;
  let isMarked = false;
  let isOpened = false;
  const before = (name: string | symbol, query: unknown): void => {
    if (isOver) throw misuse("its client was used after its work had settled; that statement was not sent");
    if (GIVES_BACK.has(name)) throw misuse("its client was released by its work; tx does that");
    if (isMarked || (name === "query" && !mayEnd(query))) return;
    isMarked = true;
    // Sent ahead on the same connection. If it fails, the transaction has, and COMMIT will say so.
    loan.query(MARK).catch(() => undefined);
  };
  const opened = (): void => {
    isOpened = true;
  };
  const rejections = new WeakSet<object>();
  const failed = (error: Error): void => void rejections.add(error);
  const guarded = lentClient(loan.client, { before, opened, failed });
  return {
    get isMarked() {
      return isMarked;
    },
    /** The client's own error, or one that wraps it; not what `work` throws for reasons of its own. */
    hasRejectedWith: (error: unknown): boolean => isIn(error, (one) => rejections.has(one)),
    /** `work` has reached the connection itself: the driver may be out of step with the server. */
    giveBack: (broken: boolean): void => loan.giveBack(broken || isOpened),
    to: async <R>(work: (client: Client) => Promise<R> | R): Promise<R> => {
      try {
        return await work(guarded);
      } finally {
        isOver = true;
      }
    },
  };
}

/**
 * A query is a text, or an object that holds one. What is neither may do anything, and so may one that sends by itself (a
 * cursor, a COPY stream) or whose text is computed each time it is read.
 */
function mayEnd(query: unknown): boolean {
  if (typeof query !== "object" || query === null) return typeof query !== "string" || MAY_END.test(query);
  const text: unknown = "submit" in query ? undefined : Object.getOwnPropertyDescriptor(query, "text")?.value;
  return typeof text !== "string" || MAY_END.test(text);
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
      if (sqlstateOf(error) !== "40001" || attempt === FENCE_BEGINS_MAX) throw error;
      await loan.query("rollback");
    }
  }
}

/** False where the session does not answer any more. */
async function rollBack(loan: SqlLoan<unknown>, lent: { giveBack(broken: boolean): void }): Promise<boolean> {
  try {
    await loan.query("rollback");
    lent.giveBack(false);
    return true;
  } catch {
    lent.giveBack(true);
    return false;
  }
}

function misuse(what: string): TenureError {
  return new TenureError("TX_MISUSED", `term.tx: ${what}. Await everything that uses the client before work returns.`);
}

function failedInside(hold: Hold): TenureError {
  return new TenureError(
    "TX_MISUSED",
    `term.tx: a statement of the transaction of scope "${hold.scope}", epoch ${hold.epoch}, had failed, and its work went on as if nothing had happened. It was rolled back as a whole. Let the error out of work, or use a savepoint for what may fail.`,
  );
}

function endedInside(hold: Hold, cause: unknown): TenureError {
  return new TenureError(
    "TX_MISUSED",
    `term.tx: the transaction of scope "${hold.scope}", epoch ${hold.epoch}, was ended inside of its work (COMMIT, ROLLBACK, or BEGIN … COMMIT of a helper). What came after that was not fenced and may be written. Take these statements out; use savepoints for parts that may fail.`,
    { cause },
  );
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

export function isolationOf(options: TxOptions | undefined): Isolation {
  const isolation = options?.isolation ?? "read committed";
  if (ISOLATIONS.includes(isolation)) return isolation;
  throw new TenureError(
    "CONFIG_INVALID",
    `isolation is ${JSON.stringify(isolation)}; it must be ${ISOLATIONS.map((one) => `"${one}"`).join(", ")}, or left out.`,
  );
}
