// Runs commands as processes, each in a session and a process group of its own, with a cookie in its environment by which
// everything that it starts is found again (family.ts).

import { type ChildProcess, spawn } from "node:child_process";
import { stat } from "node:fs/promises";
import type { Readable } from "node:stream";
import type { ProcessCommand, Processes, RefusedProcess, StartedProcess } from "../../ports/processes/processes.ts";
import type { FamilyEnd } from "./family.ts";
import { signalGroup } from "./group.ts";
import { Reaper } from "./reaper.ts";

export interface ProcessesOptions {
  /** A group begins and ends: for whoever must kill it when this process can't. */
  readonly onGroup?: ((group: number, isAlive: boolean) => void) | undefined;
}

export function openProcesses({ onGroup = () => undefined }: ProcessesOptions = {}): Processes {
  const reaper = new Reaper();
  return { start: (command) => startCommand(command, reaper, onGroup) };
}

async function startCommand(
  command: ProcessCommand,
  reaper: Reaper,
  onGroup: NonNullable<ProcessesOptions["onGroup"]>,
): Promise<StartedProcess | RefusedProcess> {
  const { command: words, environment, directory, cookie, onOutput } = command;
  const [program, ...args] = words;
  const wrong = directory === null ? null : await wrongDirectory(directory);
  if (wrong !== null) return { kind: "refused", message: wrong };
  if (!command.mayStart()) return { kind: "refused", message: "it may not run any more" };
  let child: ChildProcess;
  try {
    child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...environment, [cookie.name]: cookie.value },
      ...(directory === null ? {} : { cwd: directory }),
      // A session and a group of its own.
      detached: true,
    });
  } catch (error) {
    // Some errors are thrown (a too long command line), others are told (no such file).
    return refused(program, error as NodeJS.ErrnoException);
  }
  if (child.pid === undefined) {
    const [error] = await new Promise<[NodeJS.ErrnoException]>((resolve) =>
      child.once("error", (told) => resolve([told])),
    );
    return refused(program, error);
  }
  onGroup(child.pid, true);
  child.on("error", () => undefined);
  return new Started(child, child.pid, cookie, onOutput, reaper, onGroup);
}

class Started implements StartedProcess {
  readonly kind = "started";
  readonly pid: number;
  readonly ended: StartedProcess["ended"];
  readonly printed: Promise<void>;
  readonly #streams: readonly Readable[];
  readonly #cookie: ProcessCommand["cookie"];
  readonly #reaper: Reaper;
  readonly #onGroup: NonNullable<ProcessesOptions["onGroup"]>;
  /** Its number may be somebody else's then. */
  #isGone = false;
  /** Who outlived the last kill. */
  #left: FamilyEnd["left"] = [];

  constructor(
    child: ChildProcess,
    pid: number,
    cookie: ProcessCommand["cookie"],
    onOutput: ProcessCommand["onOutput"],
    reaper: Reaper,
    onGroup: NonNullable<ProcessesOptions["onGroup"]>,
  ) {
    this.pid = pid;
    this.#cookie = cookie;
    this.#reaper = reaper;
    this.#onGroup = onGroup;
    this.ended = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
    this.printed = new Promise((resolve) => child.once("close", () => resolve()));
    this.#streams = [child.stdout!, child.stderr!];
    for (const [at, from] of (["stdout", "stderr"] as const).entries()) {
      // Decoded over the borders of chunks.
      this.#streams[at]!.setEncoding("utf8").on("data", (text: string) => onOutput(from, text));
      this.#streams[at]!.on("error", () => undefined);
    }
  }

  setReading(isReading: boolean): void {
    for (const stream of this.#streams) {
      if (isReading) stream.resume();
      else stream.pause();
    }
  }

  terminate(): void {
    if (this.#isGone || !signalGroup(this.pid, "SIGTERM")) return;
    // A stopped process keeps every other signal waiting until it is continued.
    signalGroup(this.pid, "SIGCONT");
  }

  async kill(withinMs: number): Promise<{ readonly survivors: number; readonly killed: number }> {
    if (this.#isGone) return { survivors: 0, killed: 0 };
    // At once, others may be in front of us. Not killed yet: who is dead is nobody's parent any more.
    signalGroup(this.pid, "SIGSTOP");
    const family = { cookie: this.#cookie, roots: [], groups: [this.pid], left: this.#left };
    const { survivors, left, killed } = await this.#reaper.kill(family, withinMs);
    this.#left = left;
    if (survivors === 0) {
      this.#isGone = true;
      this.#onGroup(this.pid, false);
    }
    return { survivors, killed };
  }
}

async function wrongDirectory(directory: string): Promise<string | null> {
  try {
    return (await stat(directory)).isDirectory() ? null : `its working directory ${directory} is no directory`;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ENOENT"
      ? `its working directory ${directory} does not exist on this machine`
      : `its working directory ${directory} can't be used: ${message}`;
  }
}

function refused(program: string, error: NodeJS.ErrnoException): RefusedProcess {
  const texts: Readonly<Record<string, string>> = {
    ENOENT: `there is no command ${program} on this machine`,
    EACCES: `${program} may not be executed on this machine`,
    E2BIG: `the command line and the environment are too long`,
  };
  return { kind: "refused", message: texts[error.code ?? ""] ?? `${program} can't be started: ${error.message}` };
}
