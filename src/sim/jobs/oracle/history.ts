// What became of one job by the committed events alone, in this room's own words: nothing here is shared with the code that
// decides. Each event is held against what may follow; a moment is what the job was after one of them.

import { CLOCK_SKIP_MS_MIN } from "../../../core/kit/limits.ts";
import type { JobSpec, JobState } from "../../../core/jobs/model.ts";
import { SIM_DRIFT_MAX } from "../knobs.ts";

/** `forgotten`: its retention is over, and nobody has to know it any more. */
export type SeenState = JobState | "forgotten";

export interface Moment {
  readonly sequence: number;
  readonly state: SeenState;
  readonly jobEpoch: number;
  readonly leaseId: string | null;
  readonly session: string | null;
}

export interface SeenEvent {
  readonly sequence: number;
  readonly eventType: string;
  readonly entityId: string;
  readonly leaderEpoch: number;
  readonly timestamp: number;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** How a lease ended: what was reported of it, or why it was taken. */
export interface LeaseEnd {
  readonly sequence: number;
  readonly cause: string;
  readonly state: JobState;
}

export class JobHistory {
  readonly spec: JobSpec;
  readonly ends = new Map<string, LeaseEnd>();
  readonly #moments: Moment[];
  /** When its last event but its end was: by its own time, and by the world's. */
  #finished = { timestamp: 0, nowMs: 0, leaderEpoch: 0 };

  constructor(event: SeenEvent) {
    this.spec = event.payload["spec"] as JobSpec;
    this.#moments = [{ sequence: event.sequence, state: "pending", jobEpoch: 0, leaseId: null, session: null }];
  }

  get now(): Moment {
    return this.#moments.at(-1)!;
  }

  /** How often it was given to somebody. */
  get assignments(): number {
    return this.#moments.filter(({ state }) => state === "assigned").length;
  }

  get isFinal(): boolean {
    return isFinal(this.now.state);
  }

  /** After this event; null before it was submitted. */
  at(sequence: number): Moment | null {
    return this.#moments.findLast((moment) => moment.sequence <= sequence) ?? null;
  }

  /** Whether it was so at any time between the two, both included. */
  everBetween(from: number, to: number, isSo: (moment: Moment) => boolean): boolean {
    const first = this.at(from);
    if (first !== null && isSo(first)) return true;
    return this.#moments.some((moment) => moment.sequence > from && moment.sequence <= to && isSo(moment));
  }

  /** What it was at any time between the two, both included, and up to which event it stayed so. */
  during(from: number, to: number): readonly { readonly moment: Moment; readonly through: number }[] {
    return this.#moments
      .map((moment, at) => ({ moment, through: Math.min(to, (this.#moments[at + 1]?.sequence ?? Infinity) - 1) }))
      .filter(({ moment, through }) => moment.sequence <= to && through >= from);
  }

  /** After the first of the two events, and up to the second. */
  between(from: number, to: number): readonly Moment[] {
    return this.#moments.filter(({ sequence }) => sequence > from && sequence <= to);
  }

  /** What is wrong with this event, or null. */
  take(event: SeenEvent, nowMs: number): string | null {
    const { now } = this;
    const { sequence, eventType, payload, timestamp, leaderEpoch } = event;
    if (eventType === "build:forgotten") return this.#forget(event, nowMs);
    this.#finished = { timestamp, nowMs, leaderEpoch };
    const jobEpoch = payload["jobEpoch"] as number;
    const leaseId = (payload["leaseHash"] ?? null) as string | null;
    const isHolders = leaseId !== null && leaseId === now.leaseId;
    if (!(jobEpoch >= now.jobEpoch)) return `its epoch falls from ${now.jobEpoch} to ${jobEpoch}`;
    const next = (state: JobState, session: string | null = null): void => {
      this.#moments.push({
        sequence,
        state,
        jobEpoch,
        leaseId: session === null ? null : (leaseId ?? now.leaseId),
        session,
      });
    };
    switch (eventType) {
      case "build:assigned":
        if (now.state !== "pending") return `it is assigned while it is ${now.state}`;
        if (jobEpoch <= now.jobEpoch) return `it is assigned without a higher epoch`;
        next("assigned", payload["sessionHash"] as string);
        return null;
      case "build:building":
        if (!isHolders || jobEpoch !== now.jobEpoch) return "progress of a lease that is over";
        next(now.state === "cancelling" ? "cancelling" : "building", now.session);
        return null;
      case "build:log":
        return isHolders && jobEpoch === now.jobEpoch ? null : "a log of a lease that is over";
      case "build:cancelling":
        if (now.leaseId === null || isFinal(now.state)) return `it is being cancelled while it is ${now.state}`;
        next("cancelling", now.session);
        return null;
      case "build:completed":
        if (!isHolders || jobEpoch !== now.jobEpoch)
          return `a result of a lease that is over is committed, while it is ${now.state}`;
        if ((payload["result"] as { lease?: unknown }).lease !== leaseId)
          return "the result of another lease is committed";
        this.ends.set(leaseId, { sequence, cause: "completed", state: "completed" });
        next("completed");
        return null;
      default:
        return this.#ended(event, leaseId, next);
    }
  }

  #forget({ sequence, timestamp, leaderEpoch }: SeenEvent, nowMs: number): string | null {
    const { now } = this;
    if (now.state === "forgotten" || !isFinal(now.state)) return `it is forgotten while it is ${now.state}`;
    const keptMs = timestamp - this.#finished.timestamp;
    // Decided in whole milliseconds.
    if (keptMs < this.spec.retentionMs - 1) return `it is forgotten after ${keptMs} of ${this.spec.retentionMs} ms`;
    // Clocks drift, and each leader may jump by a little without a word (CLOCK_SKIP_MS_MIN).
    const leaders = leaderEpoch - this.#finished.leaderEpoch + 1;
    const leastMs = this.spec.retentionMs * (1 - 2 * SIM_DRIFT_MAX) - leaders * CLOCK_SKIP_MS_MIN;
    const passedMs = Math.round(nowMs - this.#finished.nowMs);
    if (passedMs < leastMs)
      return `it is forgotten ${passedMs} ms of the world's after its end, of ${this.spec.retentionMs}`;
    this.#moments.push({ sequence, state: "forgotten", jobEpoch: now.jobEpoch, leaseId: null, session: null });
    return null;
  }

  #ended(event: SeenEvent, leaseId: string | null, next: (state: JobState) => void): string | null {
    const { sequence, eventType, payload } = event;
    const { now } = this;
    const state = ({ "build:failed": "failed", "build:cancelled": "cancelled", "build:retried": "pending" } as const)[
      eventType
    ];
    if (state === undefined) return `nobody knows what ${eventType} is`;
    if (leaseId === null) {
      const isWrong = eventType === "build:retried" ? !isFinal(now.state) : now.state !== "pending";
      if (isWrong) return `${eventType} by hand while it is ${now.state}`;
    } else {
      if (leaseId !== now.leaseId) return `${eventType} ends a lease that is over`;
      this.ends.set(leaseId, { sequence, cause: payload["cause"] as string, state });
    }
    next(state);
    return null;
  }
}

export function isFinal(state: SeenState): boolean {
  return state === "forgotten" || state === "completed" || state === "failed" || state === "cancelled";
}
