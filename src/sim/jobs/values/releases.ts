// A server of an older release, which can read records of neither values nor transactions, until it is upgraded in the middle of a run: it
// stops, and comes up as the others are. Before that nobody may write a value.

import type { JobsCluster } from "../cluster.ts";
import { PROTOCOL } from "../peers.ts";
import { VALUE_AGAIN_MS } from "./limits.ts";

/** From which on servers read values. */
export const PROTOCOL_OF_VALUES = PROTOCOL + 1;
/** From which on they read transactions. */
export const PROTOCOL_OF_TRANSACTIONS = PROTOCOL_OF_VALUES + 1;

export class Releases {
  readonly #cluster: JobsCluster;
  readonly #older: string;
  #isUpgraded = false;

  constructor(cluster: JobsCluster) {
    this.#cluster = cluster;
    this.#older = cluster.names.at(-1)!;
    const { valueWriters, upgradedMs } = cluster.knobs;
    // Where nobody writes values it makes no difference.
    this.#isUpgraded = valueWriters === 0 || upgradedMs === 0;
  }

  start(): void {
    const { world, knobs } = this.#cluster;
    if (this.#isUpgraded) return;
    const owner = world.scheduler.owner("upgrade");
    this.#cluster.later(owner, knobs.upgradedMs, () => {
      world.crash(this.#older);
      this.#isUpgraded = true;
      world.startAfter(this.#older, VALUE_AGAIN_MS);
    });
  }

  isOlder(node: string): boolean {
    return node === this.#older && !this.#isUpgraded;
  }

  protocolOf(node: string): number {
    return this.isOlder(node) ? PROTOCOL : PROTOCOL_OF_TRANSACTIONS;
  }
}
