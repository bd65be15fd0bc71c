// A real PgBouncer in front of a PostgreSQL of ours; only where one is installed (Debian: pgbouncer).
//
//   running ──stop──▶ stopped ──start──▶ running      the same port
//   running, stopped ──end──▶ ended
//
// It lets in whoever is in `users` without asking for a password, and logs in to the server with the one given
// there; `postgres` is always one of them. In transaction mode a client has a server connection only for the time
// of a transaction, so what belongs to a session (advisory locks, LISTEN, SET) does not hold.

import { chown, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { removeDirectory, temporaryDirectory } from "./directories.ts";
import { freePort } from "./ports.ts";
import type { PostgresServer } from "./postgres.ts";
import { findProgram, serverAccount, ServerProcess } from "./server-process.ts";

export interface PgBouncerOptions {
  /** Passwords by role. */
  readonly users?: Readonly<Record<string, string>>;
  /** Added to ours, or instead of them, e.g. `default_pool_size`. */
  readonly settings?: Readonly<Record<string, string>>;
}

const HOST = "127.0.0.1";

/** Undefined where it is not installed: the test that needs it skips itself, and says so. */
export function pgBouncerPath(): string | undefined {
  return findProgram("pgbouncer");
}

/** Undefined where it is not installed. */
export async function startPgBouncer(
  server: PostgresServer,
  mode: "transaction" | "session",
  options: PgBouncerOptions = {},
): Promise<PgBouncer | undefined> {
  const program = pgBouncerPath();
  if (program === undefined) return undefined;
  const directory = await temporaryDirectory("pgbouncer", serverAccount);
  const bouncer = new PgBouncer(program, directory, await freePort());
  try {
    const users = { postgres: "", ...options.users };
    const settings = {
      listen_addr: HOST,
      listen_port: String(bouncer.port),
      unix_socket_dir: "",
      auth_type: "trust",
      auth_file: join(directory, "users.txt"),
      pool_mode: mode,
      max_client_conn: "500",
      default_pool_size: "50",
      ignore_startup_parameters: "extra_float_digits",
      ...options.settings,
    };
    const target = `* = host=${HOST} port=${server.port}`;
    const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
    await writeOwned(bouncer.configuration, ["[databases]", target, "[pgbouncer]", ...lines, ""].join("\n"));
    const quoted = Object.entries(users).map(([name, password]) => `${quote(name)} ${quote(password)}\n`);
    await writeOwned(settings.auth_file, quoted.join(""));
    await bouncer.start();
    return bouncer;
  } catch (error) {
    await bouncer.end();
    throw error;
  }
}

export class PgBouncer {
  readonly port: number;
  readonly configuration: string;
  readonly #program: string;
  readonly #directory: string;
  #process: ServerProcess | undefined;
  #ended = false;

  /** Not for tests: startPgBouncer() makes these. */
  constructor(program: string, directory: string, port: number) {
    this.#program = program;
    this.#directory = directory;
    this.port = port;
    this.configuration = join(directory, "pgbouncer.ini");
  }

  /** Undefined while it does not run. */
  get pid(): number | undefined {
    return this.#process?.isRunning === true ? this.#process.pid : undefined;
  }

  get log(): string {
    return this.#process?.log ?? "";
  }

  url(database = "postgres", user = "postgres"): string {
    return `postgres://${encodeURIComponent(user)}@${HOST}:${this.port}/${encodeURIComponent(database)}`;
  }

  async start(): Promise<void> {
    if (this.#ended) throw new Error("this PgBouncer was ended and its directory removed");
    if (this.pid !== undefined) return;
    this.#process = new ServerProcess({
      command: this.#program,
      args: [this.configuration],
      account: serverAccount,
      directory: this.#directory,
      lastSignal: "SIGKILL",
    });
    await this.#process.ready(() => this.#answers());
  }

  /** At once: it does not wait for its clients. */
  async stop(): Promise<void> {
    await this.#process?.end("SIGTERM");
  }

  /** Stops at once and removes the directory. May be called twice. */
  async end(): Promise<void> {
    this.#ended = true;
    await this.#process?.end("SIGKILL");
    await removeDirectory(this.#directory);
  }

  async #answers(): Promise<boolean> {
    const client = new Client({ connectionString: this.url(), connectionTimeoutMillis: 10_000 });
    client.on("error", () => undefined);
    try {
      await client.connect();
      await client.query("select 1");
      return true;
    } catch {
      return false;
    } finally {
      await client.end();
    }
  }
}

async function writeOwned(path: string, text: string): Promise<void> {
  await writeFile(path, text, { mode: 0o600 });
  if (serverAccount !== undefined) await chown(path, serverAccount.uid, serverAccount.gid);
}

function quote(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}
