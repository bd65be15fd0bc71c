// Which times of a schedule are due, and what is done about those that were missed: they passed long before anybody who led
// came to them.
//
//   first time ──due──▶ windows that end at the wall time, and go back ──enough times, or the first one──▶ the answer
//        └──in the future──▶ the answer: nothing
//
// To ask for a time is all that costs anything, so the walk asks one question for each step, and whoever makes the steps may
// rest between them (docs/decisions/0023-turns-by-time.md). After a month without a leader a schedule of each minute has 43,200
// times, of which a hundred count. So they are walked through forwards from the newest point that may have enough of them after
// it: a window with too few times is followed by one before it that is twice as long; one with too many, by a shorter one.
//
// Invariants: `kept` holds all times between `windowEndMs` and the wall time, in order; the answer is a function of the four
// arguments, wherever the steps were interrupted.

import { SCHEDULE_CATCH_UP_MAX, SCHEDULE_LATE_MS_MAX } from "../../kit/limits.ts";
import type { Schedule } from "../model.ts";

/** The first time after this one; null: never. */
export type NextTime = (afterMs: number) => number | null;

export interface DueTimes {
  /** To be fired, in order. */
  readonly fire: readonly number[];
  /** It, and all before it, are left out as missed. Null: nothing is, or what is fired makes it so. */
  readonly missedMs: number | null;
  /** Where nothing is due: the first time that will be. Null: never, or something is due. */
  readonly nextMs: number | null;
}

const MINUTE_MS = 60_000;
/** A window may have so many times more than twice what is wanted. */
const WINDOW_SPARE = 8;

export class DueWalk {
  readonly #catchUp: Schedule["catchUp"];
  readonly #next: NextTime;
  readonly #upToMs: number;
  readonly #wallMs: number;
  readonly #wanted: number;
  #firstMs: number | null = null;
  /** The times after the present window. */
  #kept: number[] = [];
  #windowEndMs: number;
  #windowMs: number;
  /** Of the present window, so far. */
  #inWindow: number[] = [];
  /** Where the next question is asked from. */
  #atMs: number;

  /** `upToMs`: times up to it are no more its business. */
  constructor(catchUp: Schedule["catchUp"], next: NextTime, upToMs: number, wallMs: number) {
    this.#catchUp = catchUp;
    this.#next = next;
    this.#upToMs = upToMs;
    this.#wallMs = wallMs;
    this.#wanted = catchUp === "all" ? SCHEDULE_CATCH_UP_MAX : 1;
    this.#windowEndMs = wallMs;
    // Cron lines have a time in each minute at most: the shortest window that can have enough.
    this.#windowMs = this.#wanted * MINUTE_MS;
    this.#atMs = upToMs;
  }

  /** Asks `next` once. Null: not known yet. */
  step(): DueTimes | null {
    const at = this.#next(this.#atMs);
    if (this.#firstMs === null) {
      if (at === null || at > this.#wallMs) return { fire: [], missedMs: null, nextMs: at };
      this.#firstMs = at;
      this.#openWindow();
      return null;
    }
    if (at !== null && at <= this.#windowEndMs) {
      this.#inWindow.push(at);
      this.#atMs = at;
      if (this.#inWindow.length > 2 * this.#wanted + WINDOW_SPARE) {
        this.#windowMs = Math.max(1, Math.floor(this.#windowMs / 4));
        this.#openWindow();
      }
      return null;
    }
    const startMs = this.#windowStartMs;
    this.#kept = [...this.#inWindow, ...this.#kept].slice(-this.#wanted);
    if (this.#kept.length >= this.#wanted || startMs < this.#firstMs) return this.#answer();
    this.#windowEndMs = startMs;
    this.#windowMs *= 2;
    this.#openWindow();
    return null;
  }

  /** Times at it are not in the window. */
  get #windowStartMs(): number {
    return Math.max(this.#upToMs, this.#windowEndMs - this.#windowMs);
  }

  #openWindow(): void {
    this.#inWindow = [];
    this.#atMs = this.#windowStartMs;
  }

  #answer(): DueTimes {
    const fire = this.#kept;
    const last = fire.at(-1)!;
    const isMissed = this.#catchUp === "none" && last < this.#wallMs - SCHEDULE_LATE_MS_MAX;
    return isMissed ? { fire: [], missedMs: last, nextMs: null } : { fire, missedMs: null, nextMs: null };
  }
}
