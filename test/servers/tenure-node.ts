// One server of Tenure as a process, and its files: configuration, data directory, log.
//
//   made ──start──▶ running ──kill9, term──▶ gone ──start──▶ running     the same ports, data directory and configuration
//                   running ◀──stop, cont──▶ frozen
//
// Between `gone` and `start` the data directory may be emptied, and the configuration changed.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { request as requestHttp, type IncomingHttpHeaders } from "node:http";
import { type Agent, request as requestHttps } from "node:https";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ServerConfigFile } from "../../src/contract/index.ts";
import { COMPILE_CACHE } from "./compile-cache.ts";
import { ServerProcess } from "./server-process.ts";

export const TENURE_MAIN = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const ANSWER_MS_MAX = 10_000;
const VIEW_MS_MAX = 3_000;
const VIEWER_KEY = "viewer-key-of-the-test";

/** What tests look at, of GET /v1/cluster. */
export interface TenureView {
  readonly cluster_id: string;
  readonly node_id: string;
  readonly incarnation: string;
  readonly role: "LEADER" | "STANDBY" | "DRAINING";
  readonly term: number;
  readonly leader: { readonly node_id: string; readonly url: string | null } | null;
  readonly commit: number;
  readonly applied: number;
  readonly staleness_ms: number | null;
  readonly is_ready: boolean;
  readonly members: readonly {
    readonly node_id: string;
    readonly incarnation: string;
    readonly kind: "voter" | "learner" | "leaving" | "joining" | "node";
    readonly is_leader: boolean;
    readonly progress: { readonly lag: number; readonly healthy: boolean } | null;
  }[];
  readonly elections: readonly {
    readonly term: number;
    readonly stage: string;
    readonly reason: string;
    readonly candidate: string;
    readonly result: string;
  }[];
  readonly alerts: readonly { readonly name: string; readonly severity: string; readonly node_id: string | null }[];
}

export interface TenureAnswer<T = Readonly<Record<string, unknown>>> {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: T;
}

export interface TenureCall {
  readonly method?: "GET" | "POST" | "PUT" | "DELETE" | undefined;
  readonly body?: object | undefined;
  /** Null: nobody's. */
  readonly key?: string | null | undefined;
  readonly tls?: { readonly ca: string; readonly cert?: string; readonly key?: string } | undefined;
  readonly limitMs?: number | undefined;
  /** With connections that are kept, and its own certificates; by default each call has a connection of its own. */
  readonly agent?: Agent | undefined;
}

export class TenureNode {
  readonly home: string;
  readonly configFile: string;
  readonly dataDir: string;
  /** Where tests call it, if that is not what it announces. */
  reachedAt: string | null = null;
  /** For `node` itself, from the next start on: planted mistakes. */
  nodeFlags: readonly string[] = [];
  /** `tenure server start`, from the next start on: a supervisor with a controller and, while it does not lead, a worker. */
  isSupervised = false;
  /** The program, from the next start on: that of the sources, or a built one, which runs as its users run it. */
  main = TENURE_MAIN;
  /** What it logs, from the next start on. */
  told: ((text: string) => void) | undefined;
  #config: ServerConfigFile;
  #process: ServerProcess | undefined;
  #isFrozen = false;
  #controllerPid: number | undefined;

  /** Not for tests: TenureCluster makes these. */
  constructor(home: string, config: ServerConfigFile) {
    mkdirSync(home, { recursive: true });
    this.home = home;
    this.configFile = join(home, "config.json");
    this.dataDir = config.data_dir;
    this.#config = config;
    this.configure({});
  }

  get id(): string {
    return this.#config.node_id;
  }

  get url(): string {
    return this.reachedAt ?? this.#config.api?.advertise ?? "";
  }

  get peerAddress(): string {
    return this.#config.peer?.listen ?? "";
  }

  get config(): ServerConfigFile {
    return this.#config;
  }

  /** For the next start. */
  configure(change: Partial<ServerConfigFile>): void {
    this.#config = { ...this.#config, ...change };
    writeFileSync(this.configFile, JSON.stringify(this.#config, null, 2));
  }

  /** Undefined while it does not run. */
  get pid(): number | undefined {
    return this.#process?.isRunning === true ? this.#process.pid : undefined;
  }

  /** Of the last run that ended by itself. */
  get exitCode(): number | null {
    return this.#process?.exitCode ?? null;
  }

  /** The last of what this run has logged. */
  log(): string {
    return this.#process?.log ?? "";
  }

  start(flags: readonly string[] = []): void {
    if (this.pid !== undefined) return;
    this.#isFrozen = false;
    this.#controllerPid = undefined;
    let rest = "";
    this.#process = new ServerProcess({
      command: process.execPath,
      args: [
        "--no-warnings",
        ...this.nodeFlags,
        this.main,
        "server",
        this.isSupervised ? "start" : "controller",
        "--config",
        this.configFile,
        ...flags,
      ],
      told: (text) => {
        // As it comes: `log` forgets what is long ago.
        const lines = (rest + text).split("\n");
        rest = lines.pop() ?? "";
        const started = [...lines.join("\n").matchAll(/"event":"controller-started","pid":(\d+)/g)].at(-1);
        if (started !== undefined) this.#controllerPid = Number(started[1]);
        this.told?.(text);
      },
      directory: this.home,
      env: this.main === TENURE_MAIN ? { NODE_COMPILE_CACHE: COMPILE_CACHE } : {},
      lastSignal: "SIGKILL",
    });
  }

  /** Started, with these files: how it ends by itself. */
  async ended(): Promise<{ readonly code: number | null; readonly log: string }> {
    await this.#process?.gone;
    return { code: this.exitCode, log: this.log() };
  }

  async kill9(): Promise<void> {
    await this.#process?.end("SIGKILL");
  }

  /** Of a supervised node: its last controller, which may be gone. */
  get controllerPid(): number | undefined {
    return this.#controllerPid;
  }

  /** SIGSTOP: the kernel still takes connections for it, and nobody answers. */
  stop(): void {
    this.#isFrozen = true;
    this.signal("SIGSTOP");
  }

  cont(): void {
    this.#isFrozen = false;
    this.signal("SIGCONT");
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.signal(signal);
    // Frozen is the whole node; everything else is the supervisor's to pass on.
    if (this.isSupervised && (signal === "SIGSTOP" || signal === "SIGCONT")) this.signalController(signal);
  }

  /** Of a supervised node. */
  signalController(signal: NodeJS.Signals): void {
    const { controllerPid } = this;
    if (controllerPid === undefined) return;
    try {
      process.kill(controllerPid, signal);
    } catch {
      // It is gone.
    }
  }

  /** SIGTERM, in order; resolves to the exit code. */
  async term(signal: "SIGTERM" | "SIGINT" = "SIGTERM"): Promise<number | null> {
    await this.#process?.end(signal);
    return this.exitCode;
  }

  /** kill -9, if it runs, and started again. */
  async restart(flags: readonly string[] = []): Promise<void> {
    await this.kill9();
    this.start(flags);
  }

  /** Empties the data directory of a node that is gone. */
  wipe(): void {
    if (this.pid !== undefined) throw new Error(`${this.id} runs: its disk can't be wiped`);
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  /** Null where it does not answer soon. */
  async view(): Promise<TenureView | null> {
    if (this.pid === undefined || this.#isFrozen) return null;
    try {
      const { status, body } = await this.call<TenureView>("/v1/cluster", { key: VIEWER_KEY, limitMs: VIEW_MS_MAX });
      return status === 200 ? body : null;
    } catch {
      return null;
    }
  }

  /** A request to its API, by default on a connection of its own. Without `tls` nobody's certificate is checked or shown. */
  call<T = Readonly<Record<string, unknown>>>(path: string, call: TenureCall = {}): Promise<TenureAnswer<T>> {
    const { method = call.body === undefined ? "GET" : "POST", body, key, tls } = call;
    const request = this.url.startsWith("https:") ? requestHttps : requestHttp;
    const options = {
      method,
      agent: call.agent ?? (false as const),
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(typeof key === "string" ? { "x-api-key": key } : {}),
      },
      signal: AbortSignal.timeout(call.limitMs ?? ANSWER_MS_MAX),
      ...(tls ?? { rejectUnauthorized: false }),
    };
    return new Promise((resolve, reject) => {
      const sent = request(`${this.url}${path}`, options, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => void chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          const isJson = response.headers["content-type"]?.startsWith("application/json") === true;
          const answer = (isJson ? JSON.parse(text) : { text }) as T;
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: answer });
        });
      });
      sent.on("error", reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }
}
