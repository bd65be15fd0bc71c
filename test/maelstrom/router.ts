// A small stand-in for Maelstrom: starts node processes, carries their messages with delays, losses and partitions between
// nodes, plays the clients, and writes the history down. Clients always reach their nodes, as in Maelstrom.

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Random } from "../../src/core/kit/random.ts";
import { type Body, type Line, Lines } from "./protocol.ts";

const NODE = fileURLToPath(new URL("./node.ts", import.meta.url));

const INIT_MS_MAX = 20_000;

export interface RouterOptions {
  readonly nodes: number;
  readonly dataDir: string;
  readonly random: Random;
  /** Between nodes: each message is late by up to so much, and lost with this probability. */
  readonly delayMsMax: number;
  readonly loss: number;
}

export class Router {
  readonly nodeIds: readonly string[];
  readonly counts = { carried: 0, lost: 0, cut: 0, kills: 0 };
  readonly #options: RouterOptions;
  readonly #children = new Map<string, ChildProcess>();
  readonly #clients = new Map<string, (body: Body) => void>();
  /** Node ids that can't reach each other are in different groups. */
  #groups: ReadonlyMap<string, number> = new Map();
  readonly errors: string[] = [];

  constructor(options: RouterOptions) {
    this.#options = options;
    this.nodeIds = Array.from({ length: options.nodes }, (_, at) => `n${at}`);
    process.once("exit", this.#atExit);
  }

  async start(): Promise<void> {
    await Promise.all(this.nodeIds.map((id) => this.startNode(id)));
  }

  async startNode(id: string): Promise<void> {
    const child = spawn(process.execPath, ["--no-warnings", NODE], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, TENURE_MAELSTROM_DATA: this.#options.dataDir },
    });
    this.#children.set(id, child);
    const lines = new Lines();
    child.stdout.setEncoding("utf8").on("data", (text: string) => lines.read(text, (line) => this.#carry(line)));
    child.stderr.setEncoding("utf8").on("data", (text: string) => this.errors.push(`${id}: ${text}`));
    child.stdin.on("error", () => undefined);
    const ended = new Promise<null>((resolve) => child.once("exit", () => resolve(null)));
    const asked = this.ask("c-init", id, { type: "init", node_id: id, node_ids: this.nodeIds }, INIT_MS_MAX);
    if ((await Promise.race([asked, ended])) === null) throw new Error(`${id} did not start: ${this.errors.join("")}`);
  }

  /** SIGKILL, and what is under way to it is lost. */
  async killNode(id: string): Promise<void> {
    const child = this.#children.get(id);
    if (child === undefined) return;
    this.#children.delete(id);
    this.counts.kills++;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
  }

  /** Nodes that are in no group reach nobody. */
  partition(...groups: readonly (readonly string[])[]): void {
    this.#groups = new Map(groups.flatMap((group, at) => group.map((id) => [id, at] as const)));
    for (const id of this.nodeIds) if (!this.#groups.has(id)) (this.#groups as Map<string, number>).set(id, -1);
  }

  heal(): void {
    this.#groups = new Map();
  }

  /** Null: no answer in time. */
  ask(client: string, dest: string, body: Body, timeoutMs: number): Promise<Body | null> {
    return new Promise((resolve) => {
      const msg_id = this.#nextId++;
      const settle = (answer: Body | null): void => {
        clearTimeout(timer);
        this.#clients.delete(`${client} ${msg_id}`);
        resolve(answer);
      };
      const timer = setTimeout(() => settle(null), timeoutMs);
      this.#clients.set(`${client} ${msg_id}`, settle);
      this.#deliver({ src: client, dest, body: { ...body, msg_id } });
    });
  }
  #nextId = 1;

  async end(): Promise<void> {
    process.removeListener("exit", this.#atExit);
    await Promise.all(this.nodeIds.map((id) => this.killNode(id)));
  }

  #carry(line: Line): void {
    if (!this.nodeIds.includes(line.dest)) {
      this.#clients.get(`${line.dest} ${line.body.in_reply_to}`)?.(line.body);
      return;
    }
    const { random, delayMsMax, loss } = this.#options;
    this.counts.carried++;
    if (!this.#canReach(line.src, line.dest)) {
      this.counts.cut++;
    } else if (random.chance(loss)) {
      this.counts.lost++;
    } else if (delayMsMax === 0) {
      this.#deliver(line);
    } else {
      setTimeout(() => this.#deliver(line), random.between(0, delayMsMax));
    }
  }

  #canReach(src: string, dest: string): boolean {
    const from = this.#groups.get(src);
    return this.#groups.size === 0 || (from !== -1 && from === this.#groups.get(dest));
  }

  #deliver(line: Line): void {
    this.#children.get(line.dest)?.stdin?.write(`${JSON.stringify(line)}\n`);
  }

  readonly #atExit = (): void => {
    for (const child of this.#children.values()) child.kill("SIGKILL");
  };
}
