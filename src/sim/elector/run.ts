// One run: electors, their users, a server and a plan of faults, all from one seed. First safety, while the faults last;
// then the faults stop, and within a bound one leads, all agree who, and it stays so.

import { seededRandom } from "../../core/kit/random.ts";
import { type FaultCount, Injector, type TraceSink } from "../kernel/index.ts";
import { drawKnobs, type ElectorLimits, type Knobs } from "./knobs.ts";
import { applyElectorFault, drawPlan, type ElectorFault } from "./plan.ts";
import type { ProbeCounts } from "./probes.ts";
import { Stage } from "./stage.ts";

const STEPS_MAX = 2_000_000;
const FAULTS_FOR_AN_EFFECT = 3;
/** In server timeouts: a paused leader's habits, its timeout, a queue of sessions that nobody uses any more. */
const CONVERGE_WITHIN_TIMEOUTS = 20;
const STEADY_FOR_TIMEOUTS = 2;
/** What was under way when the faults ended, and every hold and window of that time, is over after this. */
const AFTERMATH_TIMEOUTS = 2;

export interface ElectorRunOptions {
  readonly seed: number;
  readonly limits?: ElectorLimits | undefined;
  readonly plan?: readonly ElectorFault[] | undefined;
  readonly narrate?: TraceSink | undefined;
  readonly reversed?: boolean | undefined;
}

export interface ElectorRunResult {
  readonly seed: number;
  readonly knobs: Knobs;
  readonly plan: readonly ElectorFault[];
  readonly hash: string;
  readonly simulatedMs: number;
  readonly steps: number;
  readonly terms: number;
  readonly checks: number;
  readonly writes: number;
  readonly faults: Record<string, FaultCount>;
  readonly probes: ProbeCounts;
  /** The first sentence of the contract that was not true, or null. */
  readonly violation: string | null;
}

export async function runElectorSeed(options: ElectorRunOptions): Promise<ElectorRunResult> {
  const random = seededRandom(`elector/${options.seed}`);
  const knobs = drawKnobs(random.fork("knobs"), options.limits);
  const stage = new Stage({ ...options, seed: `elector/${options.seed}`, knobs });
  const plan = options.plan ?? drawPlan(random.fork("plan"), stage.names, knobs);
  const { world, oracle } = stage;
  const injector = new Injector<ElectorFault>(world.scheduler, (fault, hit) => applyElectorFault(stage, fault, hit));
  injector.schedule(plan);
  world.startAll();

  let violation: string | null = null;
  try {
    await world.run(() => false, { untilMs: knobs.faultsUntilMs, stepsMax: STEPS_MAX });
    violation = finding(stage);
    if (violation === null) {
      stage.calmDown();
      const trouble = await converge(stage);
      violation = finding(stage) ?? trouble;
    }
  } catch (error) {
    violation = `the simulation itself failed: ${String(error instanceof Error ? error.stack : error)}`;
  }
  violation ??= emptiness(stage, injector, plan);
  return {
    seed: options.seed,
    knobs,
    plan,
    hash: world.hash(),
    simulatedMs: world.nowMs,
    steps: world.scheduler.steps,
    terms: oracle.grants,
    checks: oracle.checks,
    writes: oracle.writes,
    faults: injector.counts,
    probes: oracle.probes,
    violation,
  };
}

/** A run in which nothing happened proves nothing, and fails (trap 33). */
function emptiness({ oracle }: Stage, injector: Injector<ElectorFault>, plan: readonly ElectorFault[]): string | null {
  if (oracle.checks === 0) return "no traffic: not one effect passed a gate";
  const fired = Object.values(injector.counts).reduce((sum, { fired: some }) => sum + some, 0);
  return plan.length >= FAULTS_FOR_AN_EFFECT && fired === 0
    ? `no faults: of ${plan.length} that were scheduled, none had an effect`
    : null;
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

function finding({ world }: Stage): string | null {
  const first = world.findings[0];
  if (first === undefined) return null;
  const text = first.error instanceof Error ? (first.error.stack ?? first.error.message) : String(first.error);
  return `${first.node} at ${first.atMs.toFixed(3)} ms: ${text}`;
}
