// Many runs added up: what was met, what was never met, and whether the whole proves anything.

import { PROBES, type ProbeCounts } from "./probes.ts";
import type { RunResult } from "./run.ts";

/** From so many seeds on, a rare state or a kind of fault that never showed is a failure of the campaign. */
const SEEDS_FOR_ALL_PROBES = 2_000;
const FAULTS_FOR_A_KIND = 50;

export interface CampaignSummary {
  readonly seeds: number;
  readonly simulated_hours: number;
  readonly steps: number;
  readonly elections: number;
  readonly acknowledged: number;
  readonly reads: number;
  readonly faults: Record<string, number>;
  readonly probes: Record<string, number>;
  readonly violations: number;
  readonly wall_s: number;
  readonly speedup: number;
}

export class Campaign {
  readonly #startedMs: number;
  readonly #nowMs: () => number;
  readonly #faults = new Map<string, { scheduled: number; fired: number }>();
  readonly #probes: ProbeCounts = {};
  #seeds = 0;
  #simulatedMs = 0;
  #steps = 0;
  #elections = 0;
  #acknowledged = 0;
  #reads = 0;
  #violations = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#startedMs = nowMs();
  }

  add(result: RunResult): void {
    this.#seeds++;
    this.#simulatedMs += result.simulatedMs;
    this.#steps += result.steps;
    this.#elections += result.elections;
    this.#acknowledged += result.clients.acknowledged;
    this.#reads += result.clients.reads;
    if (result.violation !== null) this.#violations++;
    for (const [kind, { scheduled, fired }] of Object.entries(result.faults)) {
      const before = this.#faults.get(kind) ?? { scheduled: 0, fired: 0 };
      this.#faults.set(kind, { scheduled: before.scheduled + scheduled, fired: before.fired + fired });
    }
    for (const probe of PROBES) this.#probes[probe] = (this.#probes[probe] ?? 0) + (result.probes[probe] ?? 0);
  }

  get simulatedHours(): number {
    return this.#simulatedMs / 3_600_000;
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
    const { seeds, simulated_hours, elections, violations, speedup } = this.summary();
    return `${seeds} seeds, ${simulated_hours} simulated hours, ${elections} elections, ${violations} violations, ${speedup} × real time`;
  }

  summary(): CampaignSummary {
    const wallMs = this.#nowMs() - this.#startedMs;
    return {
      seeds: this.#seeds,
      simulated_hours: Number(this.simulatedHours.toFixed(3)),
      steps: this.#steps,
      elections: this.#elections,
      acknowledged: this.#acknowledged,
      reads: this.#reads,
      faults: Object.fromEntries(
        [...this.#faults].sort(([a], [b]) => (a < b ? -1 : 1)).map(([kind, one]) => [kind, one.fired]),
      ),
      probes: Object.fromEntries(PROBES.map((probe) => [probe, this.#probes[probe] ?? 0])),
      violations: this.#violations,
      wall_s: Number((wallMs / 1_000).toFixed(1)),
      speedup: Math.round(this.#simulatedMs / wallMs),
    };
  }
}
