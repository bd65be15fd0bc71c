// What simulated servers have on their disks next to the log: the rows of their views and their history of events (history.ts).
// Either may be lost while the log stays: a file that somebody removed, a directory on another disk, a node that was set up anew.

import type { Boot } from "../kernel/index.ts";
import type { JobsCluster } from "./cluster.ts";
import { reached } from "./probes.ts";
import { SimViews, StoredRows } from "./views.ts";

/** How often a machine that dies takes with it what the views had not synced. */
const POWER_LOSS_RATE = 0.5;

export class Stores {
  readonly #cluster: JobsCluster;
  readonly #rows = new Map<string, StoredRows>();
  /** Of the process that runs. */
  readonly #views = new Map<string, SimViews>();

  constructor(cluster: JobsCluster) {
    this.#cluster = cluster;
  }

  views({ node, clock, random }: Boot): SimViews {
    const { knobs, probes } = this.#cluster;
    const isFirst = !this.#rows.has(node);
    const rows = this.#rows.get(node) ?? new StoredRows();
    this.#rows.set(node, rows);
    if (!isFirst && random.fork("views-power").chance(POWER_LOSS_RATE) && rows.lostPower())
      reached(probes, "views-went-back");
    const views = new SimViews(rows, clock, random.fork("views"), knobs.viewsDelayMs, probes);
    this.#views.set(node, views);
    return views;
  }

  /** In the process that runs. The thread of the views dies: what it was to write is lost, what it has written stays. */
  crashViews(node: string): void {
    reached(this.#cluster.probes, "views-thread-died");
    this.#views.get(node)?.crash();
  }

  /** In the process that runs. The file of the views is gone, and production is told so. */
  discardViews(node: string): void {
    reached(this.#cluster.probes, "views-wiped");
    this.#views.get(node)?.discard();
  }

  /** While it does not run. */
  wipe(node: string, withViews: boolean): void {
    if (withViews) reached(this.#cluster.probes, "node-wiped");
    if (withViews) this.#rows.get(node)?.wipe();
    this.#cluster.histories.wipe(node);
  }

  /** How many rows of this node are in doubt. */
  viewsDoubted(node: string): number {
    return [...(this.#rows.get(node)?.jobs.values() ?? [])].filter(({ isInDoubt }) => isInDoubt).length;
  }

  /** Whether the views of this node lack what there is, and are being built. */
  isRebuilding(node: string): boolean {
    const position = this.#rows.get(node)?.position ?? 0;
    return position === 0 && this.#cluster.oracle.positionOf(node) > 0;
  }
}
