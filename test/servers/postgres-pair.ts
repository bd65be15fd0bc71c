// A primary and its streaming standby at one address, as clients of a managed database have it: after a failover the same URL leads
// to the standby, which is the primary from then on.

import { type PostgresOptions, type PostgresServer, startPostgres } from "./postgres.ts";
import { startProxy, type TcpProxy } from "./proxy.ts";

const HOST = "127.0.0.1";

/** `prepare` runs on the primary before it is copied. */
export async function startPostgresPair(
  prepare: (primary: PostgresServer) => Promise<unknown>,
  options?: PostgresOptions,
): Promise<PostgresPair> {
  const primary = await startPostgres(options);
  let standby: PostgresServer | undefined;
  try {
    await prepare(primary);
    standby = await primary.standby();
    return new PostgresPair(primary, standby, await startProxy({ host: HOST, port: primary.port }));
  } catch (error) {
    await standby?.end();
    await primary.end();
    throw error;
  }
}

export class PostgresPair {
  readonly #primary: PostgresServer;
  readonly #standby: PostgresServer;
  readonly #proxy: TcpProxy;
  #server: PostgresServer;

  /** Not for tests: startPostgresPair() makes these. */
  constructor(primary: PostgresServer, standby: PostgresServer, proxy: TcpProxy) {
    this.#primary = primary;
    this.#standby = standby;
    this.#proxy = proxy;
    this.#server = primary;
  }

  /** The one that is written to, without the proxy. */
  get server(): PostgresServer {
    return this.#server;
  }

  /** Where clients reach whichever is the primary. */
  get url(): string {
    return `postgres://postgres@${HOST}:${this.#proxy.port}/postgres`;
  }

  /**
   * The primary dies in the middle of whatever runs, and the standby takes its place. Everything that a client was answered is there:
   * the connections fall silent first, and the standby has replayed what the primary had written by then. What was under way is
   * committed or not, and its client has no answer.
   */
  async failover(): Promise<void> {
    this.#proxy.cut("both", "refused");
    await this.#standby.caughtUp(this.#primary);
    await this.#primary.stop("immediate");
    await this.#standby.promote();
    this.#server = this.#standby;
    this.#proxy.swap({ host: HOST, port: this.#standby.port });
    await this.#proxy.heal();
  }

  async end(): Promise<void> {
    await this.#proxy.end();
    await this.#standby.end();
    await this.#primary.end();
  }
}
