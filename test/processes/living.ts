// Whether a process runs: one that is dead and not reaped does not.

import { readFileSync } from "node:fs";

export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // Its name may hold anything.
    return !/^\) [ZX] /.test(stat.slice(stat.lastIndexOf(") ")));
  } catch {
    return false;
  }
}
