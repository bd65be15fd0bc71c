// One thread that runs seeds. With a mutant it first plants the mistake into the sources it is about to load.

import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { setFlagsFromString } from "node:v8";
import { parentPort, workerData } from "node:worker_threads";
import { plant, type Mutant } from "../../sim/mutants/patch.ts";
import { type SeedJob, SIMULATORS, type Subject } from "./simulators.ts";

// Whole servers are much code, each part of it seldom run: compiled at once, a seed takes a tenth less.
setFlagsFromString("--always-sparkplug");

const { mutant, subject } = workerData as { mutant: Mutant | null; subject: Subject };
if (mutant !== null) {
  registerHooks({
    load(url, context, nextLoad) {
      const edits = mutant.edits.filter((edit) => url === new URL(`../../${edit.file}`, import.meta.url).href);
      if (edits.length === 0) return nextLoad(url, context);
      const source = edits.reduce(plant, readFileSync(new URL(url), "utf8"));
      return { format: "module-typescript", source, shortCircuit: true };
    },
  });
}

// Loaded only now: a static import would come before the hooks.
const sim = await SIMULATORS[subject].load();

// An invariant that breaks inside a promise of the code under test would end its process: it is a finding of this seed.
let unhandled: string | null = null;
process.on("unhandledRejection", (error) => {
  unhandled ??= `n0: ${String(error instanceof Error ? error.stack : error)}`;
});

parentPort!.on("message", (job: SeedJob) => {
  unhandled = null;
  void sim.run(job).then((result) => parentPort!.postMessage({ ...result, violation: result.violation ?? unhandled }));
});
