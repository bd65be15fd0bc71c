// A real PostgreSQL for tests: primary or streaming standby, on 127.0.0.1 and a port of its own.
//
//   running ──stop, kill──▶ stopped ──start──▶ running      the same port and data directory
//   running, stopped ──end──▶ ended                         the directory is gone, nothing may follow
//
// - When start() resolves, the server answers queries; when stop() or kill() resolves, no process of it is left.
// - The superuser `postgres` needs no password; every other role does (scram-sha-256).
// - Settings are in postgresql.conf, not on the command line, so ALTER SYSTEM and pg_reload_conf() work on them.
// - Writes are synced as in production; `settings: { fsync: "off" }` gives that up.

import { execFile } from "node:child_process";
import { appendFile, chown, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { copyDirectory, removeDirectory, temporaryDirectory } from "./directories.ts";
import { freePort } from "./ports.ts";
import { postgresStore } from "./postgres-binaries.ts";
import { serverAccount, ServerProcess, waitFor } from "./server-process.ts";

export interface PostgresOptions {
  /** Added to ours, or instead of them. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly port?: number;
  /** An existing data directory, or an absent or empty one that is initialised; end() leaves it where it is. */
  readonly dataDirectory?: string;
}

export type StopMode = "fast" | "immediate";

const HOST = "127.0.0.1";

const DEFAULT_SETTINGS: Readonly<Record<string, string>> = {
  max_connections: "200",
  shared_buffers: "32MB",
  wal_level: "replica",
  max_wal_senders: "10",
  // A standby is copied without the log and fetches it from its primary, which must still have it.
  wal_keep_size: "256MB",
  max_wal_size: "256MB",
  wal_retrieve_retry_interval: "100ms",
  // Files in the data directory: after a SIGKILL nothing stays behind in /dev/shm.
  dynamic_shared_memory_type: "mmap",
  timezone: "UTC",
  log_timezone: "UTC",
  log_line_prefix: "%m [%p] ",
};

const HBA = `
local all postgres trust
host all postgres 127.0.0.1/32 trust
host replication postgres 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
host replication all 127.0.0.1/32 scram-sha-256
`;

/** What a backup leaves out: what names the running server, and what it makes anew when it starts. */
const NOT_COPIED =
  /^(?:postmaster\.(?:pid|opts)|(?:pg_wal|pg_replslot|pg_dynshmem|pg_notify|pg_serial|pg_snapshots|pg_stat_tmp|pg_subtrans)\/.*|.*\/pgsql_tmp.*)$/;

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const base = await temporaryDirectory("postgres", serverAccount);
  const dataDirectory = options.dataDirectory ?? join(base, "data");
  const server = new PostgresServer(base, dataDirectory, options.port ?? (await freePort()));
  return orEnd(server, async () => {
    const { template } = await postgresStore();
    if (await isEmpty(dataDirectory)) {
      await copyDirectory(template, dataDirectory, serverAccount);
      await writeOwned(join(dataDirectory, "postgresql.conf"), settingsText(DEFAULT_SETTINGS));
      await writeOwned(join(dataDirectory, "pg_hba.conf"), HBA);
    }
    await appendFile(join(dataDirectory, "postgresql.conf"), settingsText(options.settings ?? {}));
    await server.start();
  });
}

export class PostgresServer {
  readonly port: number;
  readonly dataDirectory: string;
  /** For the socket, and for the data directory if it is ours. */
  readonly #base: string;
  #process: ServerProcess | undefined;
  #ended = false;

  /** Not for tests: startPostgres() and standby() make these. */
  constructor(base: string, dataDirectory: string, port: number) {
    this.#base = base;
    this.dataDirectory = dataDirectory;
    this.port = port;
  }

  /** Of the postmaster; undefined while the server does not run. */
  get pid(): number | undefined {
    return this.#process?.isRunning === true ? this.#process.pid : undefined;
  }

  /** The last 64 KiB of the server's log since its last start. */
  get log(): string {
    return this.#process?.log ?? "";
  }

  url(database = "postgres", user = "postgres", password?: string): string {
    const secret = password === undefined ? "" : `:${encodeURIComponent(password)}`;
    return `postgres://${encodeURIComponent(user)}${secret}@${HOST}:${this.port}/${encodeURIComponent(database)}`;
  }

  async start(): Promise<void> {
    if (this.#ended) throw new Error("this server was ended and its directory removed");
    if (this.pid !== undefined) return;
    const { program } = await postgresStore();
    this.#process = new ServerProcess({
      command: program,
      args: ["-D", this.dataDirectory, "-p", String(this.port), "-h", HOST, "-k", this.#base],
      account: serverAccount,
      directory: this.#base,
      // SIGQUIT, unlike SIGKILL, lets it remove its segment of shared memory.
      lastSignal: "SIGQUIT",
    });
    await this.#process.ready(() => this.#answers());
  }

  /** Fast: rolls back what is open and writes a checkpoint. Immediate: as in a crash, recovers at the next start. */
  async stop(mode: StopMode = "fast"): Promise<void> {
    await this.#process?.end(mode === "fast" ? "SIGINT" : "SIGQUIT");
  }

  async restart(mode: StopMode = "fast"): Promise<void> {
    await this.stop(mode);
    await this.start();
  }

  /** SIGKILL for the postmaster; its children notice, and this waits until the last one is gone. */
  async kill(): Promise<void> {
    await this.#process?.end("SIGKILL");
  }

  /** One statement on a connection of its own. */
  async query<Row extends object>(text: string, values: readonly unknown[] = [], database?: string): Promise<Row[]> {
    return this.#connected(async (client) => (await client.query<Row>(text, [...values])).rows, database);
  }

  /** Resolves to the url of the new database. */
  async createDatabase(name: string): Promise<string> {
    await this.query(`create database "${name.replaceAll('"', '""')}"`);
    return this.url(name);
  }

  /** A hot standby that follows this server asynchronously; it answers queries when this resolves. */
  async standby(): Promise<PostgresServer> {
    const base = await temporaryDirectory("postgres", serverAccount);
    const server = new PostgresServer(base, join(base, "data"), await freePort());
    return orEnd(server, async () => {
      await this.#backup(server.dataDirectory);
      const source = `host=${HOST} port=${this.port} user=postgres application_name=standby_${server.port}`;
      const settings = { primary_conninfo: source, hot_standby: "on" };
      await appendFile(join(server.dataDirectory, "postgresql.conf"), settingsText(settings));
      await writeOwned(join(server.dataDirectory, "standby.signal"), "");
      await server.start();
    });
  }

  /** Resolves when the log of `primary` as of now is applied here. */
  async caughtUp(primary: PostgresServer): Promise<void> {
    const [end] = await primary.query<{ lsn: string }>("select pg_current_wal_lsn()::text as lsn");
    const behind = "select coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, false) as done";
    await waitFor(`the standby on port ${this.port} to reach ${end?.lsn ?? "?"}`, async () => {
      const [row] = await this.query<{ done: boolean }>(behind, [end?.lsn]);
      return row?.done === true;
    });
  }

  /** A standby becomes a primary, on a new timeline. */
  async promote(): Promise<void> {
    const [row] = await this.query<{ done: boolean }>("select pg_promote(true, 60) as done");
    if (row?.done !== true) throw new Error(`the standby on port ${this.port} was not promoted:\n${this.log}`);
  }

  /** The timeline that a primary writes to: 1, and one more after each promotion. */
  async timeline(): Promise<number> {
    const text = "select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline";
    const [row] = await this.query<{ timeline: string }>(text);
    return Number.parseInt(row?.timeline ?? "", 16);
  }

  /** Stops at once and removes the directory. May be called twice. */
  async end(): Promise<void> {
    this.#ended = true;
    await this.stop("immediate");
    await removeSharedMemory(this.dataDirectory);
    await removeDirectory(this.#base);
  }

  /** What pg_basebackup does; it is not among the programs that the package has. */
  async #backup(to: string): Promise<void> {
    await this.#connected(async (client) => {
      await client.query("select pg_backup_start('standby', true)");
      await copyDirectory(this.dataDirectory, to, serverAccount, (path) => NOT_COPIED.test(path));
      const { rows } = await client.query<{ labelfile: string }>("select labelfile from pg_backup_stop(false)");
      await writeOwned(join(to, "backup_label"), rows[0]?.labelfile ?? "");
    });
  }

  async #answers(): Promise<boolean> {
    try {
      await this.query("select 1");
      return true;
    } catch {
      return false;
    }
  }

  async #connected<T>(work: (client: Client) => Promise<T>, database?: string): Promise<T> {
    const client = new Client({ connectionString: this.url(database), connectionTimeoutMillis: 10_000 });
    // A server that goes away is told by the query that fails, and not once more by an event.
    client.on("error", () => undefined);
    try {
      await client.connect();
      return await work(client);
    } finally {
      await client.end();
    }
  }
}

async function orEnd(server: PostgresServer, work: () => Promise<void>): Promise<PostgresServer> {
  try {
    await work();
    return server;
  } catch (error) {
    await server.end();
    throw error;
  }
}

/**
 * After a SIGKILL a segment of shared memory stays, and the next start on the directory removes it. Where there is
 * no next start, we do; there is room for a few thousand of them only. The server's own file names the segment.
 */
async function removeSharedMemory(dataDirectory: string): Promise<void> {
  try {
    const lines = (await readFile(join(dataDirectory, "postmaster.pid"), "utf8")).split("\n");
    const segment = lines[6]?.trim().split(/\s+/)[1];
    if (segment !== undefined) await promisify(execFile)("ipcrm", ["-m", segment]);
  } catch {
    // Stopped in an orderly way, then the file is gone; or no ipcrm here, then the segment stays.
  }
}

async function isEmpty(directory: string): Promise<boolean> {
  await mkdir(directory, { recursive: true });
  return (await readdir(directory)).length === 0;
}

async function writeOwned(path: string, text: string): Promise<void> {
  await writeFile(path, text, { mode: 0o600 });
  if (serverAccount !== undefined) await chown(path, serverAccount.uid, serverAccount.gid);
}

function settingsText(settings: Readonly<Record<string, string>>): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`)
    .join("");
}
