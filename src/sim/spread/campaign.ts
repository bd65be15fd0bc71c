// What runs of spreading sites add up to. Of crowds: the worst figure of all runs.

import { Campaign } from "../kernel/index.ts";
import { SEEDS_FOR_ALL_PROBES } from "./limits.ts";
import { PROBES } from "./probes.ts";
import type { SpreadRunResult } from "./run.ts";

type Crowd = Readonly<
  Record<"sites" | "sends_per_event_per_site" | "hops_max" | "latency_p50_ms" | "latency_p99_ms", number>
>;
type More = { readonly crowd?: Crowd };

export class SpreadCampaign extends Campaign<SpreadRunResult, "events" | "deliveries" | "sends", More> {
  #crowd: Crowd | null = null;

  constructor(nowMs: () => number) {
    super(nowMs, {
      probes: PROBES,
      expected: (seeds) => (seeds < SEEDS_FOR_ALL_PROBES ? [] : PROBES),
      sums: { events: ({ events }) => events, deliveries: ({ deliveries }) => deliveries, sends: ({ sends }) => sends },
      said: ["events", "deliveries", "sends"],
    });
  }

  override add(result: SpreadRunResult): void {
    super.add(result);
    if (result.crowd === null) return;
    const { sites, sendsPerSite, hopsMax, latencyP50Ms, latencyP99Ms } = result.crowd;
    this.#crowd = {
      sites,
      sends_per_event_per_site: Math.max(sendsPerSite, this.#crowd?.sends_per_event_per_site ?? 0),
      hops_max: Math.max(hopsMax, this.#crowd?.hops_max ?? 0),
      latency_p50_ms: Math.max(latencyP50Ms, this.#crowd?.latency_p50_ms ?? 0),
      latency_p99_ms: Math.max(latencyP99Ms, this.#crowd?.latency_p99_ms ?? 0),
    };
  }

  /** In a crowd little else happens than churn. */
  protected override expected(seeds: number): readonly string[] {
    return this.#crowd === null ? super.expected(seeds) : [];
  }

  protected override said(): readonly string[] {
    if (this.#crowd === null) return [];
    const { sends_per_event_per_site, hops_max, latency_p50_ms, latency_p99_ms } = this.#crowd;
    return [
      `${sends_per_event_per_site} sends of an event for each site, at most ${hops_max} hops`,
      `p50 ${latency_p50_ms} ms, p99 ${latency_p99_ms} ms`,
    ];
  }

  protected override more(): More {
    return this.#crowd === null ? {} : { crowd: this.#crowd };
  }
}
