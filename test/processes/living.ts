// Whether a process runs: one that is dead and not reaped does not.

import { readFileSync } from "node:fs";

export function isAlive(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}
