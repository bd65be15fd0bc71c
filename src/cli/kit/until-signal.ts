// What a command that goes on for long waits for: a signal that ends it, and the exit code that says which one came.

const EXIT_SIGINT = 130;
const EXIT_SIGTERM = 143;

/** Aborts with SIGINT or SIGTERM, and knows which exit code says so. */
export function untilSignal(): { readonly signal: AbortSignal; readonly code: number } {
  const stop = new AbortController();
  let code = EXIT_SIGINT;
  for (const [signal, exit] of [
    ["SIGINT", EXIT_SIGINT],
    ["SIGTERM", EXIT_SIGTERM],
  ] as const) {
    process.once(signal, () => {
      code = exit;
      stop.abort();
    });
  }
  return {
    signal: stop.signal,
    get code() {
      return code;
    },
  };
}
