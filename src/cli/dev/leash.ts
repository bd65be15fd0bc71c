// Loaded into each server that `npm start` runs: when the parent is gone, by whatever way, the server goes too, and takes
// their temporary directory along. A pipe closes when its other end dies, also by kill -9; a signal would not come.

import { rmSync } from "node:fs";

const directory = process.env["TENURE_DEV_DIRECTORY"];
// The node's own processes are its supervisor's to end.
delete process.env["TENURE_DEV_DIRECTORY"];
if (directory !== undefined) {
  process.once("disconnect", () => {
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
    process.kill(process.pid, "SIGKILL");
  });
  // The listener alone would keep a server alive that has ended its work.
  process.channel?.unref();
}
