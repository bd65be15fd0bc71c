// What runs of transaction coordinators add up to.

import { Campaign } from "../kernel/index.ts";
import { PROBES } from "./probes.ts";
import type { TcRunResult } from "./run.ts";

/** From so many seeds on, a rare state that never showed is a failure of the campaign. */
const SEEDS_FOR_ALL_PROBES = 300;

export function tcCampaign(nowMs: () => number) {
  return new Campaign(nowMs, {
    probes: PROBES,
    expected: (seeds) => (seeds < SEEDS_FOR_ALL_PROBES ? [] : PROBES),
    sums: {
      nodes: ({ knobs }: TcRunResult) => knobs.nodes,
      elections: ({ elections }) => elections,
      rosters: ({ rosters }) => rosters,
      writes: ({ writes }) => writes,
    },
    said: ["nodes", "elections", "rosters"],
  });
}
