// One run: electors, their users, a server and a plan of faults, all from one seed. First safety, while the faults last;
// then the faults stop, and within a bound one leads, all agree who, and it stays so.

import { seededRandom } from "../../core/kit/random.ts";
import { noEffect, playScene, type SeedOptions, type SeedResult } from "../kernel/index.ts";
import { drawKnobs, type ElectorLimits, type Knobs } from "./knobs.ts";
import { applyElectorFault, drawPlan, type ElectorFault } from "./plan.ts";
import type { Probe } from "./probes.ts";
import { Stage } from "./stage.ts";

const STEPS_MAX = 2_000_000;
/** In server timeouts: a paused leader's habits, its timeout, a queue of sessions that nobody uses any more. */
const CONVERGE_WITHIN_TIMEOUTS = 20;
const STEADY_FOR_TIMEOUTS = 2;
/** What was under way when the faults ended, and every hold and window of that time, is over after this. */
const AFTERMATH_TIMEOUTS = 2;

export type ElectorRunOptions = SeedOptions<ElectorLimits, ElectorFault>;

export interface ElectorRunResult extends SeedResult<Knobs, ElectorFault, Probe> {
  readonly terms: number;
  readonly checks: number;
  readonly writes: number;
}

export async function runElectorSeed(options: ElectorRunOptions): Promise<ElectorRunResult> {
  const random = seededRandom(`elector/${options.seed}`);
  const knobs = drawKnobs(random.fork("knobs"), options.limits);
  const stage = new Stage({ ...options, seed: `elector/${options.seed}`, knobs });
  const { world, oracle } = stage;
  const result = await playScene<Knobs, ElectorFault, Probe>({
    seed: options.seed,
    world,
    knobs,
    plan: options.plan ?? drawPlan(random.fork("plan"), stage.names, knobs),
    probes: oracle.probes,
    strike: (fault, hit) => applyElectorFault(stage, fault, hit),
    play: async () => {
      await world.run(() => false, { untilMs: knobs.faultsUntilMs, stepsMax: STEPS_MAX });
      const found = world.finding();
      if (found !== null) return found;
      stage.calmDown();
      const trouble = await converge(stage);
      return world.finding() ?? trouble;
    },
    emptiness: (faults) => (oracle.checks === 0 ? "no traffic: not one effect passed a gate" : noEffect(faults)),
  });
  return { ...result, terms: oracle.grants, checks: oracle.checks, writes: oracle.writes };
}

/** Liveness: one leads, all know who, and without faults nothing changes any more. */
async function converge(stage: Stage): Promise<string | null> {
  const { world, oracle, knobs } = stage;
  const { serverTimeoutMs } = knobs.timing;
  const withinMs = CONVERGE_WITHIN_TIMEOUTS * serverTimeoutMs;
  await world.run(world.nowMs + AFTERMATH_TIMEOUTS * serverTimeoutMs);
  const end = await world.run(() => stage.disagreement() === null, {
    untilMs: world.nowMs + withinMs,
    stepsMax: STEPS_MAX,
  });
  if (end !== "predicate") return `no agreement within ${withinMs} ms after the last fault: ${stage.disagreement()}`;
  const { grants } = oracle;
  const suspended = oracle.probes["suspended"] ?? 0;
  await world.run(world.nowMs + STEADY_FOR_TIMEOUTS * serverTimeoutMs);
  if (oracle.grants !== grants) return "leadership changed although nothing went wrong any more";
  if ((oracle.probes["suspended"] ?? 0) !== suspended) return "a gate closed although nothing went wrong any more";
  const different = stage.disagreement();
  return different === null ? null : `agreement did not last: ${different}`;
}
