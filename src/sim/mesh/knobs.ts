// What one seed decides about a run of the mesh before it begins: who dials whom, weather, clocks, how hard clients push, and who lies.

import type { Random } from "../../core/kit/random.ts";
import type { DiskModel, LinkModel } from "../kernel/index.ts";
import type { MeshFault } from "./plan.ts";
import type { Weather } from "./transport.ts";

export const SITES = ["a", "b", "c", "d", "e"] as const;
/** As the specification has it: clocks of sites may be off by minutes, and nothing but alerts depends on it. */
const SKEW_MS_MAX = 600_000;

const RESTORING_S = 3;
type Range = readonly [number, number];
/** By then a site has met others, and goes on afterwards. */
const COPIED: readonly [Range, Range] = [
  [600, 4_000],
  [300, 3_000],
];
/** The copy knows nobody, and the site has met others before it is started from that. */
const COPIED_BEFORE_MEETING: readonly [Range, Range] = [
  [300, 900],
  [3_000, 6_000],
];

/** Who has whom as parents. */
const TOPOLOGIES = {
  star: { b: ["a"], c: ["a"], d: ["a"], e: ["a"] },
  chain: { b: ["a"], c: ["b"], d: ["c"], e: ["d"] },
  tree: { b: ["a"], c: ["a"], d: ["b"], e: ["b"] },
  ring: { b: ["a"], c: ["b"], d: ["c"], e: ["d", "a"] },
  twins: { b: ["a"], c: ["a", "b"], d: ["a", "b"], e: ["a", "b"] },
  full: { b: ["a"], c: ["a", "b"], d: ["a", "b", "c"], e: ["a", "b", "c", "d"] },
} as const satisfies Record<string, Readonly<Record<string, readonly string[]>>>;
export type Topology = keyof typeof TOPOLOGIES;
/** No site joins two others alone: with a liar in it, the honest sites still reach each other. */
const ROBUST: readonly Topology[] = ["ring", "twins", "full"];
/** And most lines pass a relay, which may change them. */
const RELAYING: readonly Topology[] = ["ring", "ring", "twins"];

/**
 * What one site does wrong. `fork`: it signs two histories. The others relay foreign pages and change them: bytes, items left out, events
 * turned into stubs, pages of long ago once more, notes that its own key has signed. `slander`: it says in its own line that another one is forked, with
 * evidence that proves nothing.
 */
export type Lie = "fork" | "slander" | "change" | "drop" | "stub" | "replay" | "foreign-key";
const LIES: readonly Lie[] = ["fork", "fork", "slander", "change", "drop", "stub", "replay", "foreign-key"];

export type MeshKnobs = Readonly<ReturnType<typeof drawAll>>;

export interface MeshLimits {
  /** What the seed does not decide. */
  readonly pins?: Partial<MeshKnobs> | undefined;
}

export function drawMeshKnobs(random: Random, { pins }: MeshLimits = {}): MeshKnobs {
  const knobs = { ...drawAll(random), ...pins };
  // An operator who evicts the liar would end what the run is about.
  const isPlain = knobs.lie === null;
  // Where all of a site's events pass another one, whoever is evicted there is cut off from the rest: also where the topology is pinned.
  const evicts = knobs.evicts && isPlain && topologiesFor(null, true).includes(knobs.topology);
  return { ...knobs, evicts, restores: knobs.restores && isPlain && !knobs.evicts };
}

export function parentsOf(topology: Topology, site: string): readonly string[] {
  const parents: Readonly<Record<string, readonly string[]>> = TOPOLOGIES[topology];
  return parents[site] ?? [];
}

function drawAll(random: Random) {
  const lie = random.fork("lies").chance(0.4) ? random.fork("lie").pick(LIES) : null;
  const evicts = lie === null && random.fork("evicts").chance(0.25);
  const topologies = topologiesFor(lie, evicts);
  const restores = lie === null && !evicts && random.fork("restores").chance(0.5);
  // Sites have met, and relay each other's lines, after some seconds; a site that was restored is up again after some more. Faults, lies and
  // new jobs go on longer than that.
  const seconds = random.fork("duration").between(5, 10) + (restores ? RESTORING_S : 0);
  const kinds: readonly MeshFault["kind"][] = [];
  const [copiedMs, restoredAfterMs] = random.fork("copied").chance(0.25) ? COPIED_BEFORE_MEETING : COPIED;
  return {
    topology: random.fork("topology").pick(topologies),
    /** The site that has three nodes. */
    trio: random.fork("trio").pick(SITES),
    lie,
    /** One site is evicted at another one. */
    evicts,
    /** One site is started from an old copy of its disks. */
    restores,
    /** When the copy is made, and how long after it the site is started from that. */
    copiedMs,
    restoredAfterMs,
    liar: random.fork("liar").pick(SITES),
    weather: drawWeather(random.fork("weather")),
    link: { latencyMinMs: random.fork("link").between(0.1, 3), latencyTailMs: 1 } satisfies Partial<LinkModel>,
    disk: {
      syncMs: random.fork("sync-ms").pick([
        [0.1, 1],
        [0.5, 3],
        [5, 20],
      ]),
    } satisfies Partial<DiskModel>,
    /** How far each site's wall clock is off, in the order of SITES; the nodes of a site agree. */
    skewsMs: SITES.map((site) => Math.floor(drawSkew(random.fork(`skew/${site}`)))),
    /** Of registrations: shorter than a run, or the default. */
    ttlMs: random.fork("ttl").pick([8_000, 300_000]),
    snapshotAfterEntries: random.fork("snapshot").pick([20, 60, 1_000]),
    segmentEvents: random.fork("segment-events").pick([5, 20, 60]),
    viewsDelayMs: random.fork("views-delay").pick([1, 20, 200]),
    clientPauseMs: random.fork("client-pause").pick([120, 300, 700]),
    jobsMax: random.fork("jobs").pick([6, 14, 30]),
    workMs: [5, 200] as const,
    historyLies: false,
    historyFetchMs: 10,
    faults: 4 + random.fork("faults").below(10),
    faultsUntilMs: Math.floor(seconds * 1_000),
    /** So many faults of these kinds more. */
    aims: kinds,
  };
}

function topologiesFor(lie: Lie | null, evicts: boolean): readonly Topology[] {
  if (lie === null) return evicts ? ROBUST : (Object.keys(TOPOLOGIES) as Topology[]);
  return lie === "fork" || lie === "slander" ? ROBUST : RELAYING;
}

function drawSkew(random: Random): number {
  return random.chance(0.4) ? random.between(-SKEW_MS_MAX, SKEW_MS_MAX) : random.between(-300, 300);
}

function drawWeather(random: Random): Weather {
  return {
    wayMs: random.fork("way").pick([
      [0.5, 3],
      [2, 20],
      [10, 80],
    ]),
    lossRate: random.fork("loss").pick([0, 0.02, 0.1]),
    twiceRate: random.fork("twice").pick([0, 0.05, 0.2]),
    lateRate: random.fork("late").pick([0, 0.05]),
    lateFactor: 20,
  };
}
