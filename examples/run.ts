// `npm run example -- cron|payer|outbox`: starts a throwaway Postgres (or uses DATABASE_URL) and two instances of the
// example, kills the leader with SIGKILL in the middle, and counts what was done. Exit code 1 if anything was done
// twice that must not be, or was left undone.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { startPostgres } from "../test/servers/index.ts";

const LIMIT_MS = 60_000;

interface Example {
  /** What is there to be done, in the tables that the example's first comment creates. */
  readonly rows: string;
  /** How much must be done before the leader is killed, and before the end. */
  readonly half: number;
  readonly all: number;
  /** Text of a query whose one row has `done` and `wrong`: what was done, and what must be 0. */
  readonly count: string;
  /** Counted outside of the database; what it returns is added to the verdict. */
  readonly verdict?: (outside: Outside) => { readonly text: string; readonly wrong: number };
}

interface Outside {
  /** Keys in the order of their first arrival, with the number of requests. */
  readonly seen: Map<string, number>;
}

const EXAMPLES: Record<string, Example> = {
  cron: {
    rows: "",
    half: 4,
    all: 10,
    count: "select count(*)::int as done, abs(count(*) - (select runs from cron_total))::int as wrong from cron_run",
  },
  payer: {
    rows: "insert into payment (cents) select 100 + i from generate_series(1, 200) i",
    half: 80,
    all: 200,
    count: "select count(*) filter (where state = 'paid')::int as done, 0 as wrong from payment",
    verdict: ({ seen }) => ({
      text: `the provider made ${seen.size} payments for ${[...seen.values()].reduce((a, b) => a + b, 0)} requests`,
      wrong: Math.abs(seen.size - 200),
    }),
  },
  outbox: {
    rows: "insert into outbox (body) select 'message ' || i from generate_series(1, 200) i",
    half: 80,
    all: 200,
    count: "select count(*) filter (where sent_at is not null)::int as done, 0 as wrong from outbox",
    verdict: ({ seen }) => {
      const ids = [...seen.keys()].map((key) => Number(key.split("/").at(-1)));
      const disorder = ids.filter((id, i) => id !== i + 1).length;
      const repeated = [...seen.values()].filter((times) => times > 1).length;
      return { text: `the receiver got ${ids.length} messages in order, ${repeated} of them twice`, wrong: disorder };
    },
  },
};

const name = process.argv[2] ?? "";
const example = EXAMPLES[name];
if (example === undefined) {
  console.error(`which example? npm run example -- ${Object.keys(EXAMPLES).join("|")}`);
  process.exit(64);
}

const children = new Map<string, ChildProcess>();
let ended: string | undefined;
const server = process.env.DATABASE_URL === undefined ? await startPostgres() : undefined;
const url = process.env.DATABASE_URL ?? server?.url() ?? "";
const client = new pg.Client({ connectionString: url });
const outside: Outside = { seen: new Map() };
const http = await listen(outside);
try {
  await client.connect();
  await client.query(`drop table if exists cron_run, cron_total, payment, outbox; ${tables()} ${example.rows}`);
  process.exitCode = await show(example);
} finally {
  for (const child of children.values()) child.kill("SIGKILL");
  http.close();
  await client.end();
  await server?.end();
}

function tables(): string {
  const source = readFileSync(new URL(`${name}.ts`, import.meta.url), "utf8");
  return [...source.matchAll(/^\/\/ +(create table .*)$/gm)].map(([, statement]) => statement).join("\n");
}

async function show(shown: Example): Promise<number> {
  let leader = "";
  for (const instance of ["a", "b"]) {
    start(instance, (kind, epoch, reason) => {
      if (kind === "leading") leader = instance;
      console.log(
        `${instance}  ${kind}${epoch === undefined ? "" : `, epoch ${epoch}`}${reason === undefined ? "" : ` (${reason})`}`,
      );
    });
  }
  await until(async () => (await counts(shown)).done >= shown.half && leader !== "");
  const killed = leader;
  console.log(`   ${(await counts(shown)).done} done; kill -9 of ${killed}, which leads`);
  children.get(killed)?.kill("SIGKILL");
  await until(async () => (await counts(shown)).done >= shown.all && leader !== killed);
  await endAll();
  const { done, wrong } = await counts(shown);
  const verdict = shown.verdict?.(outside);
  const bad = wrong + (verdict?.wrong ?? 0);
  console.log(
    `${name}: ${done} done by two instances and one kill -9, ${bad} wrong${verdict === undefined ? "" : `; ${verdict.text}`}`,
  );
  return bad === 0 ? 0 : 1;
}

/** Nothing is counted before the last instance has said its last word: the verdict is the last line. */
async function endAll(): Promise<void> {
  for (const child of children.values()) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const closed = once(child, "close");
    child.kill("SIGTERM");
    await closed;
  }
}

function start(instance: string, tell: (kind: string, epoch?: number, reason?: string) => void): void {
  const { port } = http.address() as AddressInfo;
  const outsideUrl = `http://127.0.0.1:${port}`;
  const file = fileURLToPath(new URL(`${name}.ts`, import.meta.url));
  const child = spawn(process.execPath, ["--conditions=tenure-source", file], {
    env: { ...process.env, DATABASE_URL: url, PROVIDER_URL: outsideUrl, RECEIVER_URL: outsideUrl, EVERY_MS: "200" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.set(instance, child);
  child.on("exit", (code, signal) => {
    if (signal !== "SIGKILL") ended = `instance ${instance} ended by itself (${signal ?? code}); what it said is above`;
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { kind, epoch, reason } = JSON.parse(line) as { kind: string; epoch?: number; reason?: string };
    tell(kind, epoch, reason);
  });
}

async function counts(shown: Example): Promise<{ done: number; wrong: number }> {
  const { rows } = await client.query<{ done: number; wrong: number }>(shown.count);
  const [row] = rows;
  if (row === undefined) throw new Error("the count has no row");
  return row;
}

/** The world outside: remembers each key, and does a thing once for each. */
async function listen({ seen }: Outside): Promise<Server> {
  const made = createServer((request: IncomingMessage, response) => {
    const key = String(request.headers["idempotency-key"] ?? request.url);
    request.resume().on("end", () => {
      seen.set(key, (seen.get(key) ?? 0) + 1);
      response.end("{}");
    });
  });
  await new Promise<void>((resolve) => {
    made.listen(0, "127.0.0.1", resolve);
  });
  return made;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const endMs = Date.now() + LIMIT_MS;
  while (!(await condition())) {
    if (ended !== undefined) throw new Error(ended);
    if (Date.now() > endMs) throw new Error(`${name} did not get on within ${LIMIT_MS / 1000} s`);
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
}
