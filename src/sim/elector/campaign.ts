// What runs of electors add up to.

import { Campaign } from "../kernel/index.ts";
import { PROBES } from "./probes.ts";
import type { ElectorRunResult } from "./run.ts";

/** From so many seeds on, a rare state that never showed is a failure of the campaign. */
const SEEDS_FOR_ALL_PROBES = 1_000;

export function electorCampaign(nowMs: () => number) {
  return new Campaign(nowMs, {
    probes: PROBES,
    expected: (seeds) => (seeds < SEEDS_FOR_ALL_PROBES ? [] : PROBES),
    sums: {
      terms: ({ terms }: ElectorRunResult) => terms,
      checks: ({ checks }) => checks,
      writes: ({ writes }) => writes,
    },
    said: ["terms"],
  });
}
