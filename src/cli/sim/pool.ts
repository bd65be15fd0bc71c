// Runs seeds on a few threads until the seeds or the time are used up, or a signal
// comes; and tells one kind of violation from another.

import { Worker } from "node:worker_threads";
import type { Mutant } from "../../sim/mutants/patch.ts";
import { SAME_SIGNAL_MS, SIM_YOUNG_MB_MAX } from "../limits.ts";
import type { Results, SeedJob, Subject } from "./simulators.ts";

const SIGNAL_EXITS = { SIGINT: 130, SIGTERM: 143 } as const;

export interface Interruption {
  /** What the process ends with, once a signal has come. */
  exitCode: number | null;
}

/** The first signal asks to come to an end; the second ends the process. */
export function onInterruption(): Interruption {
  const interruption: Interruption = { exitCode: null };
  let firstAtMs = 0;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (interruption.exitCode === null) {
        firstAtMs = performance.now();
        interruption.exitCode = SIGNAL_EXITS[signal];
        console.error(`${signal}: the running seeds end, then the summary comes; a second one ends at once`);
      } else if (performance.now() - firstAtMs > SAME_SIGNAL_MS) {
        process.exit(SIGNAL_EXITS[signal]);
      }
    });
  }
  return interruption;
}

/** The sentence that was not true, without who, when and how many; null when a run merely proved nothing. */
export function kindOfViolation(violation: string | null): string | null {
  if (violation === null || /^no (traffic|faults):/.test(violation)) return null;
  return firstLine(violation)
    .replaceAll(/\bn\d+(@\w+)?\b/g, "NODE")
    .replaceAll(/\d+(\.\d+)?/g, "#");
}

export function firstLine(violation: string): string {
  return violation.split("\n")[0]!;
}

/** `next` gives the following job or undefined; `onResult` returns false to stop early. */
export async function runPool<S extends Subject = "raft">(
  threads: number,
  mutant: Mutant | null,
  next: () => SeedJob | undefined,
  onResult: (result: Results[S]) => boolean,
  subject?: S,
): Promise<void> {
  let stopped = false;
  await Promise.all(
    Array.from({ length: threads }, async () => {
      const worker = new Worker(new URL("./worker.ts", import.meta.url), {
        workerData: { mutant, subject: subject ?? "raft" },
        resourceLimits: { maxYoungGenerationSizeMb: SIM_YOUNG_MB_MAX },
      });
      try {
        for (;;) {
          const job = stopped ? undefined : next();
          if (job === undefined) return;
          if (!onResult((await runOne(worker, job)) as Results[S])) stopped = true;
        }
      } finally {
        await worker.terminate();
      }
    }),
  );
}

function runOne(worker: Worker, job: SeedJob): Promise<unknown> {
  return new Promise((resolve, reject) => {
    worker.removeAllListeners();
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.postMessage(job);
  });
}
