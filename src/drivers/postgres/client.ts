// A client of `pg`, as far as we use one: made by us from a URL, or taken from a user's pool. Structural, so that no
// type of `pg` shows in what users see.

import { withSqlstate } from "../../core/kit/sql-outcome.ts";
import type { SqlRow } from "../../ports/backends/sql.ts";

export interface PgClient {
  query(text: string, values?: unknown[]): Promise<PgResult | PgResult[]>;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "end", listener: () => void): unknown;
  on(event: "notification", listener: (message: PgNotification) => void): unknown;
}

export interface PgResult {
  readonly rows: readonly SqlRow[];
  /** The server's word for what it did: SELECT, COMMIT, ROLLBACK. */
  readonly command?: string | undefined;
}

export interface PgNotification {
  readonly channel: string;
  readonly payload?: string | undefined;
}

/** Runs it and gives the rows; rejects with errors that have their `sqlstate`. */
export async function run(
  client: Pick<PgClient, "query">,
  text: string,
  values?: readonly unknown[],
): Promise<SqlRow[]> {
  try {
    const result = await (values === undefined ? client.query(text) : client.query(text, [...values]));
    const rows = Array.isArray(result) ? result.findLast((one) => one.rows.length > 0)?.rows : result.rows;
    return [...(rows ?? [])];
  } catch (error) {
    throw withSqlstate(error);
  }
}

/** Runs what ends a transaction. Whether it committed is in the answer to the last statement alone. */
export async function finish(client: Pick<PgClient, "query">, text: string): Promise<"committed" | "rolled back"> {
  try {
    const result = await client.query(text);
    const last = Array.isArray(result) ? result.at(-1) : result;
    return last?.command === "COMMIT" ? "committed" : "rolled back";
  } catch (error) {
    throw withSqlstate(error);
  }
}
