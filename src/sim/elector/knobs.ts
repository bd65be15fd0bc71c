// What one seed decides about a run of electors before it begins.

import type { Random } from "../../core/kit/random.ts";
import type { Timing } from "../../core/trust/window.ts";
import type { LinkModel } from "../kernel/index.ts";
import type { Kind } from "./plan.ts";
import type { SeatTiming } from "./seat.ts";
import type { Flavour } from "./server.ts";

/** Clocks run between these rates; a margin of a quarter covers that: 0.9 / 1.1 > 1 − 1/4. */
export const RATE_MIN = 0.9;
export const RATE_MAX = 1.1;
const MARGIN_SHARE = 0.25;
/** The longest of many round trips, in latencies of one way. */
const ROUND_TRIP_LATENCIES = 10;

export interface Knobs {
  readonly flavour: Flavour;
  readonly instances: number;
  readonly timing: Timing;
  readonly seat: SeatTiming;
  /** After so long without an acknowledgement a client takes its connection for broken. */
  readonly patienceMs: number;
  readonly drainMs: number;
  readonly tickMs: number;
  /** Of the server first, then of each instance. */
  readonly clockRates: readonly number[];
  readonly link: Partial<LinkModel>;
  /** Machines sleep. Then no wall clock is set back: both at once can fool both clocks of a process. */
  readonly sleepy: boolean;
  /** How often users do something else than lead for as long as they can. */
  readonly restlessness: number;
  /** Users' callbacks throw, reject later, and call the elector that calls them. */
  readonly hostile: boolean;
  /** How many of the effects are fenced writes. */
  readonly writeShare: number;
  readonly faults: number;
  readonly faultsUntilMs: number;
  /** Faults that lead to what is looked for: some of each run, in addition to what it draws anyway. */
  readonly aims: readonly Kind[];
}

export interface ElectorLimits {
  readonly flavour?: Flavour | undefined;
  readonly instances?: number | undefined;
  /** What else the seed does not decide. */
  readonly pins?: Partial<Knobs> | undefined;
}

export function drawKnobs(random: Random, limits: ElectorLimits = {}): Knobs {
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
    patienceMs: serverTimeoutMs * random.fork("patience").pick([0.5, 2, 20]),
    drainMs: random.fork("drain").pick([200, 1_000]),
    tickMs: random.fork("tick").pick([5, 10, 25]),
    clockRates: Array.from({ length: instances + 1 }, (_, at) =>
      drifting ? random.fork(`rate/${at}`).pick([RATE_MIN, 0.95, 1, 1.05, RATE_MAX]) : 1,
    ),
    link: {
      latencyMinMs,
      latencyTailMs,
      inOrder: flavour === "session" || random.fork("order").chance(0.3),
    },
    sleepy: random.fork("sleepy").chance(0.5),
    restlessness: random.fork("restlessness").pick([0.2, 0.6, 0.9]),
    hostile: random.fork("hostile").chance(0.3),
    writeShare: random.fork("writes").pick([0.01, 0.1, 0.5]),
    faults: 6 + random.fork("faults").below(14),
    faultsUntilMs: serverTimeoutMs * (6 + random.fork("duration").below(6)),
    aims: [],
    ...limits.pins,
  };
}
