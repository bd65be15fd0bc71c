// The `tenure` command as a process, and hands that play leaders badly.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "pg";
import { afterAll } from "vitest";
import { schemaSql } from "../../src/postgres/schema/schema.ts";
import { COMPILE_CACHE } from "../servers/compile-cache.ts";
import type { PostgresServer } from "../servers/index.ts";

const MAIN_FILE = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
/** No command here takes long; one that hangs is ended, and its test says what it had printed. */
const LIMIT_MS = 60_000;

const endings: (() => Promise<void>)[] = [];

/** When all tests of the file have run, last first: they run side by side, where `onTestFinished` knows no test. */
export function atTheEnd(end: () => Promise<void>): void {
  endings.push(end);
}

afterAll(async () => {
  for (const end of endings.toReversed()) await end();
});

export interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Whoever runs the tests may have a configuration of his own. */
const NO_FILES = join(COMPILE_CACHE, "none");

export function start(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  limitMs: number = LIMIT_MS,
  input?: string,
) {
  const clean = Object.entries(process.env).filter(([name]) => !/^TENURE_|_COLOR$/.test(name));
  const child = spawn(process.execPath, [MAIN_FILE, ...args], {
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    env: { ...Object.fromEntries(clean), NODE_COMPILE_CACHE: COMPILE_CACHE, XDG_CONFIG_HOME: NO_FILES, ...environment },
  });
  child.stdin?.end(input);
  const said = { stdout: "", stderr: "" };
  child.stdout!.setEncoding("utf8").on("data", (text: string) => (said.stdout += text));
  child.stderr!.setEncoding("utf8").on("data", (text: string) => (said.stderr += text));
  const timer = setTimeout(() => child.kill("SIGKILL"), limitMs);
  const ended = new Promise<Said>((resolve) => {
    child.once("close", (code) => {
      clearTimeout(timer);
      resolve({ code, ...said });
    });
  });
  return { child, said, ended };
}

export async function tenure(...args: readonly string[]): Promise<Said> {
  return await start(args).ended;
}

/** The one object that a command prints with `-o json`. */
export async function tenureJson<T>(...args: readonly string[]): Promise<T & { readonly code: number | null }> {
  const { code, stdout, stderr } = await tenure(...args, "-o", "json");
  if (stdout.trim().split("\n").length !== 1) throw new Error(`not one line of JSON: ${stdout}\nstderr: ${stderr}`);
  return { code, ...(JSON.parse(stdout) as T) };
}

export async function connect(url: string, applicationName = "a test"): Promise<Client> {
  const client = new Client({ connectionString: url, application_name: applicationName });
  client.on("error", () => undefined);
  await client.connect();
  atTheEnd(() => client.end().catch(() => undefined));
  return client;
}

let databases = 0;

/** A database of a test's own, with Tenure's schema in `public`. */
export async function installed(server: PostgresServer): Promise<string> {
  const url = await server.createDatabase(`cli_${++databases}`);
  await run(url, schemaSql("public"));
  return url;
}

/** Statements as one would paste them into psql: one by one, each in its own transaction. */
export async function run(url: string, ...statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

/** A leader that took the lock and an epoch, and says nothing more: as one that is frozen. */
export async function silentLeader(
  url: string,
  scope: string,
  key: string,
  identity = `${scope}-silent`,
): Promise<Client> {
  const client = await connect(url, `tenure ${scope}`);
  await client.query("select pg_advisory_lock($1)", [key]);
  await client.query("select tenure_bump($1, $2, $3, $4, 'tenure_leader_change', null)", [
    key,
    scope,
    identity,
    JSON.stringify({ zone: "a" }),
  ]);
  return client;
}
