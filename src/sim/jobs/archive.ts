// The history of events of one simulated server: what it has applied, whatever becomes of its processes. Behind a snapshot
// that it installed there is a hole until the others have sent what is in it. What is read has been committed.

import type { Random } from "../../core/kit/random.ts";
import type { ReplayHistory } from "../../controller/jobs/replay.ts";
import type { Clock } from "../../ports/clock.ts";
import { type JobsProbeCounts, reached } from "./probes.ts";

const BATCH_EVENTS = 8;
const READ_MS_MAX = 3;

/** Of one server, on its disk. */
export interface StoredHistory {
  /** Without a hole up to here. */
  upTo: number;
}

interface SimArchiveOptions {
  readonly stored: StoredHistory;
  readonly clock: Clock;
  readonly random: Random;
  /** How long the others take to send what is missing, at most. */
  readonly fetchMs: number;
  readonly record: (sequence: number) => Uint8Array;
  /** What this server has applied. */
  readonly position: () => number;
  readonly probes: JobsProbeCounts;
}

export class SimArchive implements ReplayHistory {
  readonly #options: SimArchiveOptions;

  constructor(options: SimArchiveOptions) {
    this.#options = options;
  }

  stats(): { readonly startSequence: number } {
    return { startSequence: 0 };
  }

  applied(position: number): void {
    const { stored } = this.#options;
    if (position === stored.upTo + 1) stored.upTo = position;
  }

  /** A snapshot of this position has taken the place of everything before. */
  restored(position: number): void {
    const { stored, clock, random, fetchMs } = this.#options;
    if (position <= stored.upTo) return;
    clock.setTimer(clock.monotonicMs() + random.between(0, fetchMs), () => {
      stored.upTo = Math.max(stored.upTo, this.#options.position());
    });
  }

  async *read(from: number, max: number): AsyncGenerator<readonly { sequence: number; bytes: Uint8Array }[]> {
    const { stored, clock, random, record, probes } = this.#options;
    reached(probes, "missed-events-read");
    const last = from + max - 1;
    if (last > stored.upTo) reached(probes, "missed-events-not-there-yet");
    for (let next = from; next <= Math.min(last, stored.upTo);) {
      await new Promise<void>((resume) => {
        clock.setTimer(clock.monotonicMs() + random.between(0, READ_MS_MAX), resume);
      });
      const until = Math.min(last, stored.upTo, next + BATCH_EVENTS - 1);
      const batch = Array.from({ length: until - next + 1 }, (_, at) => next + at);
      yield batch.map((sequence) => ({ sequence, bytes: record(sequence) }));
      next = until + 1;
    }
  }
}
