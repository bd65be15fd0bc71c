// One node process of the test store, as its harness holds it: starts it, asks it, hurts it, ends it, and wipes its disk.
//
//   stopped ─▶ starting ─▶ ready ─▶ stopped        by kill, by a signal, or by itself

import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { PeerKey } from "../../src/core/kit/ids.ts";
import { type TcpProxy, waitFor } from "../servers/index.ts";
import type { KvCluster } from "./cluster.ts";
import type {
  DiskFault,
  EventLine,
  FromHarness,
  FromNode,
  NodeOptions,
  NodeStatus,
  Question,
  Reply,
} from "./messages.ts";

const NODE = fileURLToPath(new URL("./node.ts", import.meta.url));
const READY_MS_MAX = 20_000;
const ANSWER_MS_MAX = 5_000;
const ERROR_TEXT_MAX = 4_000;

export class KvNode {
  readonly name: string;
  readonly peerPort: number;
  readonly kvPort: number;
  /** Undefined: it serves no API. */
  readonly apiPort: number | undefined;
  readonly dataDir: string;
  /** By node id: the proxy on which this node dials it. */
  readonly links = new Map<string, TcpProxy>();
  readonly #cluster: KvCluster;
  #child: ChildProcess | null = null;
  #gone: Promise<void> = Promise.resolve();
  #state: "stopped" | "starting" | "ready" = "stopped";
  #isExpected = false;
  #errors = "";
  #nextId = 0;
  readonly #asked = new Map<number, { settle: (reply: Reply) => void; fail: (error: Error) => void }>();
  /** The last that this node said of itself at a start. */
  peer: PeerKey | null = null;
  recovery = "";
  fatal: string | null = null;

  constructor(
    cluster: KvCluster,
    name: string,
    ports: { readonly peer: number; readonly kv: number; readonly api: number | undefined },
    dataDir: string,
  ) {
    this.#cluster = cluster;
    this.name = name;
    this.peerPort = ports.peer;
    this.kvPort = ports.kv;
    this.apiPort = ports.api;
    this.dataDir = dataDir;
  }

  get isReady(): boolean {
    return this.#state === "ready";
  }

  get isRunning(): boolean {
    return this.#state !== "stopped";
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** What the process said last on its standard error. */
  get errors(): string {
    return this.#errors;
  }

  get gone(): Promise<void> {
    return this.#gone;
  }

  /** Resolves when it serves. */
  async start(overrides: Partial<Pick<NodeOptions, "bootstrap" | "seeds">> = {}): Promise<void> {
    this.launch(overrides);
    await waitFor(
      `${this.name} to be ready`,
      () => {
        if (this.#state === "stopped") throw new Error(`${this.name} ended while it started: ${this.#errors}`);
        return this.#state === "ready";
      },
      READY_MS_MAX,
    );
  }

  /** Does not wait. */
  launch(overrides: Partial<Pick<NodeOptions, "bootstrap" | "seeds">> = {}): void {
    if (this.#state !== "stopped") throw new Error(`${this.name} runs already`);
    const options: NodeOptions = {
      nodeId: this.name,
      dataDir: this.dataDir,
      peerPort: this.peerPort,
      kvPort: this.kvPort,
      apiPort: this.apiPort,
      seeds: this.#cluster.seedsOf(this),
      bootstrap: false,
      eventLog: this.#eventPath,
      ...this.#cluster.options.node,
      ...overrides,
    };
    this.#state = "starting";
    this.#isExpected = false;
    this.fatal = null;
    const child = spawn(process.execPath, ["--no-warnings", NODE, JSON.stringify(options)], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#child = child;
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.#errors = (this.#errors + text).slice(-ERROR_TEXT_MAX);
    });
    child.on("message", (message: FromNode) => this.#hear(message));
    child.on("error", () => undefined);
    this.#gone = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        this.#ended(signal ?? `exit ${code}`);
        resolve();
      });
    });
  }

  /** SIGKILL; resolves when the process is gone. */
  async kill(): Promise<void> {
    this.killAtOnce();
    await this.#gone;
  }

  killAtOnce(): void {
    this.#isExpected = true;
    this.#child?.kill("SIGKILL");
  }

  /** The process is expected to end by itself. */
  expectEnd(): void {
    this.#isExpected = true;
  }

  signal(signal: "SIGSTOP" | "SIGCONT" | "SIGTERM"): void {
    if (signal === "SIGTERM") this.#isExpected = true;
    this.#child?.kill(signal);
  }

  /** The disk is gone: what comes back is another peer. */
  wipe(): void {
    if (this.#state !== "stopped") throw new Error(`${this.name} runs; only a stopped node's disk is wiped`);
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  async status(): Promise<NodeStatus> {
    const reply = await this.ask({ ask: "status" });
    return (reply as Extract<Reply, { ask: "status" }>).status;
  }

  async tryStatus(): Promise<NodeStatus | null> {
    try {
      return await this.status();
    } catch {
      return null;
    }
  }

  async disk(fault: DiskFault): Promise<void> {
    await this.ask({ ask: "disk", fault });
  }

  ask(question: Question, limitMs = ANSWER_MS_MAX): Promise<Reply> {
    const child = this.#child;
    if (child === null || this.#state !== "ready") return Promise.reject(new Error(`${this.name} is ${this.#state}`));
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      const settled = (act: () => void): void => {
        clearTimeout(timer);
        this.#asked.delete(id);
        act();
      };
      const fail = (error: Error): void => settled(() => reject(error));
      const timer = setTimeout(() => fail(new Error(`${this.name} did not answer ${question.ask}`)), limitMs);
      this.#asked.set(id, { settle: (reply) => settled(() => resolve(reply)), fail });
      child.send({ id, question } satisfies FromHarness, (error) => {
        if (error !== null) fail(error);
      });
    });
  }

  eventLines(): EventLine[] {
    let text: string;
    try {
      text = readFileSync(this.#eventPath, "utf8");
    } catch {
      return [];
    }
    // The last line may have been cut off by a kill.
    return text
      .split("\n")
      .filter((line) => line.endsWith("}"))
      .map((line) => JSON.parse(line) as EventLine);
  }

  get #eventPath(): string {
    return `${this.dataDir}.events`;
  }

  #hear(message: FromNode): void {
    switch (message.kind) {
      case "ready":
        this.#state = "ready";
        this.peer = message.peer;
        this.recovery = message.recovery;
        this.#cluster.ports[this.name] ??= this.kvPort;
        return;
      case "answer":
        this.#asked.get(message.id)?.settle(message.reply);
        return;
      case "role":
        this.#cluster.onEvent?.(message.line);
        return;
      case "fatal":
        this.fatal = message.message;
        return;
    }
  }

  #ended(exit: string): void {
    this.#state = "stopped";
    this.#child = null;
    for (const { fail } of this.#asked.values()) fail(new Error(`${this.name} ended`));
    if (!this.#isExpected) this.#cluster.onCrash?.(this, exit);
  }
}
