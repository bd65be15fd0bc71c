// Kinds of runs of jobs into which mistakes are planted: where chance alone leads to the harm too seldom.

import type { JobsKnobs } from "../jobs/index.ts";
import { planting } from "./patch.ts";

/** Into runs of this kind, which have more of these faults (`aims`). */
export function inRunsOf(pins: Partial<JobsKnobs>) {
  return planting({ pins }, "jobs");
}

/** Little else goes wrong than what the runs are aimed at. */
export const QUIET = {
  faults: 2,
  wallJumps: 0,
  clocks: "near",
  schedules: 0,
  outages: 0,
  moonlights: false,
  usurpations: 0,
  valueWriters: 0,
} as const;
