// Kysely over `pg`. Kysely hides the client of a transaction; what it shows is a connection that sends whatever it is given to
// `client.query`. `pg` hands a query object that sends by itself (as pg-cursor does) its own connection, and that is the emitter
// from which the client hears of errors: there the session's end is noticed, and an error that nobody handles is held back.

import type { SqlLife } from "../../../core/kit/sql-life.ts";
import { isolationOf, type TxOptions } from "../fence/fence.ts";
import { type FencedTerm, nested, notOurs, type OwnTransaction, transactFenced } from "./own-transaction.ts";
import { PgSession } from "./pg-session.ts";

const NAME = "Kysely";

/** A `Kysely<DB>`; `Trx` is its `Transaction<DB>`. */
export interface KyselyDatabase<Trx> {
  readonly isTransaction: boolean;
  transaction(): { execute(work: (trx: Trx) => Promise<unknown>): Promise<unknown> };
}

/**
 * Runs `work` in a transaction of `db` that commits only if the term's epoch is still in force. Await everything that uses
 * `trx`, and do not end the transaction in `work`.
 */
export async function fencedTransaction<Trx, R>(
  term: FencedTerm,
  db: KyselyDatabase<Trx>,
  work: (trx: Trx) => Promise<R> | R,
  options?: TxOptions,
): Promise<R> {
  const isolation = isolationOf(options);
  const kysely = db as unknown as Database<Trx>;
  if (db.isTransaction || typeof kysely.connection !== "function") throw nested(NAME);
  return transactFenced(term, () => begun(kysely, isolation), work);
}

/** What Kysely has next to the types that matter to users. */
interface Database<Trx> {
  connection(): { execute(use: (single: Single<Trx>) => Promise<void>): Promise<void> };
}

interface Single<Trx> {
  getExecutor(): { provideConnection(use: (connection: Connection) => Promise<Connection>): Promise<Connection> };
  transaction(): {
    setIsolationLevel(level: string): { execute(inside: (trx: Trx) => Promise<void>): Promise<void> };
  };
}

interface Connection {
  executeQuery: (this: void, query: Query, ...rest: unknown[]) => Promise<unknown>;
}

interface Query {
  readonly sql: unknown;
  readonly parameters: readonly unknown[];
  readonly query: object;
  readonly queryId: object;
}

function begun<Trx>(db: Database<Trx>, isolation: string): OwnTransaction<Trx> {
  let session: PgSession | undefined;
  let send: ((query: Query, ...rest: unknown[]) => Promise<unknown>) | undefined;
  return {
    name: NAME,
    transact: (inside) =>
      db.connection().execute(async (single) => {
        const connection = await single.getExecutor().provideConnection(async (one) => one);
        const emitter = await emitterOf(connection);
        const life = lifeOf(emitter);
        const watched = new PgSession(life);
        session = watched;
        const plain = connection.executeQuery;
        send = (...args) => Reflect.apply(plain, connection, args);
        // As Kysely itself does for its log. Another transaction on this connection begins after this one has ended.
        const own = Object.getOwnPropertyDescriptor(connection, "executeQuery");
        connection.executeQuery = (query, ...rest) =>
          watched.pass(query.sql, () => Reflect.apply(plain, connection, [query, ...rest]));
        try {
          await single.transaction().setIsolationLevel(isolation).execute(inside);
        } finally {
          if (own === undefined) Reflect.deleteProperty(connection, "executeQuery");
          else Object.defineProperty(connection, "executeQuery", own);
          // Kysely gives a client back whose BEGIN failed; it may have been carried out.
          if (!watched.isClean && !life.hasEnded) await destroyed(emitter);
        }
      }),
    // Past the plugins, which may rename columns.
    run: (text, values) => session!.run(() => send!(rawQuery(text, values))),
    settle: () => session?.settle(),
    isSessionEnd: (error) => session?.isSessionEnd(error) === true,
    outcome: (error) => session!.outcome(error),
  };
}

function rawQuery(sql: unknown, parameters: readonly unknown[]): Query {
  const query = { kind: "RawNode", sqlFragments: [String(sql)], parameters: [] };
  return { sql, parameters, query, queryId: { queryId: "tenure" } };
}

/** The emitter from which a client of `pg` hears what happens to its session. */
interface Emitter {
  emit: (this: void, event: string | symbol, ...args: unknown[]) => boolean;
  prependOnceListener(event: "end", listener: () => void): unknown;
  readonly stream: { destroy(): unknown };
}

/** A session is used often: it is guarded once, and stays so. An idle one is the pool's, which listens. */
const lives = new WeakMap<Emitter, SqlLife>();

function lifeOf(emitter: Emitter): SqlLife {
  const known = lives.get(emitter);
  if (known !== undefined) return known;
  const life: SqlLife = { hasEnded: false };
  lives.set(emitter, life);
  const emit = emitter.emit;
  emitter.emit = (event, ...args) => {
    const ends = event === "end" || event === "error";
    if (ends) life.hasEnded = true;
    try {
      return Reflect.apply(emit, emitter, [event, ...args]);
    } catch (error) {
      if (!ends && event !== "errorMessage") throw error;
      // `pg` has noted the end already, and rejects what is sent from now on. It threw because nobody listens to the client.
      life.hasEnded = true;
      return true;
    }
  };
  return life;
}

/** The pool does not lend it again once the end is known. */
function destroyed(emitter: Emitter): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  // Before the client's own, which throws where nobody listens to the client.
  emitter.prependOnceListener("end", resolve);
  emitter.stream.destroy();
  return promise;
}

/** A query that sends by itself, as far as `pg` uses one. */
interface Probe {
  submit(): Error;
  handleError(error: unknown, emitter: unknown): void;
  handleReadyForQuery(): void;
  toString(): string;
  callback?(): void;
}

/** Sends nothing to the server. */
async function emitterOf(connection: Connection): Promise<Emitter> {
  const found = Promise.withResolvers<unknown>();
  const probe: Probe = {
    submit: () => new Error("nothing to send"),
    handleError: (_error, emitter) => {
      // With `query_timeout` `pg` sets it: its timer would keep the process alive, and end a pipelined session.
      probe.callback?.();
      found.resolve(emitter);
    },
    handleReadyForQuery: () => undefined,
    // For dialects that take it for a text.
    toString: () => "select 1",
  };
  // The method of the class: Kysely's log does not see the probe.
  const execute = (Object.getPrototypeOf(connection) as Connection).executeQuery;
  const sent = Reflect.apply(execute, connection, [rawQuery(probe, [])]) as Promise<{ readonly rows?: unknown }>;
  sent.then(
    // `pg` answers at once, and calls handleError in the next tick; another driver has sent a text.
    ({ rows }) => (Array.isArray(rows) && rows.length === 0 ? undefined : found.resolve(undefined)),
    () => found.resolve(undefined),
  );
  const emitter = await found.promise;
  if (isEmitter(emitter)) return emitter;
  throw notOurs("Kysely's PostgresDialect over a Pool of pg", "the client of this Kysely can't be reached");
}

function isEmitter(value: unknown): value is Emitter {
  if (typeof value !== "object" || value === null || !("stream" in value)) return false;
  return "emit" in value && typeof value.emit === "function";
}
