// What one seed decides about a run of coordinators before it begins.

import type { Random } from "../../core/kit/random.ts";

/** Clocks run between these rates. The lease's arithmetic has nothing left over beyond them. */
export const COORDINATOR_RATE_MIN = 0.8;
export const COORDINATOR_RATE_MAX = 1.2;

/** What `drawAll` draws. */
export type TcKnobs = Readonly<ReturnType<typeof drawAll>>;

/** What a run is aimed at, in addition to what it draws anyway. */
export type Aim = "none" | "founding" | "roster" | "recovery" | "clock" | "registry" | "places" | "copies";

export interface TcLimits {
  readonly nodes?: number | undefined;
  readonly aim?: Aim | undefined;
}

export function drawKnobs(random: Random, limits: TcLimits = {}): TcKnobs {
  const drawn = drawAll(random, limits.nodes);
  return { ...drawn, aim: limits.aim ?? drawn.aim };
}

function drawAll(random: Random, asked: number | undefined) {
  const nodes = asked ?? random.fork("nodes").pick([3, 3, 3, 4, 5, 5, 6, 7]);
  const isDrifting = random.fork("drifting").chance(0.6);
  const slow = random.fork("slow").pick([1, 1, 1, 10]);
  const pace = random.fork("pace");
  return {
    aim: random
      .fork("aim")
      .pick<Aim>(["none", "none", "founding", "roster", "recovery", "clock", "registry", "places", "copies"]),
    nodes,
    /** The others are started later, and know the seeds. */
    seeds: nodes <= 3 ? nodes : nodes - random.fork("late").below(Math.min(3, nodes - 2)),
    clockRates: Array.from({ length: nodes }, (_, at) =>
      isDrifting ? random.fork(`rate/${at}`).pick([COORDINATOR_RATE_MIN, 0.9, 1, 1.1, COORDINATOR_RATE_MAX]) : 1,
    ),
    link: {
      latencyMinMs: slow * pace.between(0.1, 2),
      latencyTailMs: slow * pace.between(0.1, 6),
      lossRate: random.fork("loss").pick([0, 0, 0.005, 0.02]),
      duplicateRate: random.fork("duplicates").pick([0, 0.02, 0.1]),
      inOrder: random.fork("order").chance(0.3),
    },
    /** In how many places the nodes are, and how much longer each message between two of these takes. */
    places: random.fork("places").pick([1, 1, 1, 2, 3]),
    farMs: random.fork("far").pick([20, 60, 150]),
    syncMsMax: random.fork("sync").pick([1.5, 1.5, 10, 60]),
    /** What a leader's work takes to end, at most. */
    windUpMs: random.fork("wind-up").pick([1, 20, 200]),
    /** Between two changes of the registry, about. */
    writeEveryMs: random.fork("writes").pick([1_000, 3_000, 10_000]),
    faults: 5 + random.fork("faults").below(14),
    faultsUntilMs: 30_000 + 1_000 * random.fork("duration").below(30),
  };
}
