// Runs the table of attacks on code with one planted mistake, in a thread of its own, and reports the names of those that succeed.

import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { type Edit, plant } from "../../src/sim/mutants/patch.ts";

const { edits } = workerData as { readonly edits: readonly Edit[] };
registerHooks({
  load(url, context, nextLoad) {
    const here = edits.filter((edit) => url === new URL(`../../src/${edit.file}`, import.meta.url).href);
    if (here.length === 0) return nextLoad(url, context);
    const source = here.reduce(plant, readFileSync(new URL(url), "utf8"));
    return { format: "module-typescript", source, shortCircuit: true };
  },
});

// Loaded only now: a static import would come before the hooks.
const { ATTACKS } = await import("../../src/core/mesh/proof/test-attacks.ts");
const successes: string[] = [];
for (const { name, run } of ATTACKS) {
  try {
    run(systemDigest);
  } catch {
    successes.push(name);
  }
}
parentPort?.postMessage(successes);
