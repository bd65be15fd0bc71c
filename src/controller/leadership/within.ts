import type { Clock } from "../../ports/clock.ts";

/** What the work resolves to; undefined where it fails, or takes longer. */
export async function within<T>(clock: Clock, limitMs: number, work: Promise<T>): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const limit = clock.setTimer(clock.monotonicMs() + limitMs, () => resolve(undefined));
  const done = await Promise.race([work.catch(() => undefined), late]);
  limit.cancel();
  return done;
}
