// postgres.js. Its connection objects outlive their sessions: they connect again. So a transaction whose session has ended must
// send nothing more, neither a statement of `work` (it would be sent without a transaction, or into another's), nor the ROLLBACK or
// COMMIT of `begin` itself (another's), nor anything while there is no socket (postgres.js ends the process with a TypeError).
//
// - Each query of `work` passes through `sent`, also one that was made earlier and is awaited late, and those of savepoints.
// - Where the session has ended, what `begin` was given never settles: `begin` has rejected by then, and sends nothing more.
// - `begin` rejects at once when the session ends. This waits until `work` has settled: it may still act.

import { endsSession, outcomeOfCommit, type SqlOutcome, withSqlstate } from "../../../core/kit/sql-outcome.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import { isolationOf, type TxOptions } from "../fence/fence.ts";
import {
  type FencedTerm,
  nested,
  notOurs,
  type OwnTransaction,
  transactFenced,
  usedAfterwards,
} from "./own-transaction.ts";

const NAME = "postgres.js";

/** What `postgres()` returns; `Tx` is its `TransactionSql`. */
export interface PostgresJs<Tx> {
  begin(options: string, work: (tx: Tx) => Promise<unknown>): Promise<unknown>;
}

/**
 * Runs `work` in a transaction of `sql` that commits only if the term's epoch is still in force. Await everything that uses
 * `tx`, and do not end the transaction in `work`.
 */
export async function fencedTransaction<Tx, R>(
  term: FencedTerm,
  sql: PostgresJs<Tx>,
  work: (tx: Tx) => Promise<R> | R,
  options?: TxOptions,
): Promise<R> {
  const isolation = isolationOf(options);
  if (typeof sql.begin !== "function") throw nested(NAME);
  const own = (): OwnTransaction<Tx> => begunSql(NAME, sql as unknown as PostgresJs<Sql>, isolation) as never;
  return transactFenced(term, own, work);
}

/** The function that a transaction is used by; `unsafe`, `savepoint` and others are its properties. */
export interface Sql {
  (...args: unknown[]): unknown;
  unsafe(text: string, values: readonly unknown[], options?: object): PromiseLike<unknown>;
}

/** A query is sent by its handler, once it is awaited. */
interface Query {
  handler: ((query: Query) => unknown) & { debug?: unknown };
  reject: (this: void, error: unknown) => void;
}

/** The connection of postgres.js that `onexecute` shows. */
interface Connection {
  onclose?: ((error: unknown) => void) | null;
}

export function begunSql(name: string, sql: PostgresJs<Sql>, isolation: string): OwnTransaction<Sql> {
  const session = new SqlSession();
  let plain: Sql | undefined;
  let isCommitSent = false;
  return {
    name,
    transact: async (inside) => {
      let working: Promise<void> | undefined;
      const begun = sql.begin(`isolation level ${isolation}`, (tx) => {
        plain = tx;
        working = inside(guarded(tx, session));
        return session.untilEnd(working).then(() => {
          isCommitSent = true;
        });
      });
      try {
        await begun;
      } finally {
        await working?.catch(() => undefined);
      }
    },
    run: async (text, values) => {
      try {
        if (session.hasEnded) throw session.ended();
        return await plain!.unsafe(text, values, { onexecute: session.shown });
      } catch (error) {
        session.rejected(error);
        throw withSqlstate(error);
      }
    },
    settle: () => session.settle(),
    isSessionEnd: (error) =>
      session.hasRejectedWith(error) && (isConnectionError(error) || endsSession(withSqlstate(error))),
    outcome: (error) => {
      // `begin` remembers each query that failed, also one that `work` caught, and rolls back in place of COMMIT.
      if (session.hasRejectedWith(error) && !isConnectionError(error)) return { outcome: "refused", error };
      return { outcome: isCommitSent ? outcomeOf(error) : "unsent", error };
    },
  };
}

class SqlSession {
  hasEnded = false;
  /** Resolves at the session's end. */
  readonly end = Promise.withResolvers<void>();
  #isSettled = false;
  #watched: Connection | undefined;
  /** What queries were rejected with; `work` throws errors of others too. */
  readonly #rejections = new WeakSet<object>();

  settle(): void {
    this.#isSettled = true;
  }

  /** The socket is gone before `onclose` is called, where it broke. */
  rejected(error: unknown): void {
    if (isConnectionError(error)) this.hasEnded = true;
    if (typeof error === "object" && error !== null) this.#rejections.add(error);
  }

  /** What is thrown in place of sending something. */
  ended(): Error {
    const error = Object.assign(new Error("the session of this transaction has ended"), { code: "CONNECTION_CLOSED" });
    this.#rejections.add(error);
    return error;
  }

  hasRejectedWith(error: unknown): boolean {
    return typeof error === "object" && error !== null && this.#rejections.has(error);
  }

  /** Why nothing may be sent now. */
  get refusal(): Error | undefined {
    if (this.hasEnded) return this.ended();
    if (this.#watched === undefined) {
      return notOurs("postgres.js 3.4", "the connection of this postgres.js can't be reached");
    }
    return this.#isSettled ? usedAfterwards() : undefined;
  }

  /** Called in the moment that a statement without values is sent: the mark, after `begin` has set its own `onclose`. */
  readonly shown = (connection: Connection): true => {
    if (this.#watched === connection) return true;
    this.#watched = connection;
    const { onclose } = connection;
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a property of postgres.js, no event of the DOM
    connection.onclose = (error) => {
      this.hasEnded = true;
      this.end.resolve();
      onclose?.(error);
    };
    return true;
  };

  /** Settles as `body` does, or never: what comes after it would be sent by a connection that is not ours any more. */
  async untilEnd<T>(body: Promise<T>): Promise<T> {
    const settled = await body.then(
      (value) => () => value,
      (error: unknown) => () => {
        throw error;
      },
    );
    if (this.hasEnded) await new Promise<never>(() => undefined);
    return settled();
  }
}

/** The transaction as `work` sees it: whatever it makes asks first whether it may be sent. */
function guarded(tx: Sql, session: SqlSession): Sql {
  const made = (value: unknown): unknown => {
    if (isQuery(value)) value.handler = asking(value.handler, session);
    return value;
  };
  return new Proxy(tx, {
    apply: (target, self, args: unknown[]) => made(Reflect.apply(target, self, args)),
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      const refused = REFUSED.get(name);
      if (refused !== undefined) return () => refuse(refused);
      if (name === "savepoint") return (...args: unknown[]) => savepoint(target, value as AnyFunction, args, session);
      return (...args: unknown[]): unknown => made(Reflect.apply(value, target, args));
    },
  });
}

type AnyFunction = (...args: unknown[]) => unknown;

/** Its body is handed a transaction of its own. Where the session ends, this rejects when the body has settled. */
async function savepoint(tx: Sql, plain: AnyFunction, args: unknown[], session: SqlSession): Promise<unknown> {
  if (session.refusal !== undefined) throw session.refusal;
  let body: Promise<unknown> | undefined;
  const given = args.map((arg) => {
    if (typeof arg !== "function") return arg;
    return (inner: Sql) => {
      body = (async () => Reflect.apply(arg, undefined, [guarded(inner, session)]) as unknown)();
      return session.untilEnd(body);
    };
  });
  const ended = session.end.promise.then(async () => {
    await body?.catch(() => undefined);
    throw session.ended();
  });
  return Promise.race([Reflect.apply(plain, tx, given), ended]);
}

function asking(handler: Query["handler"], session: SqlSession): Query["handler"] {
  const ask = (query: Query): unknown => {
    const { refusal } = session;
    const { reject } = query;
    query.reject = (error) => {
      session.rejected(error);
      reject(error);
    };
    return refusal === undefined ? handler(query) : query.reject(refusal);
  };
  return Object.assign(ask, { debug: handler.debug });
}

/** What would act outside of the fence, and can't be watched. */
const REFUSED: ReadonlyMap<string | symbol, string> = new Map([
  ["prepare", "PREPARE TRANSACTION in its work: it would be committed later, when nothing checks the epoch."],
  [
    "file",
    "tx.file in its work: postgres.js sends the text when it has read the file, even if the transaction is over by then. Read the file, and send it by tx.unsafe.",
  ],
  [
    "notify",
    "tx.notify in its work: postgres.js sends it on another session, at once. Send it by tx`select pg_notify(…)`.",
  ],
]);

function refuse(what: string): never {
  throw new TenureError("TX_MISUSED", `fencedTransaction: ${what}`);
}

function isQuery(value: unknown): value is Query {
  return value instanceof Promise && "handler" in value && typeof value.handler === "function";
}

function outcomeOf(error: unknown): SqlOutcome {
  const outcome = outcomeOfCommit(withSqlstate(error));
  // Its `severity` is the one that is not translated: after ERROR the session goes on, after FATAL and PANIC not.
  const isError = error instanceof Error && "severity" in error && error.severity === "ERROR";
  return outcome === "refused" && !isError ? "unknown" : outcome;
}

const CONNECTION_CODES = /^(CONNECTION_(CLOSED|ENDED|DESTROYED)|CONNECT_TIMEOUT|EPIPE|ECONN[A-Z]+|ETIMEDOUT)$/;

function isConnectionError(error: unknown): boolean {
  return error instanceof Error && "code" in error && CONNECTION_CODES.test(String(error.code));
}
