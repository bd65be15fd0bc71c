// One elector's place at one scope in Postgres: a holder that campaigns and leads (block.ts or poll.ts), the shared
// observer, and what a term can do with the database.

import type { Beat, Claim, Grant, Hold, Seat } from "../../../ports/backends/backend.ts";
import type { Leader } from "../../../ports/elector.ts";
import type { Holder, Scoped } from "./holder.ts";
import type { Observer } from "../watch.ts";

export interface SeatTools<Extras extends object> {
  readonly scoped: Scoped;
  readonly holder: Holder;
  readonly observer: Observer;
  readonly extras: (hold: Hold) => Extras;
  /** The last seat that leaves closes what they share. */
  readonly left: () => Promise<void>;
}

export class PostgresSeat<Extras extends object> implements Seat<Extras> {
  readonly scopeKey: string;
  readonly #claim: Claim;
  readonly #tools: SeatTools<Extras>;
  readonly #unwatches = new Set<() => void>();
  #closed: Promise<void> | undefined;

  constructor(tools: SeatTools<Extras>) {
    this.#tools = tools;
    this.scopeKey = tools.scoped.key;
    this.#claim = tools.scoped.claim;
  }

  acquire(): Promise<Grant> {
    return this.#tools.holder.acquire();
  }

  beat(epoch: number): Promise<Beat> {
    return this.#tools.holder.beat(epoch);
  }

  release(epoch: number): Promise<void> {
    return this.#tools.holder.release(epoch);
  }

  abandon(): void {
    this.#tools.holder.abandon();
  }

  watch(tell: (leader: Leader | null) => void, failed: (error: unknown) => void): () => void {
    const unwatch = this.#tools.observer.watch(this.scopeKey, this.#claim.scope, tell, failed);
    this.#unwatches.add(unwatch);
    return () => {
      this.#unwatches.delete(unwatch);
      unwatch();
    };
  }

  leader(): Promise<Leader | null> {
    return this.#tools.observer.read(this.scopeKey, this.#claim.scope);
  }

  extras(hold: Hold): Extras {
    return this.#tools.extras(hold);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    for (const unwatch of this.#unwatches) unwatch();
    await this.#tools.holder.close();
    await this.#tools.left();
  }
}
