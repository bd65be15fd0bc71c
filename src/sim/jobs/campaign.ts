// Many runs of jobs added up: what was met, what was never met, and whether the whole proves anything.

import { COMMON_JOBS_PROBES, JOBS_PROBES, type JobsProbeCounts } from "./probes.ts";
import { RACE_JOBS } from "./race.ts";
import type { JobsRunResult } from "./run.ts";

/** From so many seeds on, a rare state or a kind of fault that never showed is a failure of the campaign. */
const SEEDS_FOR_ALL_PROBES = 500;
const SEEDS_FOR_COMMON_PROBES = 50;
const FAULTS_FOR_A_KIND = 50;

/** Races for ten jobs, added up. */
export interface RacesSummary {
  races: number;
  /** In which each job was given out once, and no lease was lost. */
  races_of_ten_assignments: number;
  assignments: number;
  leases_lost: number;
  /** Of these, the ones whose answer never reached an agent. */
  leases_undelivered: number;
  deliveries: number;
  redeliveries: number;
  completed: number;
  failovers: number;
}

export interface JobsCampaignSummary {
  readonly seeds: number;
  readonly simulated_hours: number;
  readonly steps: number;
  readonly jobs: number;
  readonly events: number;
  readonly faults: Record<string, number>;
  readonly probes: Record<string, number>;
  readonly races?: RacesSummary | undefined;
  readonly violations: number;
  readonly wall_s: number;
  readonly speedup: number;
}

export class JobsCampaign {
  readonly #startedMs: number;
  readonly #nowMs: () => number;
  readonly #faults = new Map<string, { scheduled: number; fired: number }>();
  readonly #probes: JobsProbeCounts = {};
  readonly #sums = { seeds: 0, simulatedMs: 0, steps: 0, jobs: 0, events: 0, violations: 0 };

  #races: RacesSummary | null = null;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#startedMs = nowMs();
  }

  add(result: JobsRunResult): void {
    const sums = this.#sums;
    sums.seeds++;
    sums.simulatedMs += result.simulatedMs;
    sums.steps += result.steps;
    sums.jobs += result.jobs;
    sums.events += result.events;
    if (result.violation !== null) sums.violations++;
    if (result.race !== null) this.#addRace(result.race);
    for (const [kind, { scheduled, fired }] of Object.entries(result.faults)) {
      const before = this.#faults.get(kind) ?? { scheduled: 0, fired: 0 };
      this.#faults.set(kind, { scheduled: before.scheduled + scheduled, fired: before.fired + fired });
    }
    for (const probe of JOBS_PROBES) this.#probes[probe] = (this.#probes[probe] ?? 0) + (result.probes[probe] ?? 0);
  }

  #addRace(one: NonNullable<JobsRunResult["race"]>): void {
    const races = (this.#races ??= {
      races: 0,
      races_of_ten_assignments: 0,
      assignments: 0,
      leases_lost: 0,
      leases_undelivered: 0,
      deliveries: 0,
      redeliveries: 0,
      completed: 0,
      failovers: 0,
    });
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

  get simulatedHours(): number {
    return this.#sums.simulatedMs / 3_600_000;
  }

  /** Why the runs prove less than they should, although none of them failed. */
  complaints(): string[] {
    const silent = [...this.#faults].filter(([, one]) => one.scheduled >= FAULTS_FOR_A_KIND && one.fired === 0);
    const { seeds } = this.#sums;
    const expected =
      seeds >= SEEDS_FOR_ALL_PROBES ? JOBS_PROBES : seeds >= SEEDS_FOR_COMMON_PROBES ? COMMON_JOBS_PROBES : [];
    // In a race little else happens than that.
    const missed = this.#races === null ? expected.filter((probe) => (this.#probes[probe] ?? 0) === 0) : [];
    return [
      ...silent.map(([kind, one]) => `fault ${kind} was scheduled ${one.scheduled} times and never fired`),
      ...missed.map((probe) => `the state ${probe} was never reached`),
    ];
  }

  progress(): string {
    const { seeds, simulated_hours, jobs, events, violations, speedup } = this.summary();
    const { races } = this.summary();
    const raced =
      races === undefined
        ? ""
        : `, ${races.assignments} assignments, ${races.leases_lost} leases lost, ${races.completed} completed, ${races.failovers} failovers`;
    return `${seeds} seeds, ${simulated_hours} simulated hours, ${jobs} jobs, ${events} events${raced}, ${violations} violations, ${speedup} × real time`;
  }

  summary(): JobsCampaignSummary {
    const wallMs = this.#nowMs() - this.#startedMs;
    const { seeds, steps, jobs, events, violations, simulatedMs } = this.#sums;
    const faults = [...this.#faults].sort(([a], [b]) => (a < b ? -1 : 1)).map(([kind, { fired }]) => [kind, fired]);
    return {
      seeds,
      simulated_hours: Number(this.simulatedHours.toFixed(3)),
      steps,
      jobs,
      events,
      faults: Object.fromEntries(faults) as Record<string, number>,
      probes: Object.fromEntries(JOBS_PROBES.map((probe) => [probe, this.#probes[probe] ?? 0])),
      ...(this.#races === null ? {} : { races: this.#races }),
      violations,
      wall_s: Number((wallMs / 1_000).toFixed(1)),
      speedup: Math.round(simulatedMs / wallMs),
    };
  }
}
