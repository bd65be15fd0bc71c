// `tenure agent start` as a process, commands that are hard to get rid of, and who of them lives.

import { type ChildProcess, spawn, type StdioOptions } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { Client, JobRequest } from "../../src/entry/client.ts";
import { isAlive } from "../processes/living.ts";
import { OPERATOR_KEY, waitFor } from "../servers/index.ts";

const MAIN_FILE = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

interface LogLine {
  readonly event: string;
  readonly job?: string;
  readonly reason?: string;
  readonly code?: string;
  readonly pid?: number;
}

export class TestAgent {
  readonly name: string;
  readonly child: ChildProcess;
  readonly exit: Promise<number | null>;
  stderr = "";

  constructor(
    name: string,
    urls: readonly string[],
    flags: readonly string[] = [],
    { stdio, env = {} }: { readonly stdio?: StdioOptions; readonly env?: Readonly<Record<string, string>> } = {},
  ) {
    this.name = name;
    const servers = urls.flatMap((url) => ["--server", url]);
    const args = ["agent", "start", "--name", name, "--label", `on=${name}`, ...servers, ...flags];
    const clean = Object.entries(process.env).filter(([variable]) => !variable.startsWith("TENURE_"));
    this.child = spawn(process.execPath, [MAIN_FILE, ...args], {
      stdio: stdio ?? ["ignore", "ignore", "pipe"],
      env: { ...Object.fromEntries(clean), TENURE_API_KEY: OPERATOR_KEY, ...env },
    });
    this.child.stderr!.setEncoding("utf8").on("data", (text: string) => (this.stderr += text));
    // Not "close": that does not come when this side has closed the channel to it.
    this.exit = new Promise((resolve) => this.child.once("exit", resolve));
    onTestFinished(async () => {
      this.child.kill("SIGKILL");
      await this.exit;
    });
  }

  static async start(name: string, urls: readonly string[], flags: readonly string[] = []): Promise<TestAgent> {
    const agent = new TestAgent(name, urls, flags);
    await agent.said("started");
    return agent;
  }

  lines(event: string): LogLine[] {
    const whole = this.stderr.split("\n").slice(0, -1);
    return whole.map((line) => JSON.parse(line) as LogLine).filter((line) => line.event === event);
  }

  async said(event: string, count = 1, limitMs?: number): Promise<void> {
    await waitFor(`${count} × ${event}`, () => this.lines(event).length >= count, limitMs).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}\n${this.stderr.slice(-4_000)}`);
    });
  }

  /** A job that only this agent runs. */
  request(command: readonly string[], env: Record<string, string> = {}, more: Partial<JobRequest> = {}): JobRequest {
    return { kind: "exec", payload: { command, env }, labels: { on: this.name }, attemptsMax: 1, ...more };
  }

  sh(script: string, more: Partial<JobRequest> = {}): JobRequest {
    return this.request(["sh", "-c", script], {}, more);
  }
}

/** A folder in which processes leave their numbers: `echo > $PIDS/$$`. */
export class Pids {
  readonly folder = mkdtempSync(join(tmpdir(), "tenure-pids-"));
  /** Says its number and stays. */
  readonly env = { PIDS: this.folder, STAY: "echo > $PIDS/$$; exec sleep 1000" };

  constructor() {
    onTestFinished(() => {
      for (const pid of this.living()) process.kill(pid, "SIGKILL");
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  all(): number[] {
    return readdirSync(this.folder).map(Number);
  }

  living(): number[] {
    return this.all().filter((pid) => isAlive(pid));
  }

  async ready(count: number): Promise<void> {
    await waitFor(`${count} processes`, () => this.living().length >= count);
  }
}

/** A shell that does not mind SIGTERM, a child, a grandchild in a session of its own, a daemon without parents. */
export const TREE = `trap "" TERM; echo > $PIDS/$$; sh -c "$STAY" & setsid sh -c 'sh -c "$STAY" & wait' & (setsid sh -c 'sh -c "$STAY" & exit 0' &); wait; exec sleep 1000`;
export const TREE_SIZE = 4;

export async function logOf(client: Client, id: string): Promise<string> {
  let text = "";
  for await (const piece of client.logs(id, { consistency: "linearizable" })) text += piece.text;
  return text;
}
