// What runs of the mesh add up to.

import { Campaign } from "../kernel/index.ts";
import { SITES } from "./knobs.ts";
import { COMMON_MESH_PROBES, MESH_PROBES } from "./probes.ts";
import type { MeshRunResult } from "./run.ts";

/** From so many seeds on, a rare state that never showed is a failure of the campaign. */
const SEEDS_FOR_ALL_PROBES = 500;
const SEEDS_FOR_COMMON_PROBES = 60;

interface Forks {
  /** Sites that signed two histories. */
  planted: number;
  /** Of these, the ones that every honest site has frozen with evidence. */
  found: number;
  /** Honest lines that were frozen. */
  false: number;
}

interface MeshSummary {
  readonly sites: number;
  /** From the last fault until all sites had the same. */
  readonly convergence_ms: { readonly p50: number; readonly p99: number };
  readonly forks: Readonly<Forks>;
}

export class MeshCampaign extends Campaign<MeshRunResult, "events" | "partitions", MeshSummary> {
  readonly #convergenceMs: number[] = [];
  readonly #forks: Forks = { planted: 0, found: 0, false: 0 };

  constructor(nowMs: () => number) {
    super(nowMs, {
      probes: MESH_PROBES,
      expected: (seeds) =>
        seeds >= SEEDS_FOR_ALL_PROBES ? MESH_PROBES : seeds >= SEEDS_FOR_COMMON_PROBES ? COMMON_MESH_PROBES : [],
      sums: { events: ({ events }) => events, partitions: ({ partitions }) => partitions },
      said: ["events", "partitions"],
    });
  }

  override add(result: MeshRunResult): void {
    super.add(result);
    if (result.convergenceMs !== null) this.#convergenceMs.push(result.convergenceMs);
    this.#forks.planted += result.forks.planted;
    this.#forks.found += result.forks.found;
    this.#forks.false += result.forks.false;
  }

  protected override more(): MeshSummary {
    const sorted = this.#convergenceMs.toSorted((one, other) => one - other);
    const at = (share: number): number => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
    return {
      sites: SITES.length,
      convergence_ms: { p50: at(0.5), p99: at(0.99) },
      forks: { ...this.#forks },
    };
  }
}
