// What the commands of `npm run chaos` share: a fresh seed, lines of progress, and what a signal does.

import { randomInt } from "node:crypto";

const SEED_BELOW = 2 ** 32;
const EXITS = { SIGINT: 130, SIGTERM: 143 } as const;

export function freshSeed(): number {
  return randomInt(SEED_BELOW);
}

export function log(line: string): void {
  console.error(line);
}

export interface Interruption {
  /** Aborts with the first signal; the second one ends the process, and hooks on its exit end whatever it has started. */
  readonly signal: AbortSignal;
  /** Undefined: nobody has interrupted it. */
  exitCode(): number | undefined;
}

export function interruptible(): Interruption {
  const stop = new AbortController();
  let exit: number | undefined;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(EXITS[signal]);
      exit = EXITS[signal];
      stop.abort();
    });
  }
  return { signal: stop.signal, exitCode: () => exit };
}
