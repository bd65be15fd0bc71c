// One thread that runs seeds. With a mutant it first plants the mistake into the sources it is about to load.

import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import { systemDigest } from "../drivers/system/digest.ts";
import type { KnobLimits, RaftFault, RunResult } from "../sim/raft/index.ts";
import { plant, type Mutant } from "../sim/mutants/patch.ts";

export interface SeedJob {
  readonly seed: number;
  readonly limits: KnobLimits;
  readonly plan?: readonly RaftFault[] | undefined;
  readonly reversed?: boolean | undefined;
}

const { mutant } = workerData as { mutant: Mutant | null };
if (mutant !== null) {
  registerHooks({
    load(url, context, nextLoad) {
      const edits = mutant.edits.filter((edit) => url === new URL(`../${edit.file}`, import.meta.url).href);
      if (edits.length === 0) return nextLoad(url, context);
      const source = edits.reduce(plant, readFileSync(new URL(url), "utf8"));
      return { format: "module-typescript", source, shortCircuit: true };
    },
  });
}

// Loaded only now: a static import would come before the hooks.
const { runSeed } = await import("../sim/raft/index.ts");

parentPort!.on("message", (job: SeedJob) => {
  void runSeed({ ...job, digest: systemDigest }).then((result: RunResult) => parentPort!.postMessage(result));
});
