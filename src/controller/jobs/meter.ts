// What one leader has done about jobs, counted for its metrics from the events that it wrote itself, when they are committed.
// What others wrote is theirs to count: over all nodes each event counts once, and what a node reads again when it starts
// counts nowhere.
//
// Times are between an event's and the time that is believed then: to the millisecond, and wrong where clocks were set meanwhile.

import { Histogram } from "../../core/kit/histogram.ts";
import { Shards } from "../../core/kit/keyed/shards.ts";
import type { StoredEvent } from "../../core/events/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Leadership } from "../../ports/leadership.ts";
import type { JobsCounts } from "../../ports/server-stats.ts";
import { JOBS_TIMED_MAX } from "./limits.ts";

export interface JobsMeterOptions {
  readonly leadership: Pick<Leadership, "epoch">;
  readonly clock: Pick<Clock, "wallMs">;
}

export class JobsMeter {
  readonly #options: JobsMeterOptions;
  #submitted = 0;
  #leased = 0;
  readonly #finished: Record<keyof JobsCounts["finished"], number> = { completed: 0, failed: 0, cancelled: 0 };
  readonly #retried: Record<keyof JobsCounts["retried"], number> = {
    failed: 0,
    "timed-out": 0,
    lost: 0,
    "handed-back": 0,
    undelivered: 0,
    asked: 0,
  };
  readonly #commitMs = new Histogram();
  readonly #assignedMs = new Histogram();
  readonly #scheduleLagMs = new Histogram();
  /** Since when each could have been given away. */
  readonly #waiting = new Shards<number>();
  /** The last one in which this node led: asked for once, and not for each event. */
  #ownEpoch = 0;

  constructor(options: JobsMeterOptions) {
    this.#options = options;
  }

  /** Of every event that is applied here, in order. */
  applied({ eventType, entityId, leaderEpoch, payload, timestamp }: StoredEvent): void {
    if (!this.#isOwn(leaderEpoch)) return;
    switch (eventType) {
      case "build:submitted":
        this.#submitted++;
        this.#commitMs.record(this.#sinceMs(timestamp));
        return this.#wait(entityId, timestamp, payload);
      case "build:assigned":
        this.#leased++;
        return this.#given(entityId);
      case "build:completed":
      case "build:failed":
      case "build:cancelled":
        this.#finished[FINISHED[eventType]]++;
        this.#waiting.delete(entityId);
        return;
      case "build:retried":
        this.#countRetry(payload["cause"]);
        return;
      case "schedule:fired":
        this.#scheduleLagMs.record(Math.max(0, timestamp - Number(payload["atMs"])));
        return;
      default:
    }
  }

  counts(): JobsCounts {
    return {
      submitted: this.#submitted,
      leased: this.#leased,
      finished: { ...this.#finished },
      retried: { ...this.#retried },
      commitMs: this.#commitMs.snapshot(),
      assignedMs: this.#assignedMs.snapshot(),
      scheduleLagMs: this.#scheduleLagMs.snapshot(),
    };
  }

  #isOwn(leaderEpoch: number): boolean {
    // Only a yes is kept: a gate that is closed for a moment says no, and opens again in the same epoch.
    if (leaderEpoch !== this.#ownEpoch && this.#options.leadership.epoch() === leaderEpoch)
      this.#ownEpoch = leaderEpoch;
    return leaderEpoch === this.#ownEpoch;
  }

  #wait(jobId: string, timestamp: number, payload: StoredEvent["payload"]): void {
    if (this.#waiting.size >= JOBS_TIMED_MAX) return;
    const { notBeforeMs } = payload["spec"] as { readonly notBeforeMs: number | null };
    this.#waiting.set(jobId, Math.max(timestamp, notBeforeMs ?? 0));
  }

  /** The first time only: what is given again was retried, and waits for its backoff. */
  #given(jobId: string): void {
    const sinceMs = this.#waiting.get(jobId);
    if (sinceMs === undefined) return;
    this.#waiting.delete(jobId);
    this.#assignedMs.record(this.#sinceMs(sinceMs));
  }

  #countRetry(cause: unknown): void {
    if (typeof cause === "string" && Object.hasOwn(this.#retried, cause)) {
      this.#retried[cause as keyof JobsCounts["retried"]]++;
    }
  }

  /** Event times may be a little ahead of the clock, so that they grow with each event. */
  #sinceMs(atMs: number): number {
    return Math.max(0, this.#options.clock.wallMs() - atMs);
  }
}

const FINISHED = {
  "build:completed": "completed",
  "build:failed": "failed",
  "build:cancelled": "cancelled",
} as const;
