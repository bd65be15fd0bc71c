// The phases of a run of `chaos jobs`: each has its own bound, and one that does not end within it is named. What a phase was waiting for
// is left alone then: the run ends soon, and with it every process.

import { setTimeout as sleep } from "node:timers/promises";

/** Where the run has failed already, nothing is worth a longer wait. */
const FAILED_MS_MAX = 60_000;
/** For a wait that has the same bound and says why it was in vain. */
const GRACE_MS = 500;

export interface PhasesOptions {
  readonly log: (line: string) => void;
  readonly hasFailed: () => boolean;
}

export class Phases {
  readonly #options: PhasesOptions;
  readonly #startedMs = performance.now();

  constructor(options: PhasesOptions) {
    this.#options = options;
  }

  /** Since the run began, as text. */
  get seconds(): string {
    return ((performance.now() - this.#startedMs) / 1_000).toFixed(1).padStart(6);
  }

  /** `work` may use its bound for a wait that says more than the name of the phase. */
  async run<T>(name: string, limitMs: number, work: (boundMs: number) => Promise<T>): Promise<T> {
    const { log, hasFailed } = this.#options;
    const boundMs = hasFailed() ? Math.min(limitMs, FAILED_MS_MAX) : limitMs;
    log(`${this.seconds} s  phase: ${name}`);
    return await within(name, boundMs, work);
  }
}

export async function within<T>(name: string, limitMs: number, work: (boundMs: number) => Promise<T>): Promise<T> {
  const over = new AbortController();
  const working = work(limitMs);
  // Nobody waits for it any more where its time is over.
  working.catch(() => undefined);
  const late = sleep(limitMs + GRACE_MS, undefined, { signal: over.signal }).then(() => {
    throw new Error(`the phase "${name}" did not end within ${limitMs / 1_000} s`);
  });
  late.catch(() => undefined);
  try {
    return await Promise.race([working, late]);
  } finally {
    over.abort();
  }
}
