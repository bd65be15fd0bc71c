// Preloaded into processes of tests (`node --import`): the process kills itself with SIGKILL before the disk call with the number
// KILL_AT_DISK_CALL, of those that change a directory or make it durable. What it had written stays, as after a kill of an
// operator's own.

import { systemIo } from "../../src/drivers/disk/io.ts";

const at = Number(process.env["KILL_AT_DISK_CALL"] ?? Infinity);
let calls = 0;

for (const name of ["rename", "remove", "fdatasync", "fsync"] as const) {
  const inner = systemIo[name] as (...args: unknown[]) => Promise<unknown>;
  const counted = (...args: unknown[]): Promise<unknown> => {
    if (++calls === at) process.kill(process.pid, "SIGKILL");
    return inner(...args);
  };
  Object.assign(systemIo, { [name]: counted });
}
