// Runs seeds on a few threads, as many as there are jobs, until the seeds or the time are used up.

import { Worker } from "node:worker_threads";
import type { Mutant } from "../sim/mutants/patch.ts";
import type { RunResult } from "../sim/raft/index.ts";
import type { SeedJob } from "./sim-worker.ts";

/** `next` gives the following job or undefined; `onResult` returns false to stop early. */
export async function runPool(
  jobs: number,
  mutant: Mutant | null,
  next: () => SeedJob | undefined,
  onResult: (result: RunResult) => boolean,
): Promise<void> {
  let stopped = false;
  await Promise.all(
    Array.from({ length: jobs }, async () => {
      const worker = new Worker(new URL("./sim-worker.ts", import.meta.url), { workerData: { mutant } });
      try {
        for (;;) {
          const job = stopped ? undefined : next();
          if (job === undefined) return;
          if (!onResult(await runOne(worker, job))) stopped = true;
        }
      } finally {
        await worker.terminate();
      }
    }),
  );
}

function runOne(worker: Worker, job: SeedJob): Promise<RunResult> {
  return new Promise((resolve, reject) => {
    worker.removeAllListeners();
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.postMessage(job);
  });
}
