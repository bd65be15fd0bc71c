// What the benchmark of jobs drives: Tenure in two ways, and its peers. All of them do the same work: take a job with a small
// payload, hand it to a handler that does nothing, commit that it is done, and keep the row.

export const KIND = "bench";

/** `sentMs`: when its submission left, on the clock of the process that submits and handles. */
export interface Payload {
  readonly sentMs: number;
}

export interface Told {
  /** The handler was called. */
  handled(sentMs: number): void;
  /** So many are done, durably; as far as the library tells (graphile-worker says it a moment before: jobs-graphile.ts). */
  committed(jobs: number): void;
  /** It can't go on. */
  failed(error: unknown): void;
}

export interface Worker {
  stop(): Promise<void>;
}

export interface WorkOptions {
  /** How many jobs may be taken and reported at once; 1: one by one. */
  readonly batch: number;
  /** How many take jobs at the same time. */
  readonly lanes: number;
}

export interface Side {
  /** Resolves when `count` jobs are durable. `lane`: of those that submit at the same time. */
  submit(lane: number, sentMs: number, count: number): Promise<void>;
  work(options: WorkOptions, told: Told): Promise<Worker>;
  close(): Promise<void>;
}
