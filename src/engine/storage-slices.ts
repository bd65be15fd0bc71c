// Long computations that let the event loop run in between: a node that is busy for 100 ms misses heartbeats.

import type { Clock } from "../ports/clock.ts";

/** Takes one slice after the other, each in a turn of its own. Without a clock all of them at once. */
export async function inSlices<T>(slices: Generator<void, T>, clock: Clock | undefined): Promise<T> {
  for (;;) {
    const step = slices.next();
    if (step.done === true) return step.value;
    if (clock !== undefined) await new Promise<void>((resume) => clock.setTimer(clock.monotonicMs(), resume));
  }
}
