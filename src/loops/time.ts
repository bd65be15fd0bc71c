// Waiting, by a clock that tests and the simulator move.

import { restAfterMs } from "./giving-way.ts";
import type { Random } from "../core/kit/random.ts";
import type { Clock } from "../ports/clock.ts";

export function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resume) => void clock.setTimer(clock.monotonicMs() + ms, resume));
}

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

/** What `answer` comes to, or `late` after so long. */
export async function within<T, L>(clock: Clock, ms: number, answer: Promise<T>, late: L): Promise<T | L> {
  const { promise, resolve } = Promise.withResolvers<L>();
  const timer = clock.setTimer(clock.monotonicMs() + ms, () => resolve(late));
  try {
    return await Promise.race([answer, promise]);
  } finally {
    timer.cancel();
  }
}

/** As `within`; undefined where it fails, or takes longer. */
export function triedWithin<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T | undefined> {
  const tried: Promise<T | undefined> = work.catch(() => undefined);
  return within(clock, ms, tried, undefined);
}

/** Until the next attempt: a bound that doubles with each failure, and a random part of it. */
export function retryInMs(random: Random, failures: number, minMs: number, maxMs: number): number {
  return random.between(minMs, Math.min(minMs * 2 ** failures, maxMs));
}

/** Between two slices of work that can wait: the next turn of the loop, or a later one where there is much else to do. */
export async function giveWay(clock: Clock): Promise<void> {
  const askedMs = clock.monotonicMs();
  await sleep(clock, 0);
  const restMs = restAfterMs(clock.monotonicMs() - askedMs);
  if (restMs > 0) await sleep(clock, restMs);
}
