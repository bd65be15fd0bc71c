// Commands for `tenure run` that write down what happens to them, each a Node program on the command line. Times are
// wall-clock milliseconds: all processes of a test are on one machine.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

export type Command = readonly [string, ...string[]];

/** A directory for what the commands of one test write. */
export function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), "tenure-run-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));
  return directory;
}

function program(source: string, ...args: string[]): Command {
  return [process.execPath, "-e", source, ...args];
}

const TICK = `
const { appendFileSync } = require("node:fs");
const [file, ...ignored] = process.argv.slice(1);
const say = (what) => appendFileSync(file, what + " " + Date.now() + " " + process.pid + " " + (process.env.TENURE_EPOCH ?? "-") + "\\n");
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGQUIT"])
  process.on(signal, () => { say(signal); if (!ignored.includes(signal)) { process.removeAllListeners(signal); process.kill(process.pid, signal); } });
say("start");
setInterval(() => say("tick"), 5);
`;

/** Ticks every few milliseconds until it dies; notes each signal, and dies of it unless it is ignored. */
export function ticker(file: string, ...ignored: NodeJS.Signals[]): Command {
  return program(TICK, file, ...ignored);
}

const FAMILY = `
const { spawn } = require("node:child_process");
const [tick, file, ...ignored] = process.argv.slice(1);
spawn(process.execPath, ["-e", tick, file, ...ignored], { stdio: "inherit" });
if (process.argv.at(-1) === "leave") setTimeout(() => process.exit(0), 300);
`;

/** A child that starts a ticking grandchild, and stays. */
export function family(file: string): Command {
  return program(FAMILY, TICK, file, "SIGTERM");
}

/** The same, but the child ends after a moment and leaves the grandchild behind. */
export function deserter(file: string): Command {
  return program(FAMILY, TICK, file, "SIGTERM", "leave");
}

export function exits(code: number): Command {
  return program(`process.exit(${code})`);
}

export interface Note {
  readonly what: string;
  readonly atMs: number;
  readonly pid: number;
  readonly epoch: string;
}

/** What a command has written so far. */
export function notes(file: string): Note[] {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return [];
  }
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => {
      const [what = "", atMs, pid, epoch = ""] = line.split(" ");
      return { what, atMs: Number(atMs), pid: Number(pid), epoch };
    });
}

export const named = (file: string, what: string): Note[] => notes(file).filter((note) => note.what === what);

/**
 * Who lives in a process group, by its number, as the kernel lists them. The guard has code of its own for this, which
 * a test of the guard must not ask.
 */
export function livingIn(group: number): number[] {
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return processes.filter((pid) => isAliveIn(pid, group)).map(Number);
}

function isAliveIn(pid: string, group: number): boolean {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
      .replace(/^.*\) /s, "")
      .split(" ");
    // The main thread may be a zombie while others run on: the 20th field counts them.
    return fields[2] === String(group) && (!"ZX".includes(fields[0] ?? "") || Number(fields[17]) > 1);
  } catch {
    return false;
  }
}
