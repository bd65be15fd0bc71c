// One thread that runs seeds. With a mutant it first plants the mistake into the sources it is about to load.

import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import { systemDigest } from "../../drivers/system/digest.ts";
import type { ElectorFault, ElectorLimits, ElectorRunOptions, ElectorRunResult } from "../../sim/elector/index.ts";
import type { JobsFault, JobsLimits, JobsRunOptions, JobsRunResult } from "../../sim/jobs/index.ts";
import type { KnobLimits, RaftFault, RunOptions, RunResult } from "../../sim/raft/index.ts";
import { plant, type Mutant } from "../../sim/mutants/patch.ts";

/** What is simulated: a Raft cluster, electors against a server, or jobs on servers. */
export type Subject = "raft" | "elector" | "jobs";

export interface SeedJob {
  readonly seed: number;
  /** Of its subject. */
  readonly limits: KnobLimits | ElectorLimits | JobsLimits;
  readonly plan?: readonly (RaftFault | ElectorFault | JobsFault)[] | undefined;
  readonly reversed?: boolean | undefined;
}

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
const run: (job: SeedJob) => Promise<RunResult | ElectorRunResult | JobsRunResult> = await {
  raft: raftRunner,
  elector: electorRunner,
  jobs: jobsRunner,
}[subject]();

async function electorRunner(): Promise<(job: SeedJob) => Promise<ElectorRunResult>> {
  const { runElectorSeed } = await import("../../sim/elector/index.ts");
  return (job) => runElectorSeed(job as ElectorRunOptions);
}

async function jobsRunner(): Promise<(job: SeedJob) => Promise<JobsRunResult>> {
  const { runJobsSeed } = await import("../../sim/jobs/index.ts");
  return (job) => runJobsSeed({ ...job, digest: systemDigest } as JobsRunOptions);
}

async function raftRunner(): Promise<(job: SeedJob) => Promise<RunResult>> {
  const { runSeed } = await import("../../sim/raft/index.ts");
  return (job) => runSeed({ ...job, digest: systemDigest } as RunOptions);
}

// An invariant that breaks inside a promise of the code under test would end its process: it is a finding of this seed.
let unhandled: string | null = null;
process.on("unhandledRejection", (error) => {
  unhandled ??= `n0: ${String(error instanceof Error ? error.stack : error)}`;
});

parentPort!.on("message", (job: SeedJob) => {
  unhandled = null;
  void run(job).then((result) => parentPort!.postMessage({ ...result, violation: result.violation ?? unhandled }));
});
