// Clocks that a test moves: time passes, and timers fire, when the test says so. Nothing here is imported by production.

import type { Instant } from "../core/trust/window.ts";
import type { Clock, Timer } from "../ports/clock.ts";

interface TestTimer {
  readonly atMs: number;
  readonly fire: () => void;
}

export class ManualClock implements Clock {
  nowMs = 1_000;
  /** How wrong the wall clock is. */
  skewMs = 0;
  /** How often it was read, and how often a timer was set. */
  reads = 0;
  timersSet = 0;
  readonly #timers = new Set<TestTimer>();
  /** Undefined: not known. With ten thousand timers, a search for each question is what takes the time. */
  #soonest: TestTimer | undefined;

  monotonicMs(): number {
    this.reads++;
    return this.nowMs;
  }

  wallMs(): number {
    this.reads++;
    return this.nowMs + this.skewMs;
  }

  setTimer(atMs: number, fire: () => void): Timer {
    this.timersSet++;
    const timer = { atMs, fire };
    this.#timers.add(timer);
    if (this.#soonest !== undefined && atMs < this.#soonest.atMs) this.#soonest = timer;
    return { cancel: () => this.#drop(timer) };
  }

  get pending(): number {
    return this.#timers.size;
  }

  get nextMs(): number {
    return this.#first?.atMs ?? Infinity;
  }

  /** Fires the timer that is due first; false when none is due. */
  fireNext(): boolean {
    const first = this.#first;
    if (first === undefined || first.atMs > this.nowMs) return false;
    this.#drop(first);
    first.fire();
    return true;
  }

  /** Both clocks; timers fire in order, and what one wakes runs before the next. */
  async advance(byMs: number): Promise<void> {
    const untilMs = this.nowMs + byMs;
    for (;;) {
      await settled();
      if (this.nextMs > untilMs) break;
      this.nowMs = Math.max(this.nowMs, this.nextMs);
      this.fireNext();
    }
    this.nowMs = Math.max(this.nowMs, untilMs);
  }

  #drop(timer: TestTimer): void {
    this.#timers.delete(timer);
    if (this.#soonest === timer) this.#soonest = undefined;
  }

  /** Of those that are due at the same time, the one that was set first. */
  get #first(): TestTimer | undefined {
    if (this.#soonest !== undefined) return this.#soonest;
    for (const timer of this.#timers) {
      if (this.#soonest === undefined || timer.atMs < this.#soonest.atMs) this.#soonest = timer;
    }
    return this.#soonest;
  }
}

/** Everything that is done takes time: so much for each look at the clock. */
export class WorkedClock extends ManualClock {
  perLookMs = 0;

  override monotonicMs(): number {
    this.nowMs += this.perLookMs;
    return this.nowMs;
  }
}

/** More than any chain of promises here is long. */
const TURNS = 50;

/** Everything that can happen without time passing has happened. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await Promise.resolve();
}

export class HandClock extends ManualClock {
  override skewMs = 1_767_225_599_000;

  get now(): Instant {
    return { monotonicMs: this.nowMs, wallMs: this.nowMs + this.skewMs };
  }

  /** As a process that was stopped: time passes, and no timer has fired yet. */
  stop(byMs: number): void {
    this.nowMs += byMs;
  }

  /** As a clock that was set, or a machine that slept: its monotonic clock, and with it every timer, stood still. */
  jumpWall(byMs: number): void {
    this.skewMs += byMs;
  }
}
