// `tenure run` as a real process, on a real backend.

import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { type PostgresServer, waitFor } from "../servers/index.ts";
import { type Command, named, type Note, notes, scratch, ticker } from "./test-commands.ts";

const MAIN_FILE = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
/** Enough for a loaded machine to start three processes, and to see a failure for what it is. */
const EXIT_LIMIT_MS = 30_000;

type Environment = Readonly<Record<string, string>>;

export class Tenure {
  readonly process: ChildProcess;
  stderr = "";
  stdout = "";
  readonly #closed: Promise<number>;
  isRunning = true;

  constructor(args: readonly string[], environment: Environment = {}, main = MAIN_FILE) {
    const clean = Object.entries(process.env).filter(([name]) => !name.startsWith("TENURE_"));
    this.process = spawn(process.execPath, [main, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...Object.fromEntries(clean), ...environment },
    });
    this.process.stdout?.setEncoding("utf8").on("data", (text: string) => (this.stdout += text));
    this.process.stderr?.setEncoding("utf8").on("data", (text: string) => (this.stderr += text));
    this.#closed = new Promise((resolve) => {
      // Not "close": a guard that must outlive this process for a moment holds the same streams.
      this.process.once("exit", (code, signal) => {
        this.isRunning = false;
        // What it wrote last may still be in the pipe: the event loop reads it in its next round.
        setImmediate(() => setImmediate(() => resolve(code ?? (signal === "SIGKILL" ? -9 : -1))));
      });
    });
    onTestFinished(async () => {
      // The guard sees the end of the pipe, and kills the command; the streams close with the last of them.
      this.process.kill("SIGKILL");
      this.process.kill("SIGCONT");
      await this.#closed;
    });
  }

  get pid(): number {
    return this.process.pid!;
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  async exitCode(): Promise<number> {
    await waitFor(`tenure to exit; it said:\n${this.stderr}`, () => !this.isRunning, EXIT_LIMIT_MS).catch(
      (error: Error) => {
        throw new Error(`${error.message}\nstderr: ${this.stderr}`);
      },
    );
    return this.#closed;
  }

  async said(pattern: RegExp): Promise<void> {
    await waitFor(`tenure to say ${String(pattern)}`, () => pattern.test(this.stderr), EXIT_LIMIT_MS).catch(
      (error: Error) => {
        throw new Error(`${error.message}\nstderr: ${this.stderr}`);
      },
    );
  }
}

/** One file of notes, and the `tenure run` that writes to it. */
export class Instance {
  readonly file: string;
  readonly tenure: Tenure;

  constructor(
    flags: readonly string[],
    command: (file: string) => Command,
    environment: Environment = {},
    main?: string,
  ) {
    this.file = join(scratch(), "notes");
    this.tenure = new Tenure(["run", ...flags, "--", ...command(this.file)], environment, main);
  }

  static ticking(flags: readonly string[], ...ignored: NodeJS.Signals[]): Instance {
    return new Instance(flags, (file) => ticker(file, ...ignored));
  }

  get notes(): Note[] {
    return notes(this.file);
  }

  get lastMs(): number {
    return this.notes.at(-1)?.atMs ?? Number.NaN;
  }

  get starts(): Note[] {
    return named(this.file, "start");
  }

  /** The process group of the command that was started last. */
  get group(): number {
    return this.starts.at(-1)!.pid;
  }

  named(what: string): Note[] {
    return named(this.file, what);
  }

  /** Resolves when the n-th command ticks. */
  async ticks(start = 1): Promise<void> {
    const ticking = (): boolean => {
      const pid = this.starts[start - 1]?.pid;
      return pid !== undefined && this.named("tick").some((note) => note.pid === pid);
    };
    await waitFor(`command ${start} to tick`, ticking, EXIT_LIMIT_MS).catch((error: Error) => {
      throw new Error(`${error.message}\nstderr: ${this.tenure.stderr}`);
    });
  }
}

/** The field of /proc/PID/stat with the parent: a command's is its guard. */
export function parentOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
}

export function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1");
  return text
    .split(" ")
    .filter((one) => one !== "")
    .map(Number);
}

/** Ends the session that holds a scope, as an administrator would: the loss is known at once. */
export async function terminateHolder(server: PostgresServer, scope: string): Promise<void> {
  const ended = await server.query(
    `select pg_terminate_backend(l.pid) from pg_locks l join tenure_leader_state s
       on s.scope_key = (l.classid::bigint << 32) | l.objid::bigint
     where l.locktype = 'advisory' and l.granted and l.mode = 'ExclusiveLock' and s.scope = $1`,
    [scope],
  );
  if (ended.length !== 1) throw new Error(`${ended.length} sessions hold ${scope}; there should be one`);
}

/** When the present epoch of a scope was granted, by the server's clock, which is this machine's. */
export async function acquiredMs(server: PostgresServer, scope: string): Promise<number> {
  const [row] = await server.query<{ at: number }>(
    "select (extract(epoch from acquired_at) * 1000)::float8 as at from tenure_leader_state where scope = $1",
    [scope],
  );
  return row!.at;
}
