// Sessions and clients made from a URL with the package `pg`. The socket is ours, so that it can be destroyed at any
// moment, also while it connects; TCP keepalive is on, for a peer that vanished without a word.

import { Socket } from "node:net";
import { TenureError } from "../../core/kit/errors.ts";
import type { SqlDriver, SqlLender, SqlLoan } from "../../ports/backends/sql.ts";
import type { PgClient } from "./client.ts";
import { LENT_CLIENTS_MAX, LENT_CLOSE_MS, LENT_CONNECT_TIMEOUT_MS, POSTGRES_KEEPALIVE_MS } from "./limits.ts";
import { loadPg } from "./pg-module.ts";
import { type PgConnection, PgSession } from "./session.ts";
import { loanOf, type PooledClient } from "./user-pool.ts";

const PORT_DEFAULT = 5_432;

export function urlDriver(url: string, applicationName: string): SqlDriver {
  return {
    where: whereOf(url),
    open: (events) => new PgSession(urlConnection(url, applicationName), events),
  };
}

function urlConnection(url: string, applicationName: string): PgConnection {
  const socket = new Socket();
  let unwanted = false;
  let opened: { end(): Promise<void> } | undefined;
  const connect = async (): Promise<PgClient> => {
    const { Client } = await loadPg();
    if (unwanted) throw new Error("the session was destroyed while it connected");
    const client = new Client({
      connectionString: url,
      application_name: applicationName,
      keepAlive: true,
      keepAliveInitialDelayMillis: POSTGRES_KEEPALIVE_MS,
      stream: () => socket,
    });
    client.on("error", () => undefined);
    opened = client;
    await client.connect();
    return client;
  };
  const client = connect();
  return {
    client,
    end: async () => opened?.end(),
    destroy: () => {
      unwanted = true;
      client.catch(() => undefined);
      socket.destroy();
    },
  };
}

/** A pool that opens with the first loan. */
export function urlLender(url: string, applicationName: string): SqlLender<PooledClient> {
  let pool: Promise<{ connect(): Promise<PooledClient>; end(): Promise<void> }> | undefined;
  const open = async (): Promise<{ connect(): Promise<PooledClient>; end(): Promise<void> }> => {
    const { Pool } = await loadPg();
    const opened = new Pool({
      connectionString: url,
      application_name: applicationName,
      keepAlive: true,
      keepAliveInitialDelayMillis: POSTGRES_KEEPALIVE_MS,
      max: LENT_CLIENTS_MAX,
      connectionTimeoutMillis: LENT_CONNECT_TIMEOUT_MS,
      allowExitOnIdle: true,
    });
    // An idle client that breaks is dropped by the pool; the next loan gets another.
    opened.on("error", () => undefined);
    return opened;
  };
  return {
    borrow: async (): Promise<SqlLoan<PooledClient>> => {
      pool ??= open();
      return loanOf(await (await pool).connect());
    },
    close: async () => {
      const closing = pool;
      pool = undefined;
      if (closing === undefined) return;
      // A transaction that goes on after the end of its term must not hold up whoever closes; its client ends with it.
      let timer: ReturnType<typeof setTimeout> | undefined;
      const patience = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, LENT_CLOSE_MS);
      });
      await Promise.race([closing.then((opened) => opened.end()), patience]);
      clearTimeout(timer);
    },
  };
}

/** `host:port/database` of a URL, without its secrets. */
function whereOf(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url);
  const host = searchParams.get("host") ?? (hostname === "" ? "localhost" : decoded("host", hostname));
  const database = decoded("database", pathname.slice(1));
  return `${host}:${port === "" ? PORT_DEFAULT : port}${database === "" ? "" : `/${database}`}`;
}

/** The value is not shown: where a URL is written wrongly, a part of the password may be anywhere in it. */
function decoded(part: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    throw new TenureError(
      "CONFIG_INVALID",
      `postgres(): url can't be read: the ${part} has a % that begins no character. Write it as postgres://user:password@host:5432/database, and a % itself as %25.`,
      { cause: error },
    );
  }
}
