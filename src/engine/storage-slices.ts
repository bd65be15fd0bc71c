// Long computations that let the event loop run in between: a node that is busy for 100 ms misses heartbeats.

import { restAfterMs } from "../core/kit/giving-way.ts";
import type { Clock } from "../ports/clock.ts";

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
    if (clock !== undefined) await turnOf(clock);
  }
}

/** The next turn of the event loop. */
function turnOf(clock: Clock): Promise<void> {
  return at(clock, clock.monotonicMs());
}

/** A later turn, where there is much else to do. */
export async function giveWay(clock: Clock): Promise<void> {
  const askedMs = clock.monotonicMs();
  await turnOf(clock);
  const nowMs = clock.monotonicMs();
  const restMs = restAfterMs(nowMs - askedMs);
  if (restMs > 0) await at(clock, nowMs + restMs);
}

function at(clock: Clock, atMs: number): Promise<void> {
  return new Promise((resume) => void clock.setTimer(atMs, resume));
}
