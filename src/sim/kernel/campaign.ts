// Many runs added up: what was met, what was never met, and whether the whole proves anything.

import type { FaultCount } from "./injector.ts";
import type { SeedResult } from "./run.ts";

/** A kind of fault that was scheduled so often and never fired is a failure of the campaign. */
const FAULTS_FOR_A_KIND = 50;

interface CampaignRules<Result, Sum extends string> {
  readonly probes: readonly string[];
  /** Which of them so many seeds must have met. */
  readonly expected: (seeds: number) => readonly string[];
  /** What else is added up. */
  readonly sums: Readonly<Record<Sum, (result: Result) => number>>;
  /** Those of them that a line of progress says. */
  readonly said: readonly NoInfer<Sum>[];
}

interface CampaignSummary {
  readonly seeds: number;
  readonly simulated_hours: number;
  readonly steps: number;
  readonly faults: Record<string, number>;
  readonly probes: Record<string, number>;
  readonly violations: number;
  readonly wall_s: number;
  readonly speedup: number;
}

/** `More`: what one kind of campaign sums up beyond this. */
export class Campaign<Result extends SeedResult, Sum extends string, More extends object = object> {
  readonly #rules: CampaignRules<Result, Sum>;
  readonly #startedMs: number;
  readonly #nowMs: () => number;
  readonly #faults = new Map<string, FaultCount>();
  readonly #probes = new Map<string, number>();
  readonly #sums = new Map<Sum, number>();
  #seeds = 0;
  #simulatedMs = 0;
  #steps = 0;
  #violations = 0;

  constructor(nowMs: () => number, rules: CampaignRules<Result, Sum>) {
    this.#rules = rules;
    this.#nowMs = nowMs;
    this.#startedMs = nowMs();
  }

  add(result: Result): void {
    this.#seeds++;
    this.#simulatedMs += result.simulatedMs;
    this.#steps += result.steps;
    if (result.violation !== null) this.#violations++;
    for (const sum of this.#names) this.#sums.set(sum, (this.#sums.get(sum) ?? 0) + this.#rules.sums[sum](result));
    for (const [kind, { scheduled, fired }] of Object.entries(result.faults)) {
      const before = this.#faults.get(kind) ?? { scheduled: 0, fired: 0 };
      this.#faults.set(kind, { scheduled: before.scheduled + scheduled, fired: before.fired + fired });
    }
    for (const [probe, times] of Object.entries(result.probes)) {
      this.#probes.set(probe, (this.#probes.get(probe) ?? 0) + (times ?? 0));
    }
  }

  get simulatedHours(): number {
    return this.#simulatedMs / 3_600_000;
  }

  /** Why the runs prove less than they should, although none of them failed. */
  complaints(): string[] {
    const silent = [...this.#faults].filter(([, one]) => one.scheduled >= FAULTS_FOR_A_KIND && one.fired === 0);
    const missed = this.expected(this.#seeds).filter((probe) => (this.#probes.get(probe) ?? 0) === 0);
    return [
      ...silent.map(([kind, one]) => `fault ${kind} was scheduled ${one.scheduled} times and never fired`),
      ...missed.map((probe) => `the state ${probe} was never reached`),
    ];
  }

  progress(): string {
    const summary = this.summary();
    const sums = this.#rules.said.map((name) => `${summary[name]} ${name}`);
    const { seeds, simulated_hours: hours, violations, speedup } = summary;
    const said = [`${seeds} seeds`, `${hours} simulated hours`, ...sums, ...this.said(), `${violations} violations`];
    return `${said.join(", ")}, ${speedup} × real time`;
  }

  summary(): CampaignSummary & Record<Sum, number> & More {
    const wallMs = this.#nowMs() - this.#startedMs;
    const faults = [...this.#faults].sort(([a], [b]) => (a < b ? -1 : 1)).map(([kind, one]) => [kind, one.fired]);
    const sums = this.#names.map((name) => [name, this.#sums.get(name) ?? 0]);
    return {
      seeds: this.#seeds,
      simulated_hours: Number(this.simulatedHours.toFixed(3)),
      steps: this.#steps,
      ...(Object.fromEntries(sums) as Record<Sum, number>),
      faults: Object.fromEntries(faults) as Record<string, number>,
      probes: Object.fromEntries(this.#rules.probes.map((probe) => [probe, this.#probes.get(probe) ?? 0])),
      ...this.more(),
      violations: this.#violations,
      wall_s: Number((wallMs / 1_000).toFixed(1)),
      speedup: Math.round(this.#simulatedMs / wallMs),
    };
  }

  protected expected(seeds: number): readonly string[] {
    return this.#rules.expected(seeds);
  }

  protected said(): readonly string[] {
    return [];
  }

  protected more(): More {
    return {} as More;
  }

  get #names(): readonly Sum[] {
    return Object.keys(this.#rules.sums) as Sum[];
  }
}
