// Whether a process is stopped, as the system says (Linux); elsewhere a signal that was sent must do.

import { readFileSync } from "node:fs";

export function isStopped(pid: number | undefined): boolean {
  if (process.platform !== "linux" || pid === undefined) return true;
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
}
