// The frame of one run, whatever is simulated: a world and a plan of faults from one seed. First safety is watched, while the faults
// last; then they are over, and what must become true within a bound is awaited. How, each simulation says by its `play`.

import { Injector, type FaultCount, type Planned } from "./injector.ts";
import type { ProbeCounts } from "./probes.ts";
import type { TraceSink } from "./scheduler.ts";
import type { World } from "./world.ts";

/** Fewer than this may all have met a node that was just dead. */
const FAULTS_FOR_AN_EFFECT = 3;

export interface SeedOptions<Limits, F> {
  readonly seed: number;
  readonly limits?: Limits | undefined;
  /** Replaces the plan that the seed draws: for shrinking. */
  readonly plan?: readonly F[] | undefined;
  readonly narrate?: TraceSink | undefined;
  /** The order in which nodes are handed to the world: nothing may depend on it. */
  readonly reversed?: boolean | undefined;
}

export interface SeedResult<Knobs = unknown, F = Planned, Probe extends string = string> {
  readonly seed: number;
  readonly knobs: Knobs;
  readonly plan: readonly F[];
  readonly hash: string;
  readonly simulatedMs: number;
  readonly steps: number;
  readonly faults: Record<string, FaultCount>;
  readonly probes: ProbeCounts<Probe>;
  /** The first sentence of the contract that was not true, or null. */
  readonly violation: string | null;
}

export interface Scene<Knobs, F, Probe extends string> {
  readonly seed: number;
  readonly world: World;
  readonly knobs: Knobs;
  readonly plan: readonly F[];
  readonly probes: ProbeCounts<Probe>;
  readonly strike: (fault: F, hit: () => void) => void;
  /** When all nodes are about to start: whoever is outside of them. */
  readonly begin?: (() => void) | undefined;
  /** Until the end; with what was wrong, or null. */
  readonly play: () => Promise<string | null>;
  /** Of a run in which nothing was wrong: why it proves nothing (trap 33), or null. */
  readonly emptiness: (faults: Record<string, FaultCount>) => string | null;
}

export async function playScene<Knobs, F extends Planned, Probe extends string>(
  scene: Scene<Knobs, F, Probe>,
): Promise<SeedResult<Knobs, F, Probe>> {
  const { seed, world, knobs, plan, probes } = scene;
  const injector = new Injector<F>(world.scheduler, scene.strike);
  injector.schedule(plan);
  world.startAll();
  scene.begin?.();
  let violation: string | null;
  try {
    violation = await scene.play();
  } catch (error) {
    violation = `the simulation itself failed: ${String(error instanceof Error ? error.stack : error)}`;
  }
  const faults = injector.counts;
  violation ??= scene.emptiness(faults);
  const { nowMs: simulatedMs, scheduler } = world;
  return { seed, knobs, plan, hash: world.hash(), simulatedMs, steps: scheduler.steps, faults, probes, violation };
}

/** Null: a fault had an effect, or there were too few to expect one. */
export function noEffect(faults: Record<string, FaultCount>): string | null {
  const counts = Object.values(faults);
  const scheduled = counts.reduce((sum, one) => sum + one.scheduled, 0);
  const isInVain = scheduled >= FAULTS_FOR_AN_EFFECT && counts.every(({ fired }) => fired === 0);
  return isInVain ? `no faults: of ${scheduled} that were scheduled, none had an effect` : null;
}
