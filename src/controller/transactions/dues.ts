// Things that are due some time from now, by key, on this leader's own monotonic clock (trap 56b). What is due at once is done in slices of a turn:
// however many there are, none of the loop's turns takes all of them.

import { LOOP_STALL_MS } from "../../core/kit/limits.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import { Leases } from "../leases.ts";
import { Slice } from "../slice.ts";

export class Dues {
  readonly #clock: Clock;
  readonly #due: (key: string) => void;
  /** As leases that nobody renews: the time in which the process stood still does not count. */
  readonly #leases = new Leases();
  #timer: Timer | null = null;
  #armedMs = Infinity;
  #isOver = false;

  /** `due`: is called once for each start, unless it was dropped or started again before. */
  constructor(clock: Clock, due: (key: string) => void) {
    this.#clock = clock;
    this.#due = due;
  }

  get size(): number {
    return this.#leases.size;
  }

  has(key: string): boolean {
    return this.#leases.has(key, 0);
  }

  /** Due in `afterMs`, whatever was set before. */
  start(key: string, afterMs: number): void {
    if (this.#isOver) return;
    this.#leases.start(key, 0, afterMs, this.#clock.monotonicMs());
    this.#arm();
  }

  drop(key: string): void {
    this.#leases.drop(key);
  }

  end(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#leases.clear();
  }

  #arm(): void {
    const { nextMs } = this.#leases;
    if (this.#isOver || nextMs >= this.#armedMs) return;
    this.#timer?.cancel();
    this.#armedMs = nextMs;
    this.#timer = this.#clock.setTimer(Math.max(nextMs, this.#clock.monotonicMs()), () => this.#look(nextMs));
  }

  #look(dueMs: number): void {
    this.#armedMs = Infinity;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - dueMs >= LOOP_STALL_MS) this.#leases.stalled(nowMs - dueMs);
    const slice = new Slice(this.#clock);
    for (const { key } of this.#leases.takeEach(nowMs, 0, slice)) {
      this.#leases.drop(key);
      this.#due(key);
      if (this.#isOver) return;
    }
    this.#arm();
  }
}
