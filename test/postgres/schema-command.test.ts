// `tenure schema` as a user runs it: exit codes, what it prints, and what it leaves alone.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort, type PostgresServer, startPostgres } from "../servers/index.ts";
import { connectTo } from "./test-seat.ts";

const MAIN = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

let server: PostgresServer;

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(async () => {
  await server.end();
});

async function tenure(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  try {
    const done = await promisify(execFile)(process.execPath, [MAIN, "schema", ...args]);
    return { code: 0, ...done };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, stdout, stderr };
  }
}

test("print needs no database, and what it prints installs all of it", async () => {
  const printed = await tenure("print", "--schema", "by_hand");
  expect(printed).toMatchObject({ code: 0, stderr: "" });
  const client = await connectTo(await server.createDatabase("printed"));
  await client.query(printed.stdout);
  await client.end();
  const checked = await tenure("check", "--backend", server.url("printed"), "--schema", "by_hand");
  expect(checked).toMatchObject({ code: 0, stdout: expect.stringContaining("version 3, all is there.") });
});

test("check fails before apply and passes after it, in text and in JSON", async () => {
  const backend = ["--backend", await server.createDatabase("applied")];
  const before = await tenure("check", ...backend);
  expect(before.code).toBe(78);
  expect(before.stderr).toContain("table tenure_leader_state");
  const json = await tenure("check", "-o", "json", ...backend);
  expect(json.code).toBe(78);
  expect(JSON.parse(json.stdout)).toMatchObject({ state: "missing", version: 0, expected: 3, error: "SCHEMA_MISSING" });
  expect((await tenure("apply", ...backend)).code).toBe(0);
  expect((await tenure("apply", ...backend)).code).toBe(0);
  const after = await tenure("check", "-o", "json", ...backend);
  expect(after.code).toBe(0);
  expect(JSON.parse(after.stdout)).toMatchObject({ schema: "public", state: "current", version: 3, error: null });
});

test("a server that is not there, a database that is not, a wrong name and a wrong word have exit codes of their own", async () => {
  const nowhere = await tenure("check", "--backend", `postgres://u:secret@127.0.0.1:${await freePort()}/db`);
  expect(nowhere.code).toBe(69);
  expect(nowhere.stderr).not.toContain("secret");
  expect((await tenure("check", "--backend", server.url("no_such"))).code).toBe(78);
  expect((await tenure("apply", "--backend", server.url(), "--schema", "1a")).code).toBe(78);
  expect(await tenure("chek")).toMatchObject({ code: 64, stderr: expect.stringContaining("did you mean check?") });
  expect((await tenure()).code).toBe(64);
  expect((await tenure("print", "more")).code).toBe(64);
  expect((await tenure("apply", "--backend", "etcd://127.0.0.1:2379")).code).toBe(64);
  expect(await tenure("--help")).toMatchObject({ code: 0, stdout: expect.stringContaining("tenure schema apply") });
});
