// What simulated servers have on their disks beside the log: the rows of their views and their history of events (history.ts).
// Either may be lost while the log stays: a file that somebody removed, a directory on another disk, a node that was set up anew.

import type { Boot } from "../kernel/index.ts";
import type { JobsKnobs } from "./knobs.ts";
import { type JobsProbeCounts, reached } from "./probes.ts";
import { SimViews, StoredRows } from "./views.ts";

/** How often a machine that dies takes with it what the views had not synced. */
const POWER_LOSS_RATE = 0.5;

interface StoresOptions {
  readonly knobs: JobsKnobs;
  readonly probes: JobsProbeCounts;
  readonly wipeHistory: (node: string) => void;
  readonly positionOf: (node: string) => number;
}

export class Stores {
  readonly #options: StoresOptions;
  readonly #rows = new Map<string, StoredRows>();
  /** Of the process that runs. */
  readonly #views = new Map<string, SimViews>();

  constructor(options: StoresOptions) {
    this.#options = options;
  }

  views({ node, clock, random }: Boot): SimViews {
    const { knobs, probes } = this.#options;
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
    reached(this.#options.probes, "views-thread-died");
    this.#views.get(node)?.crash();
  }

  /** In the process that runs. The file of the views is gone, and production is told so. */
  discardViews(node: string): void {
    reached(this.#options.probes, "views-wiped");
    this.#views.get(node)?.discard();
  }

  /** While it does not run. */
  wipe(node: string, withViews: boolean): void {
    if (withViews) reached(this.#options.probes, "node-wiped");
    if (withViews) this.#rows.get(node)?.wipe();
    this.#options.wipeHistory(node);
  }

  /** How many rows of this node are in doubt. */
  viewsDoubted(node: string): number {
    return [...(this.#rows.get(node)?.jobs.values() ?? [])].filter(({ isInDoubt }) => isInDoubt).length;
  }

  /** Whether the views of this node lack what there is, and are being built. */
  isRebuilding(node: string): boolean {
    const position = this.#rows.get(node)?.position ?? 0;
    return position === 0 && this.#options.positionOf(node) > 0;
  }
}
