// A real etcd of one node for tests, on 127.0.0.1; only where one is installed (Debian: etcd-server).
//
//   running ──stop, kill──▶ stopped ──start──▶ running      the same ports and data directory
//   running, stopped ──end──▶ ended                         the directory is gone, nothing may follow
//
// When start() resolves, the node has elected itself and answers; when stop() or kill() resolves, it is gone.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { removeDirectory, temporaryDirectory } from "./directories.ts";
import { freePort } from "./ports.ts";
import { findProgram, ServerProcess } from "./server-process.ts";

const HOST = "127.0.0.1";

/** Undefined where there is no etcd: the test that needs it skips itself, and says so. */
export function etcdPath(): string | undefined {
  return findProgram("etcd");
}

/** `flags` are added to the command line, and win over ours. */
export async function startEtcd(flags: readonly string[] = []): Promise<EtcdServer> {
  const program = etcdPath();
  if (program === undefined) throw new Error("etcd is not on PATH; ask etcdPath() first, and skip the test");
  const directory = await temporaryDirectory("etcd", undefined);
  const server = new EtcdServer(program, directory, { client: await freePort(), peer: await freePort() }, flags);
  try {
    await server.start();
    return server;
  } catch (error) {
    await server.end();
    throw error;
  }
}

export class EtcdServer {
  readonly port: number;
  readonly dataDirectory: string;
  readonly #program: string;
  readonly #directory: string;
  /** For `etcdctl snapshot restore`, which founds the cluster anew. */
  readonly cluster: readonly string[];
  readonly #args: readonly string[];
  #process: ServerProcess | undefined;
  #ended = false;

  /** Not for tests: startEtcd() makes these. */
  constructor(program: string, directory: string, ports: { client: number; peer: number }, flags: readonly string[]) {
    this.#program = program;
    this.#directory = directory;
    this.port = ports.client;
    this.dataDirectory = join(directory, "data");
    const peer = `http://${HOST}:${ports.peer}`;
    this.cluster = [`--initial-advertise-peer-urls=${peer}`, `--initial-cluster=tenure=${peer}`];
    this.#args = [
      "--name=tenure",
      `--data-dir=${this.dataDirectory}`,
      `--listen-client-urls=${this.endpoint}`,
      `--advertise-client-urls=${this.endpoint}`,
      `--listen-peer-urls=${peer}`,
      ...this.cluster,
      "--logger=zap",
      // A tenth of the defaults: it elects itself in 0.1 s and not in more than 1 s, and leases may last 1 s, not 2 s.
      "--heartbeat-interval=10",
      "--election-timeout=100",
      ...(knowsUnsafeNoFsync(program) ? ["--unsafe-no-fsync"] : []),
      ...flags,
    ];
  }

  get endpoint(): string {
    return `http://${HOST}:${this.port}`;
  }

  /** Undefined while the server does not run. */
  get pid(): number | undefined {
    return this.#process?.isRunning === true ? this.#process.pid : undefined;
  }

  get log(): string {
    return this.#process?.log ?? "";
  }

  async start(): Promise<void> {
    if (this.#ended) throw new Error("this server was ended and its directory removed");
    if (this.pid !== undefined) return;
    this.#process = new ServerProcess({
      command: this.#program,
      args: this.#args,
      directory: this.#directory,
      lastSignal: "SIGKILL",
    });
    await this.#process.ready(() => this.#isHealthy());
  }

  async stop(): Promise<void> {
    await this.#process?.end("SIGTERM");
  }

  async kill(): Promise<void> {
    await this.#process?.end("SIGKILL");
  }

  /** Stops at once and removes the directory. May be called twice. */
  async end(): Promise<void> {
    this.#ended = true;
    await this.kill();
    await removeDirectory(this.#directory);
  }

  async #isHealthy(): Promise<boolean> {
    try {
      const response = await fetch(`${this.endpoint}/health`, { signal: AbortSignal.timeout(10_000) });
      const { health } = (await response.json()) as { health?: string };
      return health === "true";
    } catch {
      return false;
    }
  }
}

const unsafeNoFsync = new Map<string, boolean>();

/** Some versions have the flag and do not tell; one that has it not refuses to start with it. */
function knowsUnsafeNoFsync(program: string): boolean {
  const known = unsafeNoFsync.get(program);
  if (known !== undefined) return known;
  const knows = spawnSync(program, ["--unsafe-no-fsync", "--version"], { stdio: "ignore" }).status === 0;
  unsafeNoFsync.set(program, knows);
  return knows;
}
