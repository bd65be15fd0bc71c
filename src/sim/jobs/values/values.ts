// Values in a run of jobs: who writes, who watches, and what must be so after the faults.

import type { JobsCluster } from "../cluster.ts";
import { Watchers } from "./watchers.ts";
import { COUNTERS, Writers } from "./writers.ts";
import { VALUES_WITHIN_MS } from "./limits.ts";

export class SimValues {
  readonly #cluster: JobsCluster;
  readonly #writers: Writers;
  readonly #watchers: Watchers;

  constructor(cluster: JobsCluster) {
    this.#cluster = cluster;
    this.#writers = new Writers(cluster);
    this.#watchers = new Watchers(cluster);
  }

  start(): void {
    this.#cluster.releases.start();
    this.#writers.start();
    this.#watchers.start();
  }

  stop(): void {
    this.#writers.stop();
  }

  /** Null: one more value was written, all nodes have the same, and watchers have seen it. */
  async problem(stepsMax: number): Promise<string | null> {
    const { world, values, knobs } = this.#cluster;
    if (knobs.valueWriters === 0 || world.findings.length > 0) return null;
    this.#writers.last();
    const untilMs = world.nowMs + VALUES_WITHIN_MS;
    await world.run(() => this.#writers.isLastWritten && this.#difference() === null, { untilMs, stepsMax });
    if (world.findings.length > 0) return null;
    if (!this.#writers.isLastWritten) return `${VALUES_WITHIN_MS} ms after the last fault no value could be written`;
    const different = this.#difference();
    if (different !== null) return `${VALUES_WITHIN_MS} ms after the last fault ${different}`;
    return values.problem(COUNTERS);
  }

  #difference(): string | null {
    const { names, values } = this.#cluster;
    const behind = names.find((name) => values.positionOf(name) !== values.head);
    if (behind !== undefined) return `${behind} has ${values.positionOf(behind)} of ${values.head} state records`;
    return this.#watchers.overdue();
  }
}
