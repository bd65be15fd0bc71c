// How long events of other sites took to get here, counted for this node's metrics: from the time in an event, by its site's clock, to when this site's
// leader had its page. The difference of the two clocks, where a link to that site has measured it, is taken out; else it is the difference of two wall
// clocks, and only as good as they are.
//
// Only what this node takes while it leads counts: over all nodes of the site each event counts once, and what is applied again at a start counts nowhere.
//
// Invariant: sites that are named are at most SITES_MEASURED_MAX; all others are counted together.

import { Histogram } from "../../../core/kit/histogram.ts";
import { controllerOf } from "../../../core/mesh/proof/index.ts";
import type { Receipt } from "../../../core/mesh/receipts/index.ts";
import type { HistogramSnapshot } from "../../../ports/elector.ts";
import { PROPAGATION_BUCKETS_MS, SITES_MEASURED_MAX } from "../limits.ts";

/** Of all sites that are not named. */
export const OTHERS = "other";
/** The end of an event's canonical text: the time is its last field. */
const END_BYTES = 48;
const TIME = /"timestamp":([0-9.]+)\}$/;
const decoder = new TextDecoder();

export interface PropagationOptions {
  /** The epoch in which this node leads; null: it does not. */
  readonly epoch: () => number | null;
  /** A site's wall clock minus ours; null: not measured. */
  readonly skewMs: (site: string) => number | null;
}

export class Propagation {
  readonly #options: PropagationOptions;
  readonly #bySite = new Map<string, Histogram>();

  constructor(options: PropagationOptions) {
    this.#options = options;
  }

  /** Of every receipt that is applied here. */
  applied({ epoch, timestamp, first, page }: Receipt): void {
    if (this.#options.epoch() !== epoch) return;
    const site = controllerOf(page.line);
    const histogram = this.#of(site);
    const skewMs = this.#options.skewMs(site) ?? 0;
    for (const item of page.items.slice(first - page.after - 1)) {
      const writtenMs = "bytes" in item ? timeOf(item.bytes) : null;
      if (writtenMs !== null) histogram.record(Math.max(0, timestamp + skewMs - writtenMs));
    }
  }

  snapshot(): readonly { readonly site: string; readonly histogram: HistogramSnapshot }[] {
    return Array.from(this.#bySite, ([site, histogram]) => ({ site, histogram: histogram.snapshot() }));
  }

  #of(site: string): Histogram {
    const name = this.#bySite.has(site) || this.#bySite.size < SITES_MEASURED_MAX ? site : OTHERS;
    let histogram = this.#bySite.get(name);
    if (histogram === undefined) this.#bySite.set(name, (histogram = new Histogram(PROPAGATION_BUCKETS_MS)));
    return histogram;
  }
}

/** Parsing the whole text for one number would cost more than the rest of a page. */
function timeOf(bytes: Uint8Array): number | null {
  const found = TIME.exec(decoder.decode(bytes.subarray(-END_BYTES)));
  return found === null ? null : Number(found[1]);
}
