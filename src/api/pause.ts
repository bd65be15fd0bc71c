// Waiting for a moment, or until a signal says otherwise.

import type { Clock } from "../ports/clock.ts";

/** True when the time has passed; false when the signal has aborted. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (isOver: boolean): void => {
      timer.cancel();
      signal?.removeEventListener("abort", abort);
      resolve(isOver);
    };
    const abort = (): void => settle(false);
    const timer = clock.setTimer(clock.monotonicMs() + ms, () => settle(true));
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted === true) abort();
  });
}

/** A signal that aborts with `outer`, or after `ms`; `close` must be called. */
export function within(clock: Clock, ms: number, outer: AbortSignal): { signal: AbortSignal; close: () => void } {
  const controller = new AbortController();
  const abort = (): void => controller.abort("over");
  const timer = clock.setTimer(clock.monotonicMs() + ms, abort);
  outer.addEventListener("abort", abort, { once: true });
  if (outer.aborted) abort();
  const close = (): void => {
    timer.cancel();
    outer.removeEventListener("abort", abort);
  };
  return { signal: controller.signal, close };
}
