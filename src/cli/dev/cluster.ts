// Three nodes as processes of this machine, on free loopback ports, with their files in one temporary directory. Whoever
// dies is started again after a while; whoever is frozen goes on at the latest when a helper process, which outlives us,
// says so. `stop` ends them all and removes the directory.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ServerConfigFile } from "../../contract/index.ts";
import { childrenOf } from "../../drivers/processes/index.ts";
import { FREEZE_S_MAX, STOP_LIMIT_MS } from "./limits.ts";
import { freePorts, newKey, send, sha256, spawnServer } from "./processes.ts";
import { type DevNode, lastWords } from "./view.ts";

const IDS = ["n1", "n2", "n3"] as const;

interface Seat {
  readonly id: string;
  readonly configFile: string;
  readonly logFile: string;
  child: ChildProcess | null;
  thawer: ChildProcess | null;
  /** Processes that stand still. */
  frozen: readonly number[];
  restart: { readonly timer: ReturnType<typeof setTimeout>; readonly atMs: number } | null;
  isReady: boolean;
  /** Where the words of its present process begin. */
  logStartBytes: number;
  failedStarts: number;
}

export interface DevClusterOptions {
  /** When one that has died is started again. */
  readonly restartAfterMs: number;
  /** So many commands at once run on each node that does not lead; none where it is left out. */
  readonly capacity?: number | undefined;
  /** A server ended that nobody had told to. */
  died?(id: string, how: string): void;
  started?(id: string, pid: number): void;
}

export class DevCluster {
  readonly directory: string;
  readonly urls: readonly string[];
  readonly key: string;
  readonly #seats: readonly Seat[];
  readonly #options: DevClusterOptions;
  #isStopping = false;
  /** Any of them, ever. */
  #hasAnswered = false;

  private constructor(
    made: Pick<DevCluster, "directory" | "urls" | "key">,
    seats: readonly Seat[],
    options: DevClusterOptions,
  ) {
    this.directory = made.directory;
    this.urls = made.urls;
    this.key = made.key;
    this.#seats = seats;
    this.#options = options;
  }

  static async create(options: DevClusterOptions): Promise<DevCluster> {
    const directory = mkdtempSync(join(tmpdir(), "tenure-dev-"));
    const key = newKey();
    const workerKey = newKey();
    const keyFile = join(directory, "worker.key");
    writeFileSync(keyFile, workerKey, { mode: 0o600 });
    const { capacity } = options;
    const ports = await freePorts(2 * IDS.length);
    const addresses = IDS.map((_id, at) => ({
      peer: `127.0.0.1:${ports[2 * at]}`,
      api: `127.0.0.1:${ports[2 * at + 1]}`,
    }));
    const seats = IDS.map((id, at): Seat => {
      const configFile = join(directory, `${id}.json`);
      const config: ServerConfigFile = {
        node_id: id,
        data_dir: join(directory, id),
        peer: { listen: addresses[at]!.peer, secret_file: join(directory, "peer-secret") },
        api: { listen: addresses[at]!.api, advertise: `http://${addresses[at]!.api}` },
        peers: Object.fromEntries(IDS.map((other, where) => [other, addresses[where]!.peer])),
        bootstrap: { expect: [...IDS] },
        keys: [
          { name: "npm-start", sha256: sha256(key), role: "operator" },
          ...(capacity === undefined ? [] : [{ name: "workers", sha256: sha256(workerKey), role: "agent" } as const]),
        ],
        ...(capacity === undefined ? {} : { agent: { enabled: true, capacity, key_file: keyFile } }),
      };
      writeFileSync(configFile, JSON.stringify(config, null, 2), { mode: 0o600 });
      return {
        id,
        configFile,
        logFile: join(directory, `${id}.log`),
        child: null,
        thawer: null,
        frozen: [],
        restart: null,
        isReady: false,
        logStartBytes: 0,
        failedStarts: 0,
      };
    });
    const urls = addresses.map(({ api }) => `http://${api}`);
    return new DevCluster({ directory, urls, key }, seats, options);
  }

  start(): void {
    for (const seat of this.#seats) this.#spawn(seat);
  }

  nodes(nowMs: number): DevNode[] {
    return this.#seats.map(({ id, child, thawer, restart, isReady }) => ({
      id,
      pid: child?.pid ?? null,
      state: child === null ? "dead" : thawer !== null ? "frozen" : isReady ? "running" : "starting",
      restartInMs: restart === null ? null : Math.max(0, restart.atMs - nowMs),
    }));
  }

  /** It has answered. */
  ready(id: string): void {
    this.#seat(id).isReady = true;
    this.#hasAnswered = true;
  }

  urlOf(id: string): string {
    return this.urls[IDS.findIndex((one) => one === id)] ?? "";
  }

  /** The dashboard, as an operator. */
  get page(): string {
    return `${this.urls[0]}/#key=${this.key}`;
  }

  kill(id: string): void {
    this.#seat(id).child?.kill("SIGKILL");
  }

  /** Who is frozen at this moment. */
  get frozen(): string | null {
    return this.#seats.find(({ thawer }) => thawer !== null)?.id ?? null;
  }

  freeze(id: string): void {
    const seat = this.#seat(id);
    if (seat.child?.pid === undefined || seat.thawer !== null) return;
    // The whole node: its supervisor and what that has started.
    const pids = [seat.child.pid, ...childrenOf(seat.child.pid)];
    const script = `sleep ${FREEZE_S_MAX}; kill -CONT ${pids.join(" ")}`;
    const helper = spawn("/bin/sh", ["-c", script], { detached: true, stdio: "ignore" });
    helper.once("exit", () => {
      if (seat.thawer === helper) seat.thawer = null;
    });
    helper.unref();
    seat.thawer = helper;
    seat.frozen = pids;
    for (const pid of pids) send(pid, "SIGSTOP");
  }

  thaw(id: string): void {
    thaw(this.#seat(id));
  }

  /** Why a node's last process ended, as far as it said so. */
  lastWords(id: string): string | null {
    const { logFile, logStartBytes } = this.#seat(id);
    return lastWords(readFileSync(logFile).subarray(logStartBytes).toString("utf8"));
  }

  /** How often a node has died while none had ever answered. */
  failedStarts(id: string): number {
    return this.#seat(id).failedStarts;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#seats.map((seat) => end(seat)));
    rmSync(this.directory, { recursive: true, force: true });
  }

  #spawn(seat: Seat): void {
    // One that died before there was a cluster has to found it when it comes back: the others wait for it.
    const isFounder = seat.id === IDS[0] && !this.#hasAnswered;
    seat.restart = null;
    seat.isReady = false;
    const { child, logStartBytes } = spawnServer({
      configFile: seat.configFile,
      logFile: seat.logFile,
      directory: this.directory,
      isFounder,
    });
    seat.logStartBytes = logStartBytes;
    seat.child = child;
    child.once("spawn", () => this.#options.started?.(seat.id, child.pid ?? 0));
    child.once("error", (error) => this.#ended(seat, child, error.message));
    child.once("exit", (code, signal) => this.#ended(seat, child, signal ?? `exit code ${code}`));
  }

  #ended(seat: Seat, child: ChildProcess, how: string): void {
    if (seat.child !== child) return;
    seat.child = null;
    endHelper(seat);
    if (this.#isStopping) return;
    if (!this.#hasAnswered) seat.failedStarts++;
    const { restartAfterMs } = this.#options;
    const timer = setTimeout(() => this.#spawn(seat), restartAfterMs);
    seat.restart = { timer, atMs: performance.now() + restartAfterMs };
    this.#options.died?.(seat.id, how);
  }

  #seat(id: string): Seat {
    const seat = this.#seats.find((one) => one.id === id);
    if (seat === undefined) throw new Error(`there is no node ${id}`);
    return seat;
  }
}

/** In order first: SIGTERM hands leadership over. */
async function end(seat: Seat): Promise<void> {
  if (seat.restart !== null) clearTimeout(seat.restart.timer);
  const { child } = seat;
  if (child === null) return;
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  thaw(seat);
  child.kill("SIGTERM");
  const limit = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
  await ended;
  clearTimeout(limit);
}

function thaw(seat: Seat): void {
  for (const pid of seat.frozen) send(pid, "SIGCONT");
  seat.frozen = [];
  endHelper(seat);
}

/** The helper's group: `sleep` is a child of its shell. */
function endHelper(seat: Seat): void {
  const pid = seat.thawer?.pid;
  seat.thawer = null;
  if (pid !== undefined) send(-pid, "SIGKILL");
}
