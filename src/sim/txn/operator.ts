// What operators do to the coordinators of simulated islands: recover one where the others are gone, and clear up after two have been recovered.

import { decodeLedger, encodeLedger, generationOf, type Ledger, recovered } from "../../core/lease/index.ts";
import { LEASES_NAME, LEDGER_NAME } from "../../controller/coordinators/index.ts";
import { reached } from "./probes.ts";
import type { TxnStage } from "./stage.ts";

const COME_BACK = 0.25;

export class TxnOperator {
  readonly #stage: TxnStage;
  /** Whom two recoveries have made leaders, each for itself. */
  #twins: { readonly node: string; readonly other: string } | null = null;
  #hasRecovered = false;

  constructor(stage: TxnStage) {
    this.#stage = stage;
  }

  /** Everybody is gone; one is recovered into the next generation; the others come back. */
  recover(node: string, forMs: number, hit: () => void): void {
    const { world, names } = this.#stage;
    if (this.#hasRecovered || !this.#recover(node)) return;
    this.#hasRecovered = true;
    hit();
    for (const name of names) if (name !== node && world.crash(name) !== undefined) world.startAfter(name, forMs);
  }

  /** Out of each other's reach: the same terms of the same generation are won twice. */
  recoverBoth(node: string, other: string, forMs: number, hit: () => void): void {
    const { world, names } = this.#stage;
    if (this.#hasRecovered) return;
    const near = names.filter(
      (name) => name.startsWith(node[0]!) || (!name.startsWith(other[0]!) && name.startsWith("c")),
    );
    const far = names.filter((name) => !near.includes(name));
    for (const name of names)
      if (name !== node && name !== other) {
        world.crash(name);
        world.startAfter(name, COME_BACK * forMs);
      }
    if (!this.#recover(node) || !this.#recover(other)) return;
    this.#hasRecovered = true;
    this.#twins = { node, other };
    hit();
    this.#stage.cut([near, far], forMs);
  }

  /** The faults are over: of two that were recovered one is kept. What islands have taken from the other one comes before the next generation. */
  calmDown(): void {
    const { world } = this.#stage;
    const twins = this.#twins;
    if (twins === null) return;
    this.#twins = null;
    reached(this.#stage.probes, "second-recovery-refused");
    const kept = this.#ledger(twins.node);
    for (const name of this.#stage.names) {
      const ledger = this.#ledger(name);
      if (name === twins.node || ledger === null || ledger.roster === null || kept === null) continue;
      const isOthers = generationOf(ledger.roster.term) === generationOf(kept.roster?.term ?? 0);
      if (!isOthers || ledger.roster.recoveredBy === kept.roster?.recoveredBy) continue;
      world.crash(name);
      world.node(name).disk.lose((file) => file === LEDGER_NAME || file === LEASES_NAME);
      world.startAfter(name, 1);
    }
    this.#recover(twins.node);
  }

  /** `recover --force`, on this node's disk, while it does not run. False: it is in no cluster. */
  #recover(name: string): boolean {
    const { world, digest } = this.#stage;
    const known = this.#stage.voterOf(name);
    if (known === undefined || (this.#ledger(name)?.roster ?? null) === null) return false;
    world.crash(name);
    world.startAfter(name, 1);
    const ledger = this.#ledger(name);
    if (ledger === null) return false;
    const { disk } = world.node(name);
    const next = recovered(ledger, { peer: known.self, endpoint: name });
    const bytes = encodeLedger({ voter: known.self, log: known.log, ledger: next }, digest);
    disk.restore(new Map([...disk.image(), [LEDGER_NAME, bytes]]));
    reached(this.#stage.probes, "recovered-into-a-generation");
    return true;
  }

  /** As its disk has it. */
  #ledger(name: string): Ledger | null {
    const bytes = this.#stage.world.node(name).disk.directory.durable.get(LEDGER_NAME)?.durableContent();
    const read = bytes === undefined ? null : decodeLedger(bytes, this.#stage.digest);
    return read?.kind === "whole" ? read.value.ledger : null;
  }
}
