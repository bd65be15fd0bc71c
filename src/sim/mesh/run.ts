// One run of the mesh: five sites, one of them of three nodes, clients and agents, a plan of faults and perhaps a liar, all from one seed.
// First safety, while the faults last; then the faults are over, and within a bound every site has the same, and then there is silence.

import { seededRandom } from "../../core/kit/random.ts";
import type { Digest } from "../../ports/digest.ts";
import { noEffect, playScene, type SeedOptions, type SeedResult } from "../kernel/index.ts";
import { drawMeshKnobs, type MeshKnobs, type MeshLimits } from "./knobs.ts";
import { converge, type Ended, isFrozen } from "./end.ts";
import { applyMeshFault, drawMeshPlan, type MeshFault } from "./plan.ts";
import { type MeshProbe, reached } from "./probes.ts";
import { MeshStage } from "./stage.ts";
import { MESH_STEPS_MAX } from "./limits.ts";

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
  let convergenceMs: number | null = null;
  const result = await playScene<MeshKnobs, MeshFault, MeshProbe>({
    seed: options.seed,
    world,
    knobs,
    plan: options.plan ?? drawMeshPlan(random.fork("plan"), stage, knobs),
    probes,
    strike: (fault, hit) => applyMeshFault(stage, fault, hit),
    begin: () => stage.begin(),
    play: async () => {
      const ended = await play(stage);
      convergenceMs = ended.convergenceMs;
      return ended.violation;
    },
    emptiness: (faults) => {
      if (ledger.acknowledgedCount === 0) return "no traffic: no site acknowledged a job";
      return stage.wires.pages === 0 ? "no traffic: no page was sent" : noEffect(faults);
    },
  });
  const cuts = ["cut-sites", "cut-sites-one-way", "isolate-site", "split-sites"];
  const partitions = cuts.reduce((sum, kind) => sum + (result.faults[kind]?.fired ?? 0), 0);
  const { lie } = knobs;
  const lies = lie === null ? {} : { [`lie-${lie}`]: { scheduled: 1, fired: Math.sign(stage.liar?.told ?? 0) } };
  return {
    ...result,
    faults: { ...result.faults, ...lies },
    events: ledger.events,
    partitions,
    convergenceMs,
    forks: forksOf(stage),
  };
}

async function play(stage: MeshStage): Promise<Ended> {
  const { world, knobs } = stage;
  await world.run(() => false, { untilMs: knobs.faultsUntilMs, stepsMax: MESH_STEPS_MAX });
  if (world.finding() !== null) return { violation: world.finding(), convergenceMs: null };
  stage.calm();
  return converge(stage);
}

function forksOf(stage: MeshStage): MeshRunResult["forks"] {
  const { liar, honest, sites } = stage;
  const frozenAt = (id: string): number => {
    const lines = stage.linesOf(id);
    const servers = honest.flatMap((site) => site.names.flatMap((name) => site.server(name) ?? []));
    return servers.filter((server) => lines.some((line) => isFrozen(server, line))).length;
  };
  const forker = liar !== null && liar.second !== null ? liar.site : null;
  const planted = forker === null ? 0 : 1;
  const isFound = forker !== null && frozenAt(forker) > 0;
  if (isFound) reached(stage.probes, "fork-frozen");
  return { planted, found: isFound ? 1 : 0, false: sites.filter(({ id }) => id !== forker && frozenAt(id) > 0).length };
}
