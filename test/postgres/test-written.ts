// A server and a database for one file, and for each test the table `written`, empty, with a session that reads it.

import type { Client } from "pg";
import { afterAll, beforeAll, beforeEach, onTestFinished } from "vitest";
import { type PostgresServer, startPostgres } from "../servers/index.ts";
import { connectTo } from "./test-seat.ts";
import { freshDatabase } from "./test-sql.ts";

export interface Written {
  server: PostgresServer;
  url: string;
  admin: Client;
}

export function writtenTable(column: string): Readonly<Written> {
  const written = {} as Written;
  beforeAll(async () => {
    written.server = await startPostgres();
    written.url = await freshDatabase(written.server);
  });
  beforeEach(async () => {
    const admin = await connectTo(written.url);
    onTestFinished(() => admin.end());
    await admin.query(`drop table if exists written; create table written (${column})`);
    written.admin = admin;
  });
  afterAll(() => written.server?.end());
  return written;
}
