// Does something that should go on for ever, again and again until it is stopped: with a pause after each failure that
// doubles up to a bound, and starts small again once it has worked.

import { TenureError } from "../core/kit/errors.ts";
import type { Random } from "../core/kit/random.ts";
import type { Timing } from "../core/trust/window.ts";
import { pause } from "../loops/time.ts";
import type { Clock } from "../ports/clock.ts";
import { RETRY_DOUBLINGS_MAX } from "./limits.ts";

export interface Persistence {
  readonly clock: Clock;
  readonly random: Random;
  readonly timing: Timing;
  readonly signal: AbortSignal;
  readonly failed: (error: unknown) => void;
}

/** Resolves when `task` does, or soon after the signal has aborted. Never rejects. */
export async function persist(how: Persistence, task: (worked: () => void) => Promise<void>): Promise<void> {
  const { random, timing, signal } = how;
  let failures = 0;
  while (!signal.aborted) {
    try {
      await task(() => {
        failures = 0;
      });
      return;
    } catch (error) {
      if (signal.aborted) return;
      how.failed(error);
    }
    const ceilingMs = Math.min(timing.retryMaxMs, timing.retryMinMs * 2 ** Math.min(failures++, RETRY_DOUBLINGS_MAX));
    await pause(how.clock, random.between(ceilingMs / 2, ceilingMs), signal);
  }
}

/** What worked before will work again, whoever has to repair it; but nobody repairs that this is another cluster, or an older state of it. */
export function passing(error: unknown): unknown {
  if (!TenureError.is(error) || error.retryable || error.code === "CLUSTER_MISMATCH") return error;
  return new TenureError("BACKEND_UNAVAILABLE", error.message, { cause: error });
}
