// Applies a plan of faults to a world as its time comes, and knows which of them really fired.
// A plan is a list sorted by time; kinds that the kernel does not know are the caller's (`applyFault`).
// Invariant: each fault of the plan counts once as scheduled, and at most once as fired.

import type { Scheduler } from "./scheduler.ts";

export interface Planned {
  readonly atMs: number;
  readonly kind: string;
}

export interface FaultCount {
  scheduled: number;
  fired: number;
}

export class Injector<F extends Planned> {
  readonly counts: Record<string, FaultCount> = {};
  readonly #scheduler: Scheduler;
  readonly #applyFault: (fault: F, hit: () => void) => void;

  constructor(scheduler: Scheduler, applyFault: (fault: F, hit: () => void) => void) {
    this.#scheduler = scheduler;
    this.#applyFault = applyFault;
  }

  schedule(plan: readonly F[]): void {
    const owner = this.#scheduler.owner("faults");
    for (const fault of plan) {
      this.#count(fault.kind).scheduled++;
      this.#scheduler.schedule(fault.atMs, owner, () => this.#apply(fault));
    }
  }

  /** Kinds that were scheduled and of which not one had an effect. */
  unfired(): string[] {
    return Object.keys(this.counts)
      .filter((kind) => this.#count(kind).fired === 0)
      .toSorted();
  }

  #apply(fault: F): void {
    this.#scheduler.trace("fault", fault.kind);
    this.#scheduler.narrate("fault", () => JSON.stringify(fault));
    let fired = false;
    this.#applyFault(fault, () => {
      if (fired) return;
      fired = true;
      this.#count(fault.kind).fired++;
    });
  }

  #count(kind: string): FaultCount {
    return (this.counts[kind] ??= { scheduled: 0, fired: 0 });
  }
}
