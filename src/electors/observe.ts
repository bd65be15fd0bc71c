// A watch as an async iterable that keeps only the latest value: memory stays bounded however slow the reader is.

import type { Leader } from "../ports/elector.ts";

type Watch = (tell: (leader: Leader | null) => void) => () => void;

export async function* observeLeader(
  watch: Watch,
  signals: readonly (AbortSignal | undefined)[],
): AsyncGenerator<Leader | null, void, undefined> {
  let pending: { readonly leader: Leader | null } | undefined;
  let wake: (() => void) | undefined;
  const onAbort = (): void => wake?.();
  const stop = watch((leader) => {
    pending = { leader };
    wake?.();
  });
  for (const signal of signals) signal?.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      if (signals.some((signal) => signal?.aborted === true)) return;
      if (pending === undefined) {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        await promise;
        continue;
      }
      const { leader } = pending;
      pending = undefined;
      yield leader;
    }
  } finally {
    stop();
    for (const signal of signals) signal?.removeEventListener("abort", onAbort);
  }
}
