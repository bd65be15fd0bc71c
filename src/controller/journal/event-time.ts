// The time on one node, and the time of a leader's events: of the durations that the log knows of (backoffs, retentions,
// idempotency keys) and of dates and schedules. No node's wall clock decides anything by itself (docs/decisions/0026): it
// counts as far as it is believed, which is where a majority of the voters' clocks agrees (core/health/clocks.ts), and
// otherwise time passes on the monotonic clock.
//
//   events' time:  the last event, as long ago as it was applied here ──▶ goes on with the monotonic clock
//                    │ the believed time is ahead of it: jumps there, and what it jumped over is counted as skipped
//                    └ it is ahead of the believed time itself: goes on at three quarters of the pace until it is not
//
// Invariants:
// - The events' time never goes back, never stands still while time passes, and is never below the last committed event's.
//   It ends in the year 2248, which is reached by waiting alone: no clock beyond 2109 is believed.
// - Events' time less what was skipped has passed on a monotonic clock of somebody who led: nothing ages faster than that.

import { isPossible } from "../../core/health/index.ts";
import {
  CLOCK_MS_MAX,
  CLOCK_MS_MIN,
  CLOCK_SETTLING_MS,
  EVENT_TIME_AHEAD_MS,
  EVENT_TIME_MS_MAX,
} from "../../core/kit/limits.ts";
import type { Clock } from "../../ports/clock.ts";

/**
 * How fast it goes on while it is ahead: an earlier leader's clock was, or the clocks were set right. Backoffs take a third
 * longer meanwhile, and a day is made up for in four.
 */
const PACE_AHEAD = 0.75;

/** A time, and when it was that on the monotonic clock. */
interface Anchor {
  readonly timeMs: number;
  readonly atMs: number;
}

/** Of one node, whether it leads or not. */
export class NodeTime {
  readonly #clock: Clock;
  readonly #believedMs: () => number | null;
  #event: Anchor;
  #day: Anchor | null = null;

  /** `believedMs`: the time of day, where it is known for sure enough. `sinceMs`: of the last committed event; 0: none. */
  constructor(clock: Clock, believedMs: () => number | null, sinceMs: number) {
    this.#clock = clock;
    this.#believedMs = believedMs;
    this.#event = { timeMs: sinceMs, atMs: clock.monotonicMs() };
  }

  /** Of the last committed event; 0: there is none. */
  get lastMs(): number {
    return this.#event.timeMs;
  }

  /** Where nothing was ever written, nothing can be forgotten early. */
  get isFresh(): boolean {
    return this.#event.timeMs === 0;
  }

  /** This event, the last one, is committed. */
  applied(timestamp: number): void {
    this.#event = { timeMs: timestamp, atMs: this.#clock.monotonicMs() };
  }

  /** The last event's time, and what has passed here since it was applied. */
  witnessedMs(): number {
    return this.#passed(this.#event);
  }

  believedMs(): number | null {
    const believedMs = this.#believedMs();
    // Whoever says so.
    if (believedMs !== null && !isPossible(believedMs)) return null;
    if (believedMs !== null) this.#day = { timeMs: believedMs, atMs: this.#clock.monotonicMs() };
    return believedMs;
  }

  /** The time of day, in whole milliseconds: what is believed, or was and has passed since. */
  wallMs(): number {
    const believedMs = this.believedMs();
    if (believedMs !== null) return Math.floor(believedMs);
    if (this.#day !== null) return Math.floor(this.#passed(this.#day));
    return Math.floor(this.isFresh ? this.#ownMs() : this.witnessedMs());
  }

  /**
   * Whether the time of day is more than the last event's, or this node's own clock: it was believed once. Where it never is,
   * because clocks disagree, there is nothing to wait for any more after a while since then.
   */
  isSettled(sinceMs: number): boolean {
    if (this.believedMs() !== null || this.#day !== null) return true;
    return this.#clock.monotonicMs() - sinceMs >= CLOCK_SETTLING_MS;
  }

  #ownMs(): number {
    return Math.min(Math.max(this.#clock.wallMs(), CLOCK_MS_MIN), CLOCK_MS_MAX);
  }

  #passed({ timeMs, atMs }: Anchor): number {
    return timeMs + Math.max(0, this.#clock.monotonicMs() - atMs);
  }
}

/** Of one leader's events. */
export class EventTime {
  readonly #clock: Clock;
  readonly #node: NodeTime;
  #timeMs: number;
  #monotonicMs: number;
  #skippedMs = 0;
  #isWritten = false;

  constructor(clock: Clock, node: NodeTime) {
    this.#clock = clock;
    this.#node = node;
    // Whole: an event gets its fractions when it is sealed.
    this.#timeMs = Math.max(1, Math.ceil(node.isFresh ? node.wallMs() : node.witnessedMs()));
    this.#monotonicMs = clock.monotonicMs();
  }

  /** What it has jumped over since this leader began. */
  get skippedMs(): number {
    return this.#skippedMs;
  }

  /** An event has the last time that was asked for: no later one may have less, also before it is committed. */
  written(): void {
    this.#isWritten = true;
  }

  /** In whole milliseconds. */
  nowMs(): number {
    this.#goOn();
    return Math.floor(Math.min(this.#timeMs, EVENT_TIME_MS_MAX));
  }

  #goOn(): void {
    const monotonicMs = this.#clock.monotonicMs();
    const passedMs = Math.max(0, monotonicMs - this.#monotonicMs);
    this.#monotonicMs = monotonicMs;
    const believedMs = this.#node.believedMs();
    if (this.#node.isFresh && !this.#isWritten && believedMs !== null) {
      // Before the first event of all there is nothing that it could go back behind.
      this.#timeMs = Math.max(1, believedMs);
      return;
    }
    this.#timeMs = Math.max(this.#timeMs, Math.ceil(this.#node.lastMs));
    const onTimeMs = this.#timeMs + passedMs;
    if (believedMs === null) this.#timeMs = onTimeMs;
    else if (onTimeMs > believedMs + EVENT_TIME_AHEAD_MS)
      this.#timeMs = Math.max(this.#timeMs + passedMs * PACE_AHEAD, believedMs);
    else {
      this.#timeMs = Math.max(onTimeMs, believedMs);
      this.#skippedMs += this.#timeMs - onTimeMs;
    }
  }
}
