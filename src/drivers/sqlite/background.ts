// After the rest of the process: where processors are short, the views wait and not the heartbeats. Linux has a priority for
// each thread; elsewhere the thread stays as it is.

import { readlinkSync } from "node:fs";
import { constants, getPriority, setPriority } from "node:os";

/** Of the thread that calls it, and only of that. */
export function goToBackground(): void {
  try {
    const [, tid] = /\/task\/(\d+)$/.exec(readlinkSync("/proc/thread-self")) ?? [];
    const { PRIORITY_BELOW_NORMAL: low } = constants.priority;
    // Who started the whole process further behind has had a reason.
    if (tid !== undefined && getPriority() < low) setPriority(Number(tid), low);
  } catch {
    // No Linux, or no /proc: nothing rests on it.
  }
}
