// The table of processes as /proc shows it. A process that ends while it is read is left out: that is no error. Where there is
// no /proc (macOS), or it may not be listed (a sandbox), there is no table, and callers fall back to what signals can tell. Where it
// can't be read now (this process has no file descriptors left, say) everything here throws: an empty answer would mean that nobody lives.

import { closeSync, openSync, readdirSync, readSync } from "node:fs";
import { TABLE_CHUNK_BYTES, TABLE_ROUNDS_MAX } from "./limits.ts";

export interface ProcessLine {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** In ticks since boot: a number that is given out again has another. */
  readonly start: number;
  readonly isAlive: boolean;
  readonly isKernel: boolean;
}

/** PF_KTHREAD of the kernel. */
const KERNEL_THREAD = 0x0020_0000;

/**
 * Undefined where there is no /proc. `found` is called with each as soon as it is read: what it does about a process may
 * come too late a millisecond later. Who was born meanwhile is read too, until there is nobody new: of processes that each start
 * the next one and end, one list misses all.
 */
export function processes(found: (one: ProcessLine) => void = () => undefined): ProcessLine[] | undefined {
  const seen = new Set<string>();
  const lines: ProcessLine[] = [];
  for (let round = 0; round < TABLE_ROUNDS_MAX; round++) {
    const names = list().filter((name) => !seen.has(name));
    if (names.length === 0) break;
    for (const name of names) {
      seen.add(name);
      const one = readProcess(name);
      if (one === undefined) continue;
      lines.push(one);
      found(one);
    }
  }
  return seen.size === 0 ? undefined : lines;
}

function list(): string[] {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch (error) {
    if (!isGone(error) && !isAnothers(error)) throw error;
    return [];
  }
}

export function readProcess(pid: string | number): ProcessLine | undefined {
  const stat = readWhole(`/proc/${pid}/stat`).toString("latin1");
  return stat === "" ? undefined : parseStat(stat);
}

/** "pid (name) state ppid pgrp session …", proc(5): the name may hold anything, parentheses and spaces too. */
export function parseStat(stat: string): ProcessLine {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, parent, group, session] = fields;
  return {
    pid: Number.parseInt(stat, 10),
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    start: Number(fields[19]),
    // The state is the main thread's: that one may have ended while others run on. The 20th field counts the threads.
    isAlive: (state !== "Z" && state !== "X") || Number(fields[17]) > 1,
    isKernel: (Number(fields[6]) & KERNEL_THREAD) !== 0,
  };
}

/** The value of a variable that it was started with; undefined also where we may not look (another user's). */
export function variableOf(pid: number, name: string): string | undefined {
  const environment = readWhole(`/proc/${pid}/environ`);
  const wanted = `${name}=`;
  for (let at = environment.indexOf(wanted); at !== -1; at = environment.indexOf(wanted, at + 1)) {
    if (at > 0 && environment[at - 1] !== 0) continue;
    const end = environment.indexOf(0, at);
    return environment.toString("utf8", at + wanted.length, end === -1 ? environment.length : end);
  }
  return undefined;
}

/** One for all: hundreds of files are read within milliseconds. */
let shared = Buffer.allocUnsafe(TABLE_CHUNK_BYTES);

/** Valid until the next call; empty where it has ended, or is none of ours. */
function readWhole(path: string): Buffer {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    if (!isGone(error) && !isAnothers(error)) throw error;
    return Buffer.alloc(0);
  }
  let bytes = 0;
  try {
    for (;;) {
      // The kernel hands out a page at a time, so only an empty read is the end.
      const read = readSync(file, shared, bytes, shared.length - bytes, null);
      if (read === 0) break;
      bytes += read;
      if (bytes === shared.length) shared = Buffer.concat([shared, Buffer.allocUnsafe(shared.length)]);
    }
  } catch (error) {
    // It has ended meanwhile.
    if (!isGone(error) && !isAnothers(error)) throw error;
  } finally {
    closeSync(file);
  }
  return shared.subarray(0, bytes);
}

function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ESRCH";
}

function isAnothers(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "EACCES" || code === "EPERM";
}
