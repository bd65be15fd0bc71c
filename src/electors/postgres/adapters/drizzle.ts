// Drizzle over `pg`, or over postgres.js. Its session is what knows the pool: the transaction runs on the same session with
// another client in front, the one that we have taken from the pool. (Drizzle itself does not give a client back whose BEGIN
// failed, and hides an error to COMMIT by the error of the ROLLBACK that follows.)

import { TenureError } from "../../../core/kit/errors.ts";
import { sqlLifeOf } from "../../../core/kit/sql-life.ts";
import { isolationOf, type TxOptions } from "../fence/fence.ts";
import { type FencedTerm, nested, notOurs, type OwnTransaction, transactFenced } from "./own-transaction.ts";
import { PgSession } from "./pg-session.ts";
import { begunSql, type PostgresJs, type Sql } from "./postgres-js.ts";

const NAME = "Drizzle";

/** What `drizzle()` returns, of `drizzle-orm/node-postgres` or `drizzle-orm/postgres-js`; `Tx` is its transaction. */
export interface DrizzleDatabase<Tx> {
  transaction(work: (tx: Tx) => Promise<unknown>): Promise<unknown>;
}

/**
 * Runs `work` in a transaction of `db` that commits only if the term's epoch is still in force. Await everything that uses
 * `tx`, and do not end the transaction in `work`.
 */
export async function fencedTransaction<Tx, R>(
  term: FencedTerm,
  db: DrizzleDatabase<Tx>,
  work: (tx: Tx) => Promise<R> | R,
  options?: TxOptions,
): Promise<R> {
  const isolation = isolationOf(options);
  const { $client: client, _: inner } = db as unknown as Database<Tx>;
  const session = inner?.session;
  if (client === undefined || typeof session?.transaction !== "function") throw nested(NAME);
  if (isPostgresJs(client)) return transactFenced(term, () => overPostgresJs(session, client, isolation), work);
  if (isPg(client)) return transactFenced(term, () => overPg(session, client, isolation), work);
  throw notOurs("drizzle-orm/node-postgres and drizzle-orm/postgres-js", "this Drizzle has a driver that is not known");
}

/** What Drizzle has next to the types that matter to users. */
interface Database<Tx> {
  readonly $client?: unknown;
  readonly _?: { readonly session?: Session<Tx> };
}

interface Session<Tx> {
  transaction(inside: (tx: Tx) => Promise<void>, config: { readonly isolationLevel: string }): Promise<void>;
}

interface Client {
  query(query: unknown, values?: unknown): Promise<unknown>;
  on(event: "error" | "end", listener: () => void): unknown;
}

interface PooledClient extends Client {
  release(destroy: boolean): void;
}

/** A pool, or the one client that is everybody's. */
type PgSource = (Client & { readonly totalCount?: undefined }) | Pool;

interface Pool {
  readonly totalCount: number;
  connect(): Promise<PooledClient>;
}

function isPg(client: unknown): client is PgSource {
  return typeof client === "object" && client !== null && "query" in client && "on" in client;
}

function isPostgresJs(client: unknown): client is PostgresJs<Sql> {
  return typeof client === "function" && "begin" in client;
}

function overPg<Tx>(session: Session<Tx>, source: PgSource, isolation: string): OwnTransaction<Tx> {
  let client: Client | undefined;
  let watched: PgSession | undefined;
  return {
    name: NAME,
    transact: async (inside) => {
      if (inUse.has(source)) throw occupied();
      const lent = source.totalCount === undefined ? undefined : await source.connect();
      const used = lent ?? (source as Client);
      const own = new PgSession(sqlLifeOf(used));
      client = used;
      watched = own;
      const query = (asked: unknown, values?: unknown): Promise<unknown> =>
        own.pass(textOf(asked), () => used.query(asked, values));
      if (lent === undefined) inUse.add(source);
      try {
        await withClient(session, { query }).transaction(inside, { isolationLevel: isolation });
      } catch (error) {
        throw driverError(error);
      } finally {
        inUse.delete(source);
        lent?.release(!own.isClean);
      }
    },
    run: (text, values) => watched!.run(() => client!.query(text, [...values])),
    settle: () => watched?.settle(),
    isSessionEnd: (error) => watched?.isSessionEnd(driverError(error)) === true,
    outcome: (error) => watched!.outcome(error),
  };
}

function overPostgresJs<Tx>(session: Session<Tx>, sql: PostgresJs<Sql>, isolation: string): OwnTransaction<Tx> {
  const own = begunSql(NAME, sql, isolation);
  return {
    ...own,
    transact: (inside) =>
      own.transact(async (tx) => {
        // Drizzle would set the isolation again, in a statement of its own.
        const begin = (use: (tx: Sql) => Promise<void>): Promise<void> => use(tx);
        await withClient(session, { begin }).transaction(inside, undefined as never);
      }),
    isSessionEnd: (error) => own.isSessionEnd(driverError(error)),
  };
}

/** The same session, of the same schema, logger and cache, on another client. */
function withClient<Tx>(session: Session<Tx>, client: object): Session<Tx> {
  return Object.create(session, { client: { value: client } }) as Session<Tx>;
}

/** Drizzle wraps the driver's error. */
function driverError(error: unknown): unknown {
  try {
    return error instanceof Error && "query" in error && "params" in error ? error.cause : error;
  } catch {
    // A proxy that throws: of `work`, not of Drizzle.
    return error;
  }
}

function textOf(query: unknown): unknown {
  return typeof query === "object" && query !== null && "text" in query ? query.text : query;
}

/**
 * Single clients in a fenced transaction. A second one would begin inside of the first, and its ROLLBACK would end it: what the first
 * writes after that would not be fenced.
 */
const inUse = new WeakSet<PgSource>();

function occupied(): TenureError {
  return new TenureError(
    "TX_MISUSED",
    "fencedTransaction: this Drizzle has one client of pg, which is in a fenced transaction already. Nothing was sent. Give Drizzle a Pool, or run one after the other.",
  );
}
