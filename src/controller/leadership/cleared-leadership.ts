// Leadership on a node that may have a worker: whoever was given an epoch may act in it only when the node is cleared
// (ports/clearance.ts). Until then it decides nothing and answers nothing as a leader; a node that can't be cleared in time has
// another one lead.
//
//   none ──an epoch is held──▶ clearing ──cleared──▶ open ──the epoch is over──▶ none (released)
//                                 └──refused, too late──▶ given up; for a while no worker is started
//
// Invariants: an epoch is shown only between `opened(epoch)` and the next `release()`. Everybody has heard that this node does not
// lead any more before it is released.

import type { Clearance } from "../../ports/clearance.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Leadership } from "../../ports/leadership.ts";
import type { Logger } from "../../ports/logger.ts";
import { triedWithin } from "../../loops/time.ts";
import { CLEAR_MS_MAX } from "./limits.ts";

/** Leadership as it is given, by the servers' consensus or by an elector. */
export interface GivenLeadership extends Leadership {
  /** The epoch that was given to this node and is not over, also while it may not act in it for a moment. */
  held(): number | null;
}

export interface ClearedLeadershipOptions {
  readonly given: GivenLeadership;
  readonly clearance: Clearance;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Another must lead. */
  readonly giveUp: (epoch: number) => void;
}

export class ClearedLeadership implements Leadership {
  readonly #options: ClearedLeadershipOptions;
  readonly #given: GivenLeadership;
  readonly #listeners = new Set<() => void>();
  /** The epoch for which the node is cleared, or is being. */
  #held: number | null = null;
  #isOpen = false;
  #isLate = false;

  constructor(options: ClearedLeadershipOptions) {
    this.#options = options;
    this.#given = options.given;
  }

  start(): void {
    this.#given.subscribe(() => this.#look());
    if (this.#given.held() === null) this.#options.clearance.release();
    else this.#look();
  }

  epoch(): number | null {
    const epoch = this.#given.epoch();
    return this.#isOpen && epoch === this.#held ? epoch : null;
  }

  isTurningOver(): boolean {
    const held = this.#given.held();
    return (held !== null && !(this.#isOpen && held === this.#held)) || this.#given.isTurningOver();
  }

  async confirm(): Promise<boolean> {
    const epoch = this.epoch();
    return epoch !== null && (await this.#given.confirm()) && this.epoch() === epoch;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #look(): void {
    const held = this.#given.held();
    const before = this.#held;
    this.#held = held;
    if (held !== before) {
      this.#isOpen = false;
      if (held !== null) void this.#clear(held);
    }
    this.#notify();
    if (before === null || held !== null) return;
    this.#options.clearance.release(this.#isLate);
    this.#isLate = false;
  }

  async #clear(epoch: number): Promise<void> {
    const { clearance, clock, logger, giveUp } = this.#options;
    const isCleared = await triedWithin(clock, CLEAR_MS_MAX, clearance.clear(epoch));
    if (this.#held !== epoch || this.#given.held() !== epoch) return;
    if (isCleared !== true) {
      const why = `this node was elected (epoch ${epoch}), and its worker is not gone after ${CLEAR_MS_MAX} ms: another must lead`;
      logger.error({ event: "not-cleared", epoch }, why);
      this.#isLate = true;
      return giveUp(epoch);
    }
    this.#isOpen = true;
    clearance.opened(epoch);
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}
