// The agent processes of `chaos jobs`, as the harness sees them: a place has names that stay and one process after the other,
// each with a journal of its own.
//
//   place ──start──▶ running ◀──stop, cont──▶ frozen ──kill──▶ gone ──start──▶ …     a crash is a finding

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ServerProcess } from "../servers/server-process.ts";
import { COMPILE_CACHE } from "../servers/compile-cache.ts";
import { AGENT_VARIABLE, type AgentConfig, type AgentLine, type LeaseLine, readJournal } from "./jobs-journal.ts";

const AGENT_MAIN = fileURLToPath(new URL("jobs-agent.ts", import.meta.url));

export type AgentsOptions = Pick<AgentConfig, "urls" | "key" | "capacity" | "leaseMs"> & {
  readonly directory: string;
  readonly places: number;
  readonly agentsPerPlace: number;
  /** For `node`: planted mistakes. */
  readonly nodeFlags: readonly string[];
};

export class Agents {
  readonly places: readonly AgentPlace[];

  constructor(options: AgentsOptions) {
    this.places = Array.from({ length: options.places }, (_, at) => new AgentPlace(options, at));
  }

  start(): void {
    for (const place of this.places) place.start();
  }

  /** Of all processes there have been. */
  lines(): AgentLine[] {
    return this.places.flatMap((place) => place.lines());
  }

  crashes(): string[] {
    return this.places.flatMap(({ crashes }) => crashes);
  }

  /** In order, for results that are on their way. */
  async end(): Promise<void> {
    await Promise.all(this.places.map((place) => place.term()));
  }

  async kill(): Promise<void> {
    await Promise.all(this.places.map((place) => place.kill()));
  }
}

export class AgentPlace {
  readonly crashes: string[] = [];
  readonly #options: AgentsOptions;
  readonly #at: number;
  readonly #home: string;
  readonly #journals: string[] = [];
  #process: ServerProcess | undefined;

  constructor(options: AgentsOptions, at: number) {
    this.#options = options;
    this.#at = at;
    this.#home = join(options.directory, `agents-${at + 1}`);
    mkdirSync(this.#home, { recursive: true });
  }

  get names(): string[] {
    const { agentsPerPlace } = this.#options;
    return Array.from({ length: agentsPerPlace }, (_, n) => `agent-${this.#at * agentsPerPlace + n + 1}`);
  }

  get pid(): number | undefined {
    return this.#process?.isRunning === true ? this.#process.pid : undefined;
  }

  start(): void {
    if (this.pid !== undefined) return;
    const journal = join(this.#home, `${this.#journals.length + 1}.ndjson`);
    writeFileSync(journal, "");
    this.#journals.push(journal);
    const { urls, key, capacity, leaseMs, nodeFlags } = this.#options;
    const config: AgentConfig = { names: this.names, urls, key, journal, capacity, leaseMs };
    const started = new ServerProcess({
      command: process.execPath,
      args: ["--no-warnings", ...nodeFlags, AGENT_MAIN],
      directory: this.#home,
      env: { NODE_COMPILE_CACHE: COMPILE_CACHE, [AGENT_VARIABLE]: JSON.stringify(config) },
      lastSignal: "SIGKILL",
    });
    this.#process = started;
    void started.gone.then(() => {
      // Null: by a signal, which was ours.
      if (started.exitCode === null || started.exitCode === 0) return;
      this.crashes.push(`${this.names.join(", ")} ended by itself (${started.exitCode}): ${started.log.slice(-1_000)}`);
    });
  }

  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#process?.signal(signal);
  }

  async kill(): Promise<void> {
    await this.#process?.end("SIGKILL");
  }

  async term(): Promise<void> {
    this.signal("SIGCONT");
    await this.#process?.end("SIGTERM");
  }

  lines(): AgentLine[] {
    return this.#journals.flatMap((journal) => readJournal(journal));
  }

  /** What the process that runs, or ran last, was given and has no answer about. */
  openLeases(): LeaseLine[] {
    const last = this.#journals.at(-1);
    const lines = last === undefined ? [] : readJournal(last);
    const told = new Set(lines.flatMap((line) => (line.is === "told" ? [line.lease] : [])));
    return lines.filter((line) => line.is === "leased").filter(({ lease }) => !told.has(lease));
  }
}
