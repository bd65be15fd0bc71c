// Many runs of electors added up (as sim/raft/campaign.ts): what was met, and what was never met.

import { PROBES, type ProbeCounts } from "./probes.ts";
import type { ElectorRunResult } from "./run.ts";

/** From so many seeds on, a rare state or a kind of fault that never showed is a failure of the campaign. */
const SEEDS_FOR_ALL_PROBES = 1_000;
const FAULTS_FOR_A_KIND = 50;
const SUMMED = ["simulatedMs", "steps", "terms", "checks", "writes"] as const;

export class ElectorCampaign {
  readonly #startedMs: number;
  readonly #nowMs: () => number;
  readonly #faults = new Map<string, { scheduled: number; fired: number }>();
  readonly #probes: ProbeCounts = {};
  readonly #sums = { simulatedMs: 0, steps: 0, terms: 0, checks: 0, writes: 0 };
  #seeds = 0;
  #violations = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#startedMs = nowMs();
  }

  add(result: ElectorRunResult): void {
    this.#seeds++;
    if (result.violation !== null) this.#violations++;
    for (const name of SUMMED) this.#sums[name] += result[name];
    for (const [kind, { scheduled, fired }] of Object.entries(result.faults)) {
      const before = this.#faults.get(kind) ?? { scheduled: 0, fired: 0 };
      this.#faults.set(kind, { scheduled: before.scheduled + scheduled, fired: before.fired + fired });
    }
    for (const probe of PROBES) this.#probes[probe] = (this.#probes[probe] ?? 0) + (result.probes[probe] ?? 0);
  }

  get simulatedHours(): number {
    return this.#sums.simulatedMs / 3_600_000;
  }

  /** Why the runs prove less than they should, although none of them failed. */
  complaints(): string[] {
    const silent = [...this.#faults].filter(([, one]) => one.scheduled >= FAULTS_FOR_A_KIND && one.fired === 0);
    const missed = this.#seeds < SEEDS_FOR_ALL_PROBES ? [] : PROBES.filter((probe) => (this.#probes[probe] ?? 0) === 0);
    return [
      ...silent.map(([kind, one]) => `fault ${kind} was scheduled ${one.scheduled} times and never fired`),
      ...missed.map((probe) => `the state ${probe} was never reached`),
    ];
  }

  progress(): string {
    const { seeds, simulated_hours, terms, violations, speedup } = this.summary();
    return `${seeds} seeds, ${simulated_hours} simulated hours, ${terms} terms, ${violations} violations, ${speedup} × real time`;
  }

  summary() {
    const wallMs = this.#nowMs() - this.#startedMs;
    const { simulatedMs, steps, terms, checks, writes } = this.#sums;
    return {
      seeds: this.#seeds,
      simulated_hours: Number(this.simulatedHours.toFixed(3)),
      steps,
      terms,
      checks,
      writes,
      faults: Object.fromEntries(
        [...this.#faults].sort(([a], [b]) => (a < b ? -1 : 1)).map(([kind, one]) => [kind, one.fired]),
      ),
      probes: Object.fromEntries(PROBES.map((probe) => [probe, this.#probes[probe] ?? 0])),
      violations: this.#violations,
      wall_s: Number((wallMs / 1_000).toFixed(1)),
      speedup: Math.round(simulatedMs / wallMs),
    };
  }
}
