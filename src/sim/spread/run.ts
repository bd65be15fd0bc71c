// One run: sites, their lines, their links and a plan of faults, all from one seed. While the faults last the rules of every step are
// checked; then the faults end, and within ten seconds every site has every event and nothing is sent any more. In the calm after that each
// line is a tree: every event travels once to every site, at the speed of the links.

import { seededRandom } from "../../core/kit/random.ts";
import { noEffect, playScene, type SeedOptions, type SeedResult } from "../kernel/index.ts";
import { drawKnobs, type SpreadKnobs, type SpreadLimits } from "./knobs.ts";
import {
  CALM_EVENT_EVERY_MS,
  CROWD_HOPS_MAX,
  CROWD_SENDS_PER_SITE_MAX,
  MEASURED_EVENTS,
  SETTLING_EVENTS,
  SILENT_WITHIN_MS,
  SPREAD_STEPS_MAX,
  WATCHED_FOR_MS,
} from "./limits.ts";
import { applySpreadFault, drawPlan, type SpreadFault } from "./plan.ts";
import type { Probe } from "./probes.ts";
import { Stage } from "./stage.ts";

export type SpreadRunOptions = SeedOptions<SpreadLimits, SpreadFault>;

/** Of a crowd. */
export interface CrowdFigures {
  readonly sites: number;
  /** How often an event was sent, for each site that it has to reach. */
  readonly sendsPerSite: number;
  readonly hopsMax: number;
  readonly latencyP50Ms: number;
  readonly latencyP99Ms: number;
}

export interface SpreadRunResult extends SeedResult<SpreadKnobs, SpreadFault, Probe> {
  readonly events: number;
  readonly deliveries: number;
  readonly sends: number;
  readonly crowd: CrowdFigures | null;
}

export async function runSpreadSeed(options: SpreadRunOptions): Promise<SpreadRunResult> {
  const seed = `spread/${options.seed}`;
  const random = seededRandom(seed);
  const knobs = drawKnobs(random.fork("knobs"), options.limits);
  const { narrate, reversed } = options;
  const stage = new Stage({ seed, knobs, random: random.fork("stage"), narrate, reversed });
  const { world, oracle } = stage;
  const result = await playScene<SpreadKnobs, SpreadFault, Probe>({
    seed: options.seed,
    world,
    knobs,
    plan: options.plan ?? drawPlan(random.fork("plan"), stage),
    probes: oracle.probes,
    strike: (fault, hit) => applySpreadFault(stage, fault, hit),
    begin: () => stage.begin(),
    play: async () => {
      await world.run(() => false, { untilMs: knobs.faultsUntilMs, stepsMax: SPREAD_STEPS_MAX });
      const trouble = world.finding() ?? (await recover(stage));
      if (trouble !== null) return trouble;
      return knobs.crowd ? tooMuch(figuresOf(stage)) : calm(stage);
    },
    emptiness: (faults) => (oracle.latenciesMs.length === 0 ? "no traffic: nothing was delivered" : noEffect(faults)),
  });
  const { events, latenciesMs, sends } = oracle;
  const crowd = knobs.crowd ? figuresOf(stage) : null;
  return { ...result, events, deliveries: latenciesMs.length, sends, crowd };
}

/** The faults are over. */
async function recover(stage: Stage): Promise<string | null> {
  const { world, oracle, sites } = stage;
  stage.calmDown();
  await world.runFor(SILENT_WITHIN_MS);
  const missing = world.finding() ?? oracle.missing(sites);
  if (missing !== null) return `${SILENT_WITHIN_MS} ms after the last fault: ${missing}`;
  const silentFromMs = world.nowMs;
  await world.runFor(WATCHED_FOR_MS);
  if (oracle.lastSendMs > silentFromMs) return "pages are sent although every site has everything";
  if (oracle.lastRequestMs > silentFromMs) return "sites ask for more although every site has everything";
  return world.finding() ?? oracle.disagreement(sites);
}

/** Nothing goes wrong any more: the lines' trees settle, and stay. */
async function calm(stage: Stage): Promise<string | null> {
  for (let at = 0; at < SETTLING_EVENTS; at++) await writeOnce(stage);
  const { world, oracle, sites, edges } = stage;
  const wrong = world.finding() ?? oracle.disagreement(sites) ?? oracle.loop(sites) ?? oracle.detour(sites, edges);
  if (wrong !== null) return `in the calm: ${wrong}`;
  const { latencyMaxMs, applyMs } = stage.knobs;
  // As far as a tree of so many sites can be deep; far less than waiting for heads takes.
  const withinMs = sites.length * (1.2 * latencyMaxMs + applyMs);
  for (let at = 0; at < MEASURED_EVENTS; at++) {
    const { sends, latenciesMs } = oracle;
    const { length } = latenciesMs;
    const events = await writeOnce(stage);
    const slowestMs = Math.max(...latenciesMs.slice(length));
    if (oracle.sends - sends !== events * (sites.length - 1))
      return `in the calm ${events} events were sent ${oracle.sends - sends} times to ${sites.length - 1} sites`;
    if (slowestMs > withinMs) return `in the calm an event took ${slowestMs} ms, the links allow ${withinMs}`;
  }
  return world.finding() ?? oracle.missing(sites);
}

/** An event of each writer, and time for it to travel. How many that were. */
async function writeOnce({ world, sites }: Stage): Promise<number> {
  const writers = sites.filter(({ own }) => own !== null);
  for (const site of writers) site.write();
  await world.runFor(CALM_EVENT_EVERY_MS);
  return writers.length;
}

function figuresOf({ oracle, sites }: Stage): CrowdFigures {
  const sorted = oracle.latenciesMs.toSorted((a, b) => a - b);
  const at = (share: number): number => Number((sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1));
  return {
    sites: sites.length,
    sendsPerSite: Number((oracle.sends / oracle.events / sites.length).toFixed(4)),
    hopsMax: oracle.hopsMax,
    latencyP50Ms: at(0.5),
    latencyP99Ms: at(0.99),
  };
}

function tooMuch({ sendsPerSite, hopsMax }: CrowdFigures): string | null {
  if (sendsPerSite > CROWD_SENDS_PER_SITE_MAX) return `an event was sent ${sendsPerSite} times for each site`;
  if (hopsMax > CROWD_HOPS_MAX) return `an event took ${hopsMax} hops`;
  return null;
}
