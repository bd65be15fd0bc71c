// A process group by its number: send it a signal, see whether anybody in it lives. A dead member that nobody has
// reaped still answers signal 0 (in a container whose first process does not reap, for ever), so a group that
// answers is looked up in /proc, where there is one.

import { readdirSync, readFileSync } from "node:fs";

/** True if somebody was there to get it. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
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
  let names: string[];
  try {
    names = readdirSync("/proc");
  } catch {
    return 1;
  }
  const processes = names.filter((name) => /^\d+$/.test(name));
  if (processes.length === 0) return 1;
  return processes.filter((pid) => isLivingMember(pid, group)).length;
}

function isLivingMember(pid: string, group: number): boolean {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return false;
  }
  // "pid (name) state ppid pgrp …": the name may hold anything, parentheses and spaces too.
  const [state, , pgrp] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(pgrp) === group && state !== "Z" && state !== "X";
}
