// A server that runs as a child of the test, and ends with it whatever happens.
//
//   running ──▶ gone     by end(signal), or by itself; never back: a restart is a new ServerProcess
//
// - `gone` waits for the end of the error stream, not only for the process: its children (PostgreSQL has many)
//   inherited that stream, so when it ends, none of them has a file or a connection open any more.
// - Three things end a forgotten server: the hook on this process's exit, the guard (a shell that waits for the end
//   of a pipe which only this process holds, so it also acts when this process gets SIGKILL), and the test itself.
// - Processes are ended by their id, and only while they are known to run.

import { spawn, type ChildProcess } from "node:child_process";
import { accessSync, constants } from "node:fs";
import type { Socket } from "node:net";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** PostgreSQL and PgBouncer refuse to run as root: then they run as `nobody`. */
export const serverAccount: Account | undefined = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined;

const LOG_CHARS_MAX = 64 * 1024;
const POLL_MS = 10;
/** Below the time limit of a test, which would not say what was waited for. */
const LIMIT_MS = 100_000;

const GUARD = `
cat >/dev/null
kill -s "$1" "$2" 2>/dev/null
tries=0
while kill -0 "$2" 2>/dev/null; do
  case "$(cat "/proc/$2/stat" 2>/dev/null)" in *") Z "*) break ;; esac
  tries=$((tries + 1))
  if [ "$tries" -ge 50 ]; then kill -s KILL "$2" 2>/dev/null; fi
  if [ "$tries" -ge 60 ]; then break; fi
  sleep 0.1
done
rm -rf -- "$3"
`;

const running = new Set<ServerProcess>();

process.on("exit", () => {
  for (const server of running) server.signal(server.lastSignal);
});

export interface ServerProcessOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly account?: Account | undefined;
  /** What the server may leave behind when this process dies; the guard removes it. */
  readonly directory: string;
  /** Next to the few variables that every server gets. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** What ends it at once, and lets it clear away what is outside of its directory. */
  readonly lastSignal: "SIGQUIT" | "SIGKILL";
  /** What it writes to its error stream, as it comes: `log` keeps only the last of it. */
  readonly told?: ((text: string) => void) | undefined;
}

export class ServerProcess {
  readonly gone: Promise<void>;
  readonly lastSignal: "SIGQUIT" | "SIGKILL";
  readonly #child: ChildProcess;
  readonly #name: string;
  #guard: ChildProcess | undefined;
  #log = "";

  constructor(options: ServerProcessOptions) {
    this.#name = options.command;
    this.lastSignal = options.lastSignal;
    this.#child = spawn(options.command, options.args, {
      cwd: options.directory,
      // Nothing of the caller's PG* or ETCD_* variables.
      env: { PATH: process.env["PATH"], LC_ALL: "C", TZ: "UTC", ...options.env },
      stdio: ["ignore", "ignore", "pipe"],
      ...options.account,
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#log = (this.#log + text).slice(-LOG_CHARS_MAX);
      options.told?.(text);
    });
    this.gone = new Promise((resolve) => {
      this.#child.once("error", (error) => {
        this.#log += `${error.message}\n`;
        this.#forget();
        resolve();
      });
      this.#child.once("close", () => {
        this.#forget();
        resolve();
      });
    });
    this.#hold(false);
    if (this.#child.pid === undefined) return;
    running.add(this);
    this.#guard = guard(this.#child.pid, options);
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  get isRunning(): boolean {
    return running.has(this);
  }

  /** The last of what it wrote to its error stream. */
  get log(): string {
    return this.#log;
  }

  /** How it ended by itself, or null: it runs, or a signal ended it. */
  get exitCode(): number | null {
    return this.#child.exitCode;
  }

  signal(signal: NodeJS.Signals): void {
    if (this.isRunning && this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill(signal);
  }

  /** Resolves when the process and all of its children are gone. */
  async end(signal: NodeJS.Signals): Promise<void> {
    this.signal(signal);
    this.#hold(true);
    await within(this.gone, `${this.#name} (process ${this.pid}) to end after ${signal}`, () => this.log);
  }

  /** Resolves when `condition` holds; rejects when the process ended before, with what it said. */
  async ready(condition: () => Promise<boolean>): Promise<void> {
    await waitFor(`${this.#name} (process ${this.pid}) to answer`, async () => {
      if (!this.isRunning) throw new Error(`${this.#name} ended while it was starting:\n${this.log}`);
      return condition();
    });
  }

  /** A server alone does not keep the test process alive; waiting for its end does. */
  #hold(held: boolean): void {
    const stream = this.#child.stderr as Socket | null;
    if (held) {
      this.#child.ref();
      stream?.ref();
    } else {
      this.#child.unref();
      stream?.unref();
    }
  }

  #forget(): void {
    running.delete(this);
    this.#guard?.kill("SIGKILL");
    this.#guard = undefined;
  }
}

/** In a session of its own, so that it outlives a signal to this process's group. */
function guard(pid: number, options: ServerProcessOptions): ChildProcess | undefined {
  if (process.platform === "win32") return undefined;
  const signal = options.lastSignal.slice("SIG".length);
  const child = spawn("sh", ["-c", GUARD, "guard", signal, String(pid), options.directory], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  child.on("error", () => undefined);
  child.stdin?.on("error", () => undefined);
  (child.stdin as Socket | null)?.unref();
  child.unref();
  return child;
}

/** Polls until `condition` is true. The limit is for a machine that is stuck, not for one that is slow. */
export async function waitFor(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = LIMIT_MS,
): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited ${limitMs} ms in vain for ${what}`);
    await sleep(POLL_MS);
  }
}

async function within(promise: Promise<void>, what: string, log: () => string): Promise<void> {
  const stop = new AbortController();
  const late = sleep(LIMIT_MS, undefined, { signal: stop.signal }).then(
    () => {
      throw new Error(`waited ${LIMIT_MS} ms in vain for ${what}:\n${log()}`);
    },
    () => undefined,
  );
  try {
    await Promise.race([promise, late]);
  } finally {
    stop.abort();
  }
}

/** Where a program is, also in the places for administrators, which are not on everybody's PATH. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin", "/usr/local/bin"];
  return folders
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}
