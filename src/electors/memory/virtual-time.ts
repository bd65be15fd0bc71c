// Virtual time of a test: one queue of events, moved by hand.
// States: idle → moving (`advance`) → idle; calls of `advance` while it moves wait for their turn.
// Invariants: time never goes back; events fire in order of time, then of scheduling; between two events every promise
// that could settle has settled, so what one timer woke has run before the next one fires.

import { assert } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { Timer } from "../../ports/clock.ts";
import { MEMORY_EVENTS_PER_INSTANT_MAX } from "../limits.ts";

/** Resolves when all promises that can settle have settled. */
export type Settle = () => Promise<void>;

interface Event {
  readonly atMs: number;
  readonly fire: () => void;
}

export class VirtualTime {
  readonly #settle: Settle;
  /** Sorted by time; equal times in order of scheduling. */
  readonly #events: Event[] = [];
  #nowMs = 0;
  #moving: Promise<void> = Promise.resolve();

  constructor(settle: Settle) {
    this.#settle = settle;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** A time in the past means: now, after what is due already. */
  schedule(atMs: number, fire: () => void): Timer {
    assert(!Number.isNaN(atMs), "an event has a time");
    const event: Event = { atMs: Math.max(atMs, this.#nowMs), fire };
    let index = this.#events.length;
    while (index > 0 && (this.#events[index - 1]?.atMs ?? 0) > event.atMs) index--;
    this.#events.splice(index, 0, event);
    return {
      cancel: () => {
        const place = this.#events.indexOf(event);
        if (place !== -1) this.#events.splice(place, 1);
      },
    };
  }

  advance(byMs: number): Promise<void> {
    if (!Number.isFinite(byMs) || byMs < 0) {
      const message = `advance(${byMs}): time moves forward only; give a number of milliseconds that is 0 or more.`;
      return Promise.reject(new TenureError("CONFIG_INVALID", message));
    }
    const moved = this.#moving.then(() => this.#moveTo(this.#nowMs + byMs));
    this.#moving = moved.catch(() => undefined);
    return moved;
  }

  /** Lets everything happen that happens now, without moving time. */
  settle(): Promise<void> {
    return this.advance(0);
  }

  /** Runs each of these in order, as turns of one event loop: what one of them wakes runs before the next. */
  turns(work: readonly (() => void)[]): void {
    for (const turn of work) this.schedule(this.#nowMs, turn);
  }

  async #moveTo(untilMs: number): Promise<void> {
    await this.#settle();
    let thisInstant = 0;
    for (;;) {
      const event = this.#events[0];
      if (event === undefined || event.atMs > untilMs) break;
      this.#events.shift();
      thisInstant = event.atMs > this.#nowMs ? 1 : thisInstant + 1;
      assert(
        thisInstant <= MEMORY_EVENTS_PER_INSTANT_MAX,
        "virtual time moves",
        () => `${MEMORY_EVENTS_PER_INSTANT_MAX} events at ${this.#nowMs} ms: a timer arms itself again at once`,
      );
      this.#nowMs = event.atMs;
      event.fire();
      await this.#settle();
    }
    this.#nowMs = untilMs;
  }
}
