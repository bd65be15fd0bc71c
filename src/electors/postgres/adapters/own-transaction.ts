// A fenced transaction of the user's own library: what `tenure/kysely`, `tenure/drizzle` and `tenure/postgres-js` share.
//
//   begun by the library ──mark──▶ marked ──fence──▶ fenced ──work──▶ settled ──mark closed──▶ proved ──COMMIT──▶ committed
//                                                                                                     └▶ refused | unknown
//
// Invariants:
// - Nothing of `work` is sent before the mark and the fence have been answered in this transaction.
// - Once `work` has settled, nothing but the mark's end and the transaction's end is sent on its session.
// - COMMIT is sent only after the mark could be closed: this is still the transaction that was fenced, and it has not failed.
//   So a COMMIT that the server confirms has committed all of `work`, whatever the library does with the answer.
// - Where a COMMIT may have been sent and no answer settles it, the error is OUTCOME_UNKNOWN (trap 66).
// - What `work` throws by itself comes out unchanged; the library does not see it. An error of the session's end becomes BACKEND_UNAVAILABLE.

import { TenureError } from "../../../core/kit/errors.ts";
import { type SqlOutcome, sqlstateOf, withSqlstate } from "../../../core/kit/sql-outcome.ts";
import { faultOf } from "../../../postgres/faults.ts";
import { FENCE_BEGINS_MAX } from "../limits.ts";
import type { PostgresTerm } from "../fence/fence.ts";

/** A term on Postgres, as far as the adapters use one. */
export interface FencedTerm extends Pick<PostgresTerm<never>, "fence"> {
  readonly scope: string;
  readonly epoch: number;
  check(): number;
}

/** One transaction of a library, on one session. */
export interface OwnTransaction<Trx> {
  /** Of the library, for messages. */
  readonly name: string;
  /** Begins, calls `inside`, and then commits, or rolls back if it rejects. */
  transact(inside: (trx: Trx) => Promise<void>): Promise<void>;
  /** Sends a statement inside the transaction; the first one has no values. */
  run(text: string, values: readonly unknown[]): PromiseLike<unknown>;
  /** From now on only `run` and the end of the transaction are sent; anything else is refused by TX_MISUSED. */
  settle(): void;
  /** Whether a statement of this transaction was rejected with this error because the session has ended. */
  isSessionEnd(error: unknown): boolean;
  /** What the rejection of `transact` means, where `inside` had resolved; with the error that was the reason. */
  outcome(error: unknown): { readonly outcome: SqlOutcome; readonly error: unknown };
}

/** A cursor lives as long as its transaction: closing it fails in another transaction, and in one that has failed. */
const MARK = "declare tenure_open cursor for values (1)";
const UNMARK = "close tenure_open";
const NO_SUCH_CURSOR = "34000";
const FAILED_INSIDE = "25P02";

export async function transactFenced<Trx, R>(
  term: FencedTerm,
  begin: () => OwnTransaction<Trx>,
  work: (trx: Trx) => Promise<R> | R,
): Promise<R> {
  for (let attempt = 1; ; attempt++) {
    term.check();
    const course = new Course(term, begin(), work);
    try {
      return await course.run();
    } catch (error) {
      if (course.hasStarted || sqlstateOf(error) !== "40001" || attempt === FENCE_BEGINS_MAX) throw error;
    }
  }
}

class Course<Trx, R> {
  /** Whether anything of `work` has run. */
  hasStarted = false;
  readonly #term: FencedTerm;
  readonly #own: OwnTransaction<Trx>;
  readonly #work: (trx: Trx) => Promise<R> | R;
  #proved: { readonly value: R } | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(term: FencedTerm, own: OwnTransaction<Trx>, work: (trx: Trx) => Promise<R> | R) {
    this.#term = term;
    this.#own = own;
    this.#work = work;
  }

  async run(): Promise<R> {
    let rejection: { readonly error: unknown } | undefined;
    try {
      await this.#own.transact((trx) => this.#inside(trx));
    } catch (error) {
      rejection = { error };
    }
    // The library may reject with the error of its ROLLBACK; what failed first is the reason.
    if (this.#failure !== undefined) throw this.#failedInside(this.#failure.error);
    if (this.#proved === undefined) throw this.#neverBegun(rejection?.error);
    if (rejection !== undefined) throw this.#failedCommit(rejection.error);
    return this.#proved.value;
  }

  async #inside(trx: Trx): Promise<void> {
    try {
      await this.#own.run(MARK, []);
      await this.#term.fence((text, values) => this.#own.run(text, values));
      this.hasStarted = true;
      const value = await this.#work(trx);
      this.#own.settle();
      await this.#unmark();
      this.#proved = { value };
    } catch (error) {
      this.#own.settle();
      this.#failure = { error };
      // Not `error` itself: libraries read it before they roll back, and some of them would not (Kysely's AbortedTransactionError of
      // another transaction; a proxy that throws).
      throw new Error("the work of a fenced transaction failed", { cause: error });
    }
  }

  async #unmark(): Promise<void> {
    try {
      await this.#own.run(UNMARK, []);
    } catch (error) {
      const sqlstate = sqlstateOf(error);
      if (sqlstate === NO_SUCH_CURSOR) throw this.#misused(ENDED_INSIDE, error);
      throw sqlstate === FAILED_INSIDE ? this.#misused(HAD_FAILED, error) : error;
    }
  }

  #failedInside(error: unknown): unknown {
    if (TenureError.is(error) || !this.#own.isSessionEnd(error)) return error;
    return new TenureError(
      "BACKEND_UNAVAILABLE",
      `the session of a ${this.#name} ended before it was committed: nothing was written. If the epoch is over, the term's signal says so.`,
      { cause: error },
    );
  }

  /** A refusal is the server's own error: a deferred constraint, a serialization failure. */
  #failedCommit(rejection: unknown): unknown {
    const { outcome, error } = this.#own.outcome(rejection);
    if (outcome === "refused" || TenureError.is(error)) return error;
    const message =
      outcome === "unsent"
        ? `the session of a ${this.#name} ended before COMMIT was sent: nothing was written. If the epoch is over, the term's signal says so.`
        : `the session of a ${this.#name} broke while it was committing: it was written as a whole or not at all, and which of the two is not known. Read what you wrote, or repeat it with an idempotency key.`;
    return new TenureError(outcome === "unsent" ? "BACKEND_UNAVAILABLE" : "OUTCOME_UNKNOWN", message, { cause: error });
  }

  #neverBegun(error: unknown): TenureError {
    return faultOf(withSqlstate(error), { where: `the pool of your ${this.#own.name}`, scope: this.#term.scope });
  }

  #misused(what: string, cause: unknown): TenureError {
    return new TenureError("TX_MISUSED", `fencedTransaction: a ${this.#name} ${what}`, { cause });
  }

  get #name(): string {
    return `transaction of scope "${this.#term.scope}", epoch ${this.#term.epoch}, through ${this.#own.name}`;
  }
}

const HAD_FAILED =
  "had a statement that failed, and its work went on as if nothing had happened. It was rolled back as a whole. Let the error out of work, or use a savepoint for what may fail.";
const ENDED_INSIDE =
  "was ended inside of its work (COMMIT, ROLLBACK, or BEGIN … COMMIT of a helper). What came after that was not fenced and may be written. Take these statements out; use savepoints for parts that may fail.";

export function usedAfterwards(): TenureError {
  return new TenureError(
    "TX_MISUSED",
    "fencedTransaction: its transaction was used after its work had settled; that statement was not sent. Await everything that uses the transaction before work returns.",
  );
}

export function nested(name: string): TenureError {
  return new TenureError(
    "TX_MISUSED",
    `fencedTransaction: what it was given is no ${name} that can begin a transaction: a transaction itself, perhaps. Give it the instance that you made from the pool; inside of a transaction use savepoints.`,
  );
}

export function notOurs(name: string, found: string): TenureError {
  return new TenureError(
    "CONFIG_INVALID",
    `fencedTransaction: ${found}, so the session's end could end this process. It works with ${name}; otherwise use term.tx, or term.fence with an error listener on the client.`,
  );
}
