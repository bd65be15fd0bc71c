// One run: coordinators, their disks, clocks and links, and a plan of faults, all from one seed. While the faults last the rules of every step are
// checked, after every event; then the faults end, and within a bound one leads, all vote, all show the same registry, and nothing is sent any
// more but renewals and announcements.

import { seededRandom } from "../../core/kit/random.ts";
import type { Digest } from "../../ports/digest.ts";
import { noEffect, playScene, type SeedOptions, type SeedResult } from "../kernel/index.ts";
import { drawKnobs, type TcKnobs, type TcLimits } from "./knobs.ts";
import { TC_CONVERGE_MS, TC_STEADY_MS, TC_STEPS_MAX, TC_UNDER_WAY_MS } from "./limits.ts";
import { drawPlan, type TcFault } from "./plan.ts";
import type { Probe } from "./probes.ts";
import { Stage } from "./stage.ts";
import { applyTcFault, loseLeases } from "./strike.ts";

/** What is sent when nothing happens. */
const SILENT_KINDS = new Set(["renew", "announce"]);

export interface TcRunOptions extends SeedOptions<TcLimits, TcFault> {
  readonly digest: Digest;
}

export interface TcRunResult extends SeedResult<TcKnobs, TcFault, Probe> {
  readonly elections: number;
  readonly rosters: number;
  readonly writes: number;
}

export async function runTcSeed(options: TcRunOptions): Promise<TcRunResult> {
  const seed = `tc/${options.seed}`;
  const random = seededRandom(seed);
  const knobs = drawKnobs(random.fork("knobs"), options.limits);
  const { narrate, reversed, digest } = options;
  const stage = new Stage({ seed, knobs, narrate, reversed, digest });
  const { world, oracle } = stage;
  const result = await playScene<TcKnobs, TcFault, Probe>({
    seed: options.seed,
    world,
    knobs,
    plan: options.plan ?? drawPlan(random.fork("plan"), stage.names, knobs),
    probes: oracle.probes,
    strike: (fault, hit) => applyTcFault(stage, fault, hit),
    begin: () => stage.writers.begin(random.fork("writers")),
    play: async () => {
      await watched(stage, () => false, knobs.faultsUntilMs);
      const found = world.finding();
      if (found !== null) return found;
      stage.calmDown();
      const trouble = (await converge(stage)) ?? (knobs.aim === "places" ? await exodus(stage) : null);
      return world.finding() ?? trouble;
    },
    emptiness: (faults) => (oracle.winners.size === 0 ? "no traffic: nobody was elected" : noEffect(faults)),
  });
  return { ...result, elections: oracle.winners.size, rosters: oracle.rosters.size, writes: stage.writers.writes };
}

/** The oracle looks after every event. */
function watched({ world, oracle }: Stage, isEnd: () => boolean, untilMs: number): Promise<string> {
  const look = (): boolean => {
    oracle.check();
    return isEnd();
  };
  return world.run(look, { untilMs, stepsMax: TC_STEPS_MAX });
}

/** Liveness. */
async function agreed(stage: Stage, since: string): Promise<string | null> {
  const { world } = stage;
  const end = await watched(stage, () => stage.disagreement() === null, world.nowMs + TC_CONVERGE_MS);
  if (world.findings.length > 0 || end === "predicate") return null;
  return `no agreement within ${TC_CONVERGE_MS} ms after ${since}: ${stage.disagreement()}`;
}

/** Each node in turn takes another address; then all are started again, without membership leases and with seeds of which none is right. */
async function exodus(stage: Stage): Promise<string | null> {
  const { names, operator, world } = stage;
  for (const name of names) {
    operator.move(name, undefined, 100);
    const trouble = await agreed(stage, `${name} has moved`);
    if (trouble !== null || world.findings.length > 0) return trouble;
  }
  loseLeases(stage, 100, () => {});
  return agreed(stage, "all have moved, and were started again");
}

/** Liveness, and silence. */
async function converge(stage: Stage): Promise<string | null> {
  const { world, oracle, writers } = stage;
  const trouble = await agreed(stage, "the last fault");
  if (trouble !== null || world.findings.length > 0) return trouble;
  const wrong = writers.difference();
  if (wrong !== null) return `the registry is wrong: ${wrong}`;
  // What was under way when they agreed: an endpoint that was left is taken out of the registry at the next look.
  await watched(stage, () => false, world.nowMs + TC_UNDER_WAY_MS);
  const before = new Map(stage.sent);
  const { size } = oracle.winners;
  await watched(stage, () => false, world.nowMs + TC_STEADY_MS);
  if (oracle.winners.size !== size) return "leadership changed although nothing went wrong any more";
  const different = stage.disagreement();
  if (different !== null) return `agreement did not last: ${different}`;
  const loud = [...stage.sent].find(([kind, count]) => !SILENT_KINDS.has(kind) && count !== (before.get(kind) ?? 0));
  return loud === undefined ? null : `${loud[0]} is sent although nothing changes any more`;
}
