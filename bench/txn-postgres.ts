// The peer: two-phase commit over servers of PostgreSQL by a driver, with a connection of each client to each server. Each phase is one message to each
// server, in parallel, and one answer of each.
//
//   PREPARE TRANSACTION at all ──▶ the decision is written and committed at the first ──▶ COMMIT PREPARED at all
//
// Without the record in the middle nobody would know after a crash of the driver whether what is prepared is to be committed. Nobody deletes these records
// here, which a real driver must do: that is in the peer's favour.

import { Client } from "pg";
import { CONTENT, NAMES, type Opened, type Side, type Way } from "./txn-sides.ts";

export const TABLES = `
  create table accounts (id int primary key, content text not null) with (fillfactor = 50);
  create table decisions (gid text primary key);`;

export function accountsFor(clients: number): string {
  return `insert into accounts select n, '' from generate_series(0, ${clients * NAMES - 1}) n`;
}

export class PostgresSide implements Side {
  readonly #way: Way;
  readonly #connections: readonly (readonly Client[])[];
  /** Two sides that are open at once must not use the same names. */
  readonly #prefix = `${process.pid}-${performance.now()}`;

  private constructor(way: Way, connections: readonly (readonly Client[])[]) {
    this.#way = way;
    this.#connections = connections;
  }

  static async open({ name, urls }: Extract<Opened, { name: Way }>, clients: number): Promise<PostgresSide> {
    const connections = Array.from({ length: clients }, () =>
      urls.map((connectionString) => new Client({ connectionString })),
    );
    for (const one of connections.flat()) await one.connect();
    return new PostgresSide(name, connections);
  }

  async transact(client: number, n: number): Promise<"done"> {
    const servers = this.#connections[client]!;
    const gid = `${this.#prefix}-${client}-${n}`;
    const update = `update accounts set content = '${CONTENT}' where id = ${client * NAMES + (n % NAMES)}`;
    const decide = `insert into decisions values ('${gid}')`;
    const prepared = this.#way === "home" ? servers.slice(1) : servers;
    await toAll(prepared, `begin; ${update}; prepare transaction '${gid}'`);
    if (this.#way === "decided") await servers[0]!.query(decide);
    if (this.#way === "home") await servers[0]!.query(`begin; ${update}; ${decide}; commit`);
    await toAll(prepared, `commit prepared '${gid}'`);
    return "done";
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.flat().map((one) => one.end()));
  }
}

async function toAll(servers: readonly Client[], text: string): Promise<void> {
  await Promise.all(servers.map((server) => server.query(text)));
}
