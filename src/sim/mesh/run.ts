// One run of the mesh: five sites, one of them of three nodes, clients and agents, a plan of faults and perhaps a liar, all from one seed.
// First safety, while the faults last; then the faults are over, and within a bound every site has the same, and then there is silence.

import { seededRandom } from "../../core/kit/random.ts";
import type { Digest } from "../../ports/digest.ts";
import { noEffect, playScene, type SeedOptions, type SeedResult } from "../kernel/index.ts";
import { drawMeshKnobs, type MeshKnobs, type MeshLimits } from "./knobs.ts";
import { applyMeshFault, drawMeshPlan, type MeshFault } from "./plan.ts";
import type { MeshProbe } from "./probes.ts";
import { MeshStage } from "./stage.ts";

const STEPS_MAX = 3_000_000;

export interface MeshRunOptions extends SeedOptions<MeshLimits, MeshFault> {
  readonly digest: Digest;
}

export interface MeshRunResult extends SeedResult<MeshKnobs, MeshFault, MeshProbe> {
  readonly events: number;
  /** Cuts between sites that met a message. */
  readonly partitions: number;
  /** From the last fault until all sites had the same; null: they never had. */
  readonly convergenceMs: number | null;
  readonly forks: { readonly planted: number; readonly found: number; readonly false: number };
}

export async function runMeshSeed(options: MeshRunOptions): Promise<MeshRunResult> {
  const seed = `mesh/${options.seed}`;
  const random = seededRandom(seed);
  const knobs = drawMeshKnobs(random.fork("knobs"), options.limits);
  const stage = new MeshStage({ ...options, seed, knobs });
  const { world, ledger, probes } = stage;
  const result = await playScene<MeshKnobs, MeshFault, MeshProbe>({
    seed: options.seed,
    world,
    knobs,
    plan: options.plan ?? drawMeshPlan(random.fork("plan"), stage, knobs),
    probes,
    strike: (fault, hit) => applyMeshFault(stage, fault, hit),
    begin: () => stage.begin(),
    play: () => play(stage),
    emptiness: (faults) =>
      ledger.acknowledgedCount === 0 ? "no traffic: no site acknowledged a job" : noEffect(faults),
  });
  const cuts = ["cut-sites", "cut-sites-one-way", "isolate-site", "split-sites"];
  const partitions = cuts.reduce((sum, kind) => sum + (result.faults[kind]?.fired ?? 0), 0);
  return {
    ...result,
    events: ledger.events,
    partitions,
    convergenceMs: null,
    forks: { planted: 0, found: 0, false: 0 },
  };
}

async function play(stage: MeshStage): Promise<string | null> {
  const { world, knobs, ledger } = stage;
  await world.run(() => false, { untilMs: knobs.faultsUntilMs, stepsMax: STEPS_MAX });
  world.calm();
  stage.stopWork();
  await world.runFor(3_000);
  return world.finding() ?? ledger.lost();
}
