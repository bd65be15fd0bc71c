// What one seed decides about a run of electors before it begins.

import type { Random } from "../../core/kit/random.ts";
import type { Kind } from "./plan.ts";
import type { Flavour } from "./server.ts";

/** Clocks run between these rates; a margin of a quarter covers that: 0.9 / 1.1 > 1 − 1/4. */
export const RATE_MIN = 0.9;
export const RATE_MAX = 1.1;
const MARGIN_SHARE = 0.25;
/** The longest of many round trips, in latencies of one way. */
const ROUND_TRIP_LATENCIES = 10;

/** What `drawAll` draws. */
export type Knobs = Readonly<ReturnType<typeof drawAll>>;

export interface ElectorLimits {
  readonly flavour?: Flavour | undefined;
  readonly instances?: number | undefined;
  /** What else the seed does not decide. */
  readonly pins?: Partial<Knobs> | undefined;
}

export function drawKnobs(random: Random, limits: ElectorLimits = {}): Knobs {
  return { ...drawAll(random, limits), ...limits.pins };
}

function drawAll(random: Random, limits: ElectorLimits) {
  const flavour = limits.flavour ?? random.fork("flavour").pick<Flavour>(["session", "lease"]);
  const instances = limits.instances ?? random.fork("instances").pick([1, 2, 2, 3, 3, 4, 5]);
  const serverTimeoutMs = random.fork("timeout").pick([1_500, 3_000, 6_000]);
  const heartbeatMs = serverTimeoutMs / random.fork("heartbeat").pick([4, 6, 8]);
  const drifting = random.fork("drifting").chance(0.6);
  const pace = random.fork("pace");
  const slow = random.fork("slow").pick([1, 1, 1, 10]);
  const latencyMinMs = slow * pace.between(0.1, 2);
  const latencyTailMs = slow * pace.between(0.1, 4);
  // Shorter than answers take on this network, it would close gates although nothing goes wrong.
  const requestMsMin = ROUND_TRIP_LATENCIES * (latencyMinMs + latencyTailMs);
  const aims: readonly Kind[] = [];
  return {
    flavour,
    instances,
    timing: {
      serverTimeoutMs,
      marginMs: serverTimeoutMs * MARGIN_SHARE,
      heartbeatMs,
      retryMinMs: random.fork("retry").pick([20, 100, 200]),
      retryMaxMs: 800,
      holdBackMs: random.fork("hold-back").pick([100, 500]),
      releaseTimeoutMs: random.fork("release").pick([200, 1_000]),
    },
    seat: {
      askEveryMs: serverTimeoutMs / random.fork("ask").pick([3, 6]),
      requestTimeoutMs: Math.max(serverTimeoutMs / random.fork("request").pick([2, 4, 8]), requestMsMin),
      watchEveryMs: serverTimeoutMs / 4,
    },
    /** After so long without an acknowledgement a client takes its connection for broken. */
    patienceMs: serverTimeoutMs * random.fork("patience").pick([0.5, 2, 20]),
    drainMs: random.fork("drain").pick([200, 1_000]),
    tickMs: random.fork("tick").pick([5, 10, 25]),
    /** Of the server first, then of each instance. */
    clockRates: Array.from({ length: instances + 1 }, (_, at) =>
      drifting ? random.fork(`rate/${at}`).pick([RATE_MIN, 0.95, 1, 1.05, RATE_MAX]) : 1,
    ),
    link: {
      latencyMinMs,
      latencyTailMs,
      inOrder: flavour === "session" || random.fork("order").chance(0.3),
    },
    /** Machines sleep. Then no wall clock is set back: both at once can fool both clocks of a process. */
    sleepy: random.fork("sleepy").chance(0.5),
    /** How often users do something else than lead for as long as they can. */
    restlessness: random.fork("restlessness").pick([0.2, 0.6, 0.9]),
    /** Users' callbacks throw, reject later, and call the elector that calls them. */
    hostile: random.fork("hostile").chance(0.3),
    /** How many of the effects are fenced writes. */
    writeShare: random.fork("writes").pick([0.01, 0.1, 0.5]),
    faults: 6 + random.fork("faults").below(14),
    faultsUntilMs: serverTimeoutMs * (6 + random.fork("duration").below(6)),
    /** Faults that lead to what is looked for: some of each run, in addition to what it draws anyway. */
    aims,
  };
}
