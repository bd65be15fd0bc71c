// For a start: a database that is away for a moment makes a node wait, and does not end it.

import { TenureError } from "../core/kit/errors.ts";
import { sleep } from "../loops/time.ts";
import type { Clock } from "../ports/clock.ts";
import { START_RETRY_MS } from "./limits.ts";

/** Asks again as long as the backend is away. Throws what else goes wrong, and the refusal itself where `signal` says stop. */
export async function untilThere<T>(ask: () => Promise<T>, clock: Clock, signal?: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const isAway = TenureError.is(error) && error.code === "BACKEND_UNAVAILABLE";
      if (!isAway || signal?.aborted === true) throw error;
    }
    await sleep(clock, START_RETRY_MS);
  }
}
