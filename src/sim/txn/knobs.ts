// What one seed decides about a run of transactions before it begins: islands, clocks, weather, how hard clients push, and who they are.

import type { Random } from "../../core/kit/random.ts";
import type { DiskModel, LinkModel } from "../kernel/index.ts";
import type { TxnFault } from "./plan.ts";
import type { Weather } from "./transport.ts";
import { TXN_RATE_MIN, TXN_RATE_MAX, TXN_SIM_DRIFT_MS } from "./limits.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** How many nodes each island has. */
const SIZES: readonly (readonly number[])[] = [
  [1, 1, 1],
  [1, 1, 1],
  [3, 1],
  [3, 1],
  [3, 1, 1],
  [1, 1],
  [3, 3],
];

/**
 * Of wall clocks. `near`: ahead by minutes at most; back by less than what is taken, before single nodes jump. `hours`: islands are ahead of their clients. `days`: an island may be so far off that it takes no
 * transaction.
 */
export type Skews = "near" | "hours" | "days";

/** What a run is aimed at, besides what it draws anyway. */
export type TxnAim = "none" | "coordinators" | "recovery" | "islands" | "links" | "late" | "clocks";

export type TxnKnobs = Readonly<ReturnType<typeof drawAll>>;

export interface TxnLimits {
  /** What the seed does not decide. */
  readonly pins?: Partial<TxnKnobs> | undefined;
}

export function drawTxnKnobs(random: Random, { pins }: TxnLimits = {}): TxnKnobs {
  return { ...drawAll(random, pins), ...pins };
}

export function islandIds({ sizes }: Pick<TxnKnobs, "sizes">): readonly string[] {
  return sizes.map((_, at) => "abc"[at]!);
}

export function nodesOf(island: string, { sizes }: Pick<TxnKnobs, "sizes">): readonly string[] {
  return Array.from({ length: sizes["abc".indexOf(island)] ?? 0 }, (_, at) => `${island}-n${at + 1}`);
}

/** What follows from what is drawn follows from what is pinned instead of it. */
function drawAll(random: Random, pins: { readonly sizes?: readonly number[]; readonly skews?: Skews } = {}) {
  const sizes = pins.sizes ?? random.fork("sizes").pick(SIZES);
  const nodes = sizes.reduce((sum, size) => sum + size, 0);
  const isDrifting = random.fork("drifting").chance(0.5);
  const skews = pins.skews ?? random.fork("skews").pick<Skews>(["near", "near", "near", "hours", "days"]);
  const kinds: readonly TxnFault["kind"][] = [];
  return {
    aim: random
      .fork("aim")
      .pick<TxnAim>(["none", "none", "coordinators", "recovery", "islands", "links", "late", "clocks"]),
    sizes,
    skews,
    /** How far the wall clocks of each island are off; those of its nodes agree. Clients are right. */
    skewsMs: drawSkews(random.fork("skew"), sizes.length, { skews, isDrifting }),
    clockRates: Array.from({ length: nodes }, (_, at) =>
      isDrifting ? random.fork(`rate/${at}`).pick([TXN_RATE_MIN, 0.9, 1, 1.1, TXN_RATE_MAX]) : 1,
    ),
    link: {
      latencyMinMs: random.fork("latency").between(0.1, 2),
      latencyTailMs: random.fork("tail").between(0.1, 3),
      lossRate: random.fork("loss").pick([0, 0, 0.005, 0.03]),
      duplicateRate: random.fork("duplicates").pick([0, 0.02, 0.2]),
    } satisfies Partial<LinkModel>,
    /** How much longer a message between two islands takes. */
    farMs: random.fork("far").pick([0, 5, 30, 120]),
    weather: drawWeather(random.fork("weather")),
    disk: {
      syncMs: random.fork("sync-ms").pick([
        [0.1, 1],
        [0.5, 3],
        [5, 25],
      ]),
    } satisfies Partial<DiskModel>,
    snapshotAfterEntries: random.fork("snapshot").pick([20, 60, 1_000]),
    clients: 2 + random.fork("clients").below(4),
    clientPauseMs: random.fork("client-pause").pick([150, 400, 1_000]),
    /** Of each island. */
    accounts: random.fork("accounts").pick([1, 2, 4]),
    /** Plain writers and campaigns besides. */
    writers: random.fork("writers").below(3),
    /** How often a client asks for something else under the same id. */
    conflictRate: random.fork("conflicts").pick([0.02, 0.05, 0.2]),
    timeoutMs: random.fork("timeout").pick([1_000, 1_000, 2_000, 5_000]),
    viewsDelayMs: 5,
    historyLies: false,
    historyFetchMs: 10,
    /** How long all clocks are put forward at the end, when nothing is under way, before old messages come again. */
    laterMs: random.fork("later").pick([0, 0, 6 * HOUR_MS, 13 * HOUR_MS, 2 * DAY_MS]),
    ghosts: random.fork("ghosts").chance(0.6),
    /** How far an island's clocks jump, at most. */
    jumpHours: random.fork("jump-hours").pick([1, 13, 30, 80]),
    faults: 3 + random.fork("faults").below(12),
    faultsUntilMs: 20_000 + 1_000 * random.fork("duration").below(25),
    /** So many faults of these kinds more. */
    aims: kinds,
  };
}

function drawWeather(random: Random): Weather {
  return {
    lateRate: random.fork("rate").pick([0, 0.002, 0.01]),
    lateMs: random.fork("late").pick([
      [500, 10_000],
      [2_000, 60_000],
      [30_000, 600_000],
    ]),
  };
}

interface Clocks {
  readonly skews: Skews;
  readonly isDrifting: boolean;
}

function drawSkews(random: Random, count: number, { skews, isDrifting }: Clocks): readonly number[] {
  const off = random.below(count);
  // One that falls back while it runs begins ahead: else it takes no transaction for most of the run.
  const leastMs = isDrifting ? TXN_SIM_DRIFT_MS : -5_000;
  return Array.from({ length: count }, (_, at) => {
    const stream = random.fork(`${at}`);
    if (skews === "days" && at === off) return Math.floor(stream.between(-3, 3) * DAY_MS);
    const mostMs = skews === "hours" ? 10 * HOUR_MS : 200_000;
    return Math.floor(stream.between(leastMs, mostMs));
  });
}
