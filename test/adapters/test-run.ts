// A service of test-service.ts, run to its end.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { freshDatabase } from "../postgres/test-sql.ts";
import { type PostgresServer, startPostgres } from "../servers/index.ts";
import type { Ended, ServiceTask } from "./test-service.ts";

const SERVICE = fileURLToPath(new URL("test-service.ts", import.meta.url));

/** A server for the file, and for each test a database of its own with the table that services write to: its URL. */
export function freshTables(): () => string {
  let server: PostgresServer;
  let url: string;
  beforeAll(async () => {
    server = await startPostgres();
  });
  beforeEach(async () => {
    url = await freshDatabase(server);
    const database = new URL(url).pathname.slice(1);
    await server.query("create table written (memo text not null, epoch bigint not null)", [], database);
  });
  afterAll(() => server?.end());
  return () => url;
}

export interface Run {
  readonly code: number;
  readonly stderr: string;
  readonly ended: readonly Ended[];
  readonly last: Readonly<Record<string, unknown>>[];
}

export function service(task: ServiceTask): Promise<Run> {
  return new Promise((resolve) => {
    const limits = { timeout: 100_000, killSignal: "SIGKILL" } as const;
    execFile(process.execPath, [SERVICE, JSON.stringify(task)], limits, (error, stdout, stderr) => {
      const lines = stdout.split("\n").filter((line) => line !== "");
      const said = lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
      const ended = said.filter((one) => one["said"] === "ended") as unknown as Ended[];
      const last = said.filter((one) => one["said"] !== "ended");
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stderr, ended, last });
    });
  });
}
