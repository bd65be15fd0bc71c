// Jobs through one side: as many as it takes for some time, or one after the other.
//
// Full rate: several submit at once, as long as no more than so many jobs are submitted and not done: a queue that only grows
// would measure how fast something is written down, not how fast it is worked off. When the time is over, what is under way is
// finished; a job that is never done fails the run. What an earlier run left behind is worked off and not counted.

import type { Side, Told, Worker } from "./jobs-side.ts";

export interface FlowOptions {
  readonly batch: number;
  readonly submitters: number;
  readonly lanes: number;
  /** Submitted and not done, at most. */
  readonly backlogMax: number;
  readonly warmMs: number;
  readonly ms: number;
  /** There are jobs already, and they stay as many: what is under way at the end is left. */
  readonly isStanding?: boolean | undefined;
}

export interface FlowResult {
  readonly perSecond: number;
  /** From the submission's departure to the handler's call. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** All that were done, the warm-up and the end included: what the servers' time is divided by. */
  readonly jobs: number;
}

const DRAIN_MS_MAX = 30_000;
const PAUSE_MS_MAX = 8;

export async function fullRate(side: Side, options: FlowOptions): Promise<FlowResult> {
  const { batch, submitters, lanes, backlogMax, warmMs, ms, isStanding = false } = options;
  const meter = new Meter(isStanding, performance.now() + warmMs, ms);
  const worker = await side.work({ batch, lanes }, meter);
  let submitted = 0;
  const submitter = async (lane: number): Promise<void> => {
    while (performance.now() < meter.endMs) {
      if (submitted - meter.committedJobs + batch > backlogMax) {
        await meter.news();
        continue;
      }
      submitted += batch;
      await side.submit(lane, performance.now(), batch);
    }
  };
  try {
    await Promise.all(Array.from({ length: submitters }, (_, lane) => submitter(lane)));
    const wanted = isStanding ? 0 : submitted;
    while (meter.committedJobs < wanted) await meter.news();
  } finally {
    await worker.stop();
  }
  const { committedJobs } = meter;
  if (!isStanding && committedJobs > submitted) throw new Error(`${submitted} were submitted, ${committedJobs} done`);
  return meter.result();
}

/** Counts between two times; rings when there is news. */
class Meter implements Told {
  readonly endMs: number;
  committedJobs = 0;
  readonly #openedMs = performance.now();
  readonly #isStanding: boolean;
  readonly #fromMs: number;
  readonly #waitedMs: number[] = [];
  #counted = 0;
  /** Handled, of an earlier run, and not committed yet. */
  #old = 0;
  #failure: unknown = null;
  #bell = Promise.withResolvers<void>();

  constructor(isStanding: boolean, fromMs: number, ms: number) {
    this.#isStanding = isStanding;
    this.#fromMs = fromMs;
    this.endMs = fromMs + ms;
  }

  handled(sentMs: number): void {
    const nowMs = performance.now();
    if (sentMs < this.#openedMs && !this.#isStanding) this.#old++;
    else if (nowMs >= this.#fromMs && nowMs < this.endMs) this.#waitedMs.push(nowMs - sentMs);
  }

  committed(jobs: number): void {
    const nowMs = performance.now();
    const old = Math.min(jobs, this.#old);
    this.#old -= old;
    this.committedJobs += jobs - old;
    if (nowMs >= this.#fromMs && nowMs < this.endMs) this.#counted += jobs - old;
    this.#ring();
  }

  failed(error: unknown): void {
    this.#failure ??= error;
    this.#ring();
  }

  async news(): Promise<void> {
    await within(this.#bell.promise);
    if (this.#failure !== null) throw this.#failure;
  }

  result(): FlowResult {
    const perSecond = (this.#counted * 1_000) / (this.endMs - this.#fromMs);
    return { perSecond, ...percentiles(this.#waitedMs), jobs: this.committedJobs };
  }

  #ring(): void {
    this.#bell.resolve();
    this.#bell = Promise.withResolvers();
  }
}

/** One job at a time on a system that has nothing else to do. */
export async function oneByOne(side: Side, samples: number, warm: number): Promise<FlowResult> {
  const waitedMs: number[] = [];
  let handled = Promise.withResolvers<number>();
  let committed = Promise.withResolvers<void>();
  const told = {
    handled: (sentMs: number) => handled.resolve(performance.now() - sentMs),
    committed: () => committed.resolve(),
    failed: (error: unknown) => handled.reject(error),
  };
  const worker: Worker = await side.work({ batch: 1, lanes: 1 }, told);
  const startedMs = performance.now();
  for (let sample = -warm; sample < samples; sample++) {
    handled = Promise.withResolvers();
    committed = Promise.withResolvers();
    const [, ms] = await Promise.all([side.submit(0, performance.now(), 1), handled.promise, committed.promise]);
    if (sample >= 0) waitedMs.push(ms);
    // Until whoever worked waits again; of a random length, so as not to be in step with anything that has a period.
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS_MAX * (0.5 + Math.random() / 2)));
  }
  const takenMs = performance.now() - startedMs;
  await worker.stop();
  const jobs = samples + warm;
  return { perSecond: (jobs * 1_000) / takenMs, ...percentiles(waitedMs), jobs };
}

function percentiles(timesMs: readonly number[]): { readonly p50Ms: number; readonly p99Ms: number } {
  const sorted = Float64Array.from(timesMs).sort();
  const rank = (part: number): number => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
  return { p50Ms: rank(0.5), p99Ms: rank(0.99) };
}

async function within(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no job was done in ${DRAIN_MS_MAX} ms`)), DRAIN_MS_MAX);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
