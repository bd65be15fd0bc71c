// Long computations that let the event loop run in between: a node that is busy for 100 ms misses heartbeats.

import { TURN_SLICE_MS } from "../core/kit/limits.ts";
import { giveWay, sleep } from "../loops/time.ts";
import type { Clock } from "../ports/clock.ts";
import { STORAGE_TURN_BYTES_MAX } from "./limits.ts";

/** The same for an engine: what comes out is given on in the turn of the last slice, and only while it runs. */
export class Slices {
  readonly #clock: Clock;
  readonly #isRunning: () => boolean;
  readonly #failed: (error: unknown) => void;

  constructor(clock: Clock, isRunning: () => boolean, failed: (error: unknown) => void) {
    this.#clock = clock;
    this.#isRunning = isRunning;
    this.#failed = failed;
  }

  /** The first slice at once, so that what fits into one is not delayed. */
  run<T>(slices: Generator<void, T>, done: (value: T) => void): void {
    if (!this.#isRunning()) return;
    try {
      const step = slices.next();
      if (step.done === true) return done(step.value);
    } catch (error) {
      return this.#failed(error);
    }
    this.#clock.setTimer(this.#clock.monotonicMs(), () => this.run(slices, done));
  }
}

/** Takes one slice after the other, each in a turn of its own. Without a clock all of them at once. */
export async function inSlices<T>(slices: Generator<void, T>, clock: Clock | undefined): Promise<T> {
  for (;;) {
    const step = slices.next();
    if (step.done === true) return step.value;
    if (clock !== undefined) await sleep(clock, 0);
  }
}

/** Work that can wait, piece by piece: it has a slice of each turn, by the clock, and gives way to others then. */
export class GivingWay {
  readonly #clock: Clock;
  #untilMs: number;
  #bytes = 0;

  /** The first slice begins now. */
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#untilMs = clock.monotonicMs() + TURN_SLICE_MS;
  }

  /** Asked after each piece. Null: the slice goes on; otherwise the next one has begun when this resolves. */
  pause(bytes: number): Promise<void> | null {
    this.#bytes += bytes;
    return this.#bytes < STORAGE_TURN_BYTES_MAX && this.#clock.monotonicMs() < this.#untilMs ? null : this.#giveWay();
  }

  /** A later turn than the next one, where there is much else to do. */
  async #giveWay(): Promise<void> {
    await giveWay(this.#clock);
    this.#bytes = 0;
    this.#untilMs = this.#clock.monotonicMs() + TURN_SLICE_MS;
  }
}
