// The examples of examples/fence with the real clients: their write commits with a current epoch, and with a stale one
// is refused inside the client's own transaction, however the client wraps the server's error.

import { execFile, execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { post as drizzle } from "../../examples/fence/drizzle.ts";
import { post as kysely } from "../../examples/fence/kysely.ts";
import type { FencedTerm, Post } from "../../examples/fence/lead.ts";
import { post as pg } from "../../examples/fence/pg.ts";
import { post as postgresJs } from "../../examples/fence/postgres-js.ts";
import { StaleEpochError } from "../../src/core/kit/errors.ts";
import { createElector } from "../../src/entry/index.ts";
import { postgres } from "../../src/entry/postgres.ts";
import { type PostgresServer, startPostgres } from "../servers/index.ts";
import { connectTo, DEAF } from "./test-seat.ts";
import { freshDatabase } from "./test-sql.ts";

const EXAMPLES: Readonly<Record<string, Post>> = { pg, kysely, drizzle, "postgres-js": postgresJs };
const PSQL = "psql";
const FOLDER = fileURLToPath(new URL("../../examples/fence/", import.meta.url));

let server: PostgresServer;
let url: string;
let admin: Client;

beforeAll(async () => {
  server = await startPostgres();
});

beforeEach(async () => {
  url = await freshDatabase(server);
  admin = await connectTo(url);
  await admin.query("create table posting (memo text not null, epoch bigint not null)");
});

afterEach(async () => {
  await admin.end();
});

afterAll(async () => {
  await server.end();
});

async function posted(): Promise<unknown[]> {
  return (await admin.query("select memo, epoch::int from posting order by memo")).rows;
}

/** As after a failover that the leader has not heard of yet. */
async function supersede(): Promise<void> {
  await admin.query("update tenure_leader_state set epoch = epoch + 1");
}

async function inTerm(work: (term: FencedTerm) => Promise<void>): Promise<void> {
  await using elector = createElector({ scope: "it's a test", backend: postgres({ ...DEAF, url }) });
  await using term = await elector.acquire();
  await work(term);
}

describe.each(Object.keys(EXAMPLES))("%s", (name) => {
  const post = EXAMPLES[name]!;

  test("commits with the epoch in force", () =>
    inTerm(async (term) => {
      await post(term, url, "rent");
      expect(await posted()).toEqual([{ memo: "rent", epoch: term.epoch }]);
    }));

  test("is refused with a stale epoch, writes nothing, and the term is over", () =>
    inTerm(async (term) => {
      await supersede();
      await expect(post(term, url, "rent")).rejects.toMatchObject({ code: "STALE_EPOCH" });
      expect(await posted()).toEqual([]);
      expect(await term.ended).toBe("superseded");
    }));

  test("an error that is no refusal comes out as it is, and the term goes on", () =>
    inTerm(async (term) => {
      await admin.query("drop procedure tenure_fence");
      const failed = await post(term, url, "rent").catch((error: unknown) => error);
      expect(failed).toBeInstanceOf(Error);
      expect(StaleEpochError.is(failed)).toBe(false);
      expect(term.check()).toBe(term.epoch);
    }));

  test("runs as a program", async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--conditions=tenure-source", `${FOLDER}${name}.ts`],
      { env: { ...process.env, DATABASE_URL: url } },
    );
    expect(stdout).toBe("posted in epoch 1\n");
    expect(await posted()).toEqual([{ memo: "rent", epoch: 1 }]);
  });
});

function hasPsql(): boolean {
  try {
    execFileSync(PSQL, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    console.warn("psql is not on PATH: its example is not tested");
    return false;
  }
}

describe.skipIf(!hasPsql())("psql", () => {
  async function psql(scope: string, epoch: number): Promise<{ code: number; stderr: string }> {
    const env = { ...process.env, DATABASE_URL: url, TENURE_SCOPE: scope, TENURE_EPOCH: String(epoch) };
    try {
      const { stderr } = await promisify(execFile)("sh", [`${FOLDER}psql.sh`, "o'rent"], { env });
      return { code: 0, stderr };
    } catch (error) {
      const { code, stderr } = error as { code: number; stderr: string };
      return { code, stderr };
    }
  }

  test("commits with the epoch in force, and is refused with a stale one", () =>
    inTerm(async (term) => {
      expect(await psql(term.scope, term.epoch)).toEqual({ code: 0, stderr: "" });
      expect(await posted()).toEqual([{ memo: "o'rent", epoch: term.epoch }]);
      await supersede();
      const refused = await psql(term.scope, term.epoch);
      expect(refused.code).toBe(3);
      expect(refused.stderr).toContain("TN001");
      expect(await posted()).toHaveLength(1);
    }));
});
