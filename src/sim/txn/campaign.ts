// What runs of transactions add up to.

import { Campaign } from "../kernel/index.ts";
import { PROBES } from "./probes.ts";
import type { TxnRunResult } from "./run.ts";

/** From so many seeds on, a rare state that never showed is a failure of the campaign. */
const SEEDS_FOR_ALL_PROBES = 300;

export function txnCampaign(nowMs: () => number) {
  return new Campaign(nowMs, {
    probes: PROBES,
    expected: (seeds) => (seeds < SEEDS_FOR_ALL_PROBES ? [] : PROBES),
    sums: {
      asked: ({ asked }: TxnRunResult) => asked,
      committed: ({ committed }) => committed,
      elections: ({ elections }) => elections,
    },
    said: ["asked", "committed", "elections"],
  });
}
