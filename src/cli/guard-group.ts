// A process group by its number: send it a signal, see whether anybody in it lives. A dead member that nobody has
// reaped still answers signal 0 (in a container whose first process does not reap, for ever), so a group that
// answers is looked up in /proc, where there is one.

import { readdirSync, readFileSync } from "node:fs";
import { assert } from "../core/kit/assert.ts";

/** True if somebody was there to get it. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  assert(group > 1, "0 and 1 would be our own group and everybody");
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ESRCH") return false;
    // Members that changed their user can't be signalled by us, but they live.
    if (code === "EPERM") return true;
    throw error;
  }
}

/** How many members live; where there is no /proc, 1 for some. */
export function livingMembers(group: number): number {
  if (!signalGroup(group, 0)) return 0;
  const living = scan(group);
  if (living > 0) return living;
  // A scan takes a while: a member that forks behind its back and ends before its own turn is missed, and so is its
  // child. Nobody forks with a stop pending, so a second scan misses nobody; the dead do not mind.
  if (!signalGroup(group, "SIGSTOP")) return 0;
  const stopped = scan(group);
  if (stopped > 0) signalGroup(group, "SIGCONT");
  return stopped;
}

/** By the number of the parent; where there is no /proc, nobody. */
export function childrenOf(parent: number): number[] {
  return (processes() ?? []).filter((one) => one.parent === parent).map((one) => one.pid);
}

function scan(group: number): number {
  return processes()?.filter((one) => one.group === group && one.isAlive).length ?? 1;
}

export interface ProcessLine {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly isAlive: boolean;
}

function processes(): ProcessLine[] | undefined {
  let names: string[];
  try {
    names = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return undefined;
  }
  return names.length === 0 ? undefined : names.flatMap((pid) => readProcess(pid) ?? []);
}

function readProcess(pid: string): ProcessLine | undefined {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return undefined;
  }
}

/** "pid (name) state ppid pgrp …", proc(5): the name may hold anything, parentheses and spaces too. */
export function parseStat(stat: string): ProcessLine {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, parent, group] = fields;
  // The state is the main thread's: that one may have ended while others run on. The 20th field counts the threads.
  const isAlive = (state !== "Z" && state !== "X") || Number(fields[17]) > 1;
  return { pid: Number.parseInt(stat, 10), parent: Number(parent), group: Number(group), isAlive };
}
