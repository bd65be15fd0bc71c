// Each example as its user starts it: one command, two instances, a real Postgres and a kill -9 in the middle. And alone, with
// the tables of its first comment, through a restart of the database and the end of a session in the middle of a statement.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Client } from "pg";
import { expect, it } from "vitest";
import { type PostgresServer, startPostgres, waitFor } from "./servers/index.ts";

const EXAMPLES = {
  cron: /^cron: \d+ done by two instances and one kill -9, 0 wrong$/,
  payer: /^payer: 200 done by two instances and one kill -9, 0 wrong; the provider made 200 payments for \d+ requests$/,
  outbox:
    /^outbox: 200 done by two instances and one kill -9, 0 wrong; the receiver got 200 messages in order, \d+ of them twice$/,
};

const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
const [, ...args] = scripts.example?.split(" ") ?? [];

it.for(Object.entries(EXAMPLES))("npm run example -- %s survives the kill of its leader", async ([name, verdict]) => {
  const child = spawn(process.execPath, [...args, name], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const code = await new Promise((resolve) => {
    child.on("close", resolve);
  });
  expect(output.trim().split("\n").at(-1)).toMatch(verdict);
  expect(code).toBe(0);
});

const STEPS: Record<string, { readonly add: string; readonly done: string }> = {
  cron: { add: "select 1", done: "select count(*)::int as done from cron_run" },
  payer: {
    add: "insert into payment (cents) values (1)",
    done: "select count(*)::int as done from payment where state = 'paid'",
  },
  outbox: {
    add: "insert into outbox (body) values ('one')",
    done: "select count(*)::int as done from outbox where sent_at is not null",
  },
};

it.for(Object.entries(STEPS))("%s goes on after a restart and the end of a session", async ([name, { add, done }]) => {
  const file = `examples/${name}.ts`;
  await using ends = new AsyncDisposableStack();
  const server = await startPostgres();
  ends.defer(() => server.end());
  const outside = createServer((_request, response) => response.end("{}")).listen(0, "127.0.0.1");
  ends.defer(() => void outside.close());
  await once(outside, "listening");
  const tables = [...readFileSync(file, "utf8").matchAll(/^\/\/ +(create table .*)$/gm)].map(([, text]) => text);
  await server.query(tables.join("\n"));

  const outsideUrl = `http://127.0.0.1:${(outside.address() as AddressInfo).port}`;
  const env = { ...process.env, DATABASE_URL: server.url(), PROVIDER_URL: outsideUrl, RECEIVER_URL: outsideUrl };
  const child = spawn(process.execPath, ["--conditions=tenure-source", file], {
    env: { ...env, EVERY_MS: "200" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  ends.defer(() => void child.kill("SIGKILL"));
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  const closed = once(child, "close");
  const count = async (): Promise<number> => (await server.query<{ done: number }>(done))[0]!.done;
  const oneMore = async (): Promise<void> => {
    const before = await count();
    await server.query(add);
    await waitFor(`${name} to do one more`, async () => {
      if (child.exitCode !== null) throw new Error(`${name} has ended by itself:\n${said}`);
      return (await count()) > before;
    });
  };

  await oneMore();
  await server.restart("fast");
  await oneMore();
  await endSessionThatUses(server, /create table (\w+)/.exec(tables[0] ?? "")?.[1] ?? "");
  await oneMore();
  child.kill("SIGTERM");
  expect(await closed).toEqual([0, null]);
});

/** A lock makes its next statement wait, and that session is ended: the leader's own session lives on. */
async function endSessionThatUses(server: PostgresServer, table: string): Promise<void> {
  const locker = new Client({ connectionString: server.url() });
  await locker.connect();
  try {
    await locker.query(`begin; lock table ${table}`);
    const end = "select pg_terminate_backend(pid) from pg_locks where not granted and locktype = 'relation'";
    await waitFor(`a statement on ${table}`, async () => (await server.query(end)).length > 0);
  } finally {
    await locker.end();
  }
}
