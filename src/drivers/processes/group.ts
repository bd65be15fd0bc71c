// A process group by its number: send it a signal, see whether anybody in it lives. A dead member that nobody has
// reaped still answers signal 0 (in a container whose first process does not reap, for ever), so a group that
// answers is looked up in /proc, where there is one.

import { assert } from "../../core/kit/assert.ts";
import { type ProcessLine, processes } from "./table.ts";

/** True if somebody was there to get it. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  assert(group > 1, "0 and 1 would be our own group and everybody");
  return signalTarget(-group, signal);
}

/** True if it was there to get it. */
export function signalProcess(pid: number, signal: NodeJS.Signals | 0): boolean {
  assert(pid > 1, "0 would be our own group, 1 is everybody's parent");
  return signalTarget(pid, signal);
}

function signalTarget(target: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(target, signal);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ESRCH") return false;
    // Those that changed their user can't be signalled by us, but they live.
    if (code === "EPERM") return true;
    throw error;
  }
}

/** How many members live; where there is no /proc, or it can't be read, 1 for some. */
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

/** By the number of the parent; where there is no /proc, or it can't be read, nobody. */
export function childrenOf(parent: number): number[] {
  return (table() ?? []).filter((one) => one.parent === parent).map((one) => one.pid);
}

function scan(group: number): number {
  return table()?.filter((one) => one.group === group && one.isAlive).length ?? 1;
}

function table(): ProcessLine[] | undefined {
  try {
    return processes();
  } catch {
    return undefined;
  }
}
