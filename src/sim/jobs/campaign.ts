// What runs of jobs add up to, and races for ten jobs among them.

import { Campaign } from "../kernel/index.ts";
import { COMMON_JOBS_PROBES, JOBS_PROBES } from "./probes.ts";
import { RACE_JOBS } from "./race.ts";
import type { JobsRunResult } from "./run.ts";

/** From so many seeds on, a rare state that never showed is a failure of the campaign. */
const SEEDS_FOR_ALL_PROBES = 500;
const SEEDS_FOR_COMMON_PROBES = 50;

const NO_RACES = {
  races: 0,
  /** In which each job was given out once, and no lease was lost. */
  races_of_ten_assignments: 0,
  assignments: 0,
  leases_lost: 0,
  /** Of these, the ones whose answer never reached an agent. */
  leases_undelivered: 0,
  deliveries: 0,
  redeliveries: 0,
  completed: 0,
  failovers: 0,
};

export class JobsCampaign extends Campaign<JobsRunResult, "jobs" | "events", { readonly races?: typeof NO_RACES }> {
  #races: typeof NO_RACES | null = null;

  constructor(nowMs: () => number) {
    super(nowMs, {
      probes: JOBS_PROBES,
      expected: (seeds) =>
        seeds >= SEEDS_FOR_ALL_PROBES ? JOBS_PROBES : seeds >= SEEDS_FOR_COMMON_PROBES ? COMMON_JOBS_PROBES : [],
      sums: { jobs: ({ jobs }) => jobs, events: ({ events }) => events },
      said: ["jobs", "events"],
    });
  }

  override add(result: JobsRunResult): void {
    super.add(result);
    const one = result.race;
    if (one === null) return;
    const races = (this.#races ??= { ...NO_RACES });
    races.races++;
    if (one.assignments === RACE_JOBS) races.races_of_ten_assignments++;
    races.assignments += one.assignments;
    races.leases_lost += one.lost;
    races.leases_undelivered += one.undelivered;
    races.deliveries += one.deliveries;
    races.redeliveries += one.redeliveries;
    races.completed += one.completed;
    races.failovers += one.failovers;
  }

  /** In a race little else happens than that. */
  protected override expected(seeds: number): readonly string[] {
    return this.#races === null ? super.expected(seeds) : [];
  }

  protected override said(): readonly string[] {
    if (this.#races === null) return [];
    const { assignments, leases_lost, completed, failovers } = this.#races;
    return [`${assignments} assignments, ${leases_lost} leases lost, ${completed} completed, ${failovers} failovers`];
  }

  protected override more(): { readonly races?: typeof NO_RACES } {
    return this.#races === null ? {} : { races: this.#races };
  }
}
