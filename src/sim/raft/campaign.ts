// What runs of Raft clusters add up to.

import { Campaign } from "../kernel/index.ts";
import { PROBES } from "./probes.ts";
import type { RunResult } from "./run.ts";

/** From so many seeds on, a rare state that never showed is a failure of the campaign. */
const SEEDS_FOR_ALL_PROBES = 2_000;

export function raftCampaign(nowMs: () => number) {
  return new Campaign(nowMs, {
    probes: PROBES,
    expected: (seeds) => (seeds < SEEDS_FOR_ALL_PROBES ? [] : PROBES),
    sums: {
      elections: ({ elections }: RunResult) => elections,
      acknowledged: ({ clients }) => clients.acknowledged,
      reads: ({ clients }) => clients.reads,
    },
    said: ["elections"],
  });
}
