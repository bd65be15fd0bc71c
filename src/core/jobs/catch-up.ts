// Which times of a schedule are due, and what is done about those that were missed: they passed long before anybody who led
// came to them.
//
// A time is searched for, not counted up to: after a month without a leader a schedule of each minute has 43,200 of them.

import { SCHEDULE_CATCH_UP_MAX, SCHEDULE_LATE_MS_MAX } from "../kit/limits.ts";
import type { Schedule } from "./model.ts";

/** The first time behind this one; null: never. */
export type NextTime = (afterMs: number) => number | null;

export interface DueTimes {
  /** To be fired, in order. */
  readonly fire: readonly number[];
  /** It, and all before it, are left out as missed. Null: nothing is, or what is fired makes it so. */
  readonly missedMs: number | null;
}

const NOTHING: DueTimes = { fire: [], missedMs: null };

/** `upToMs`: times up to it are no more its business. */
export function dueTimes(catchUp: Schedule["catchUp"], next: NextTime, upToMs: number, wallMs: number): DueTimes {
  const first = next(upToMs);
  if (first === null || first > wallMs) return NOTHING;
  const last = lastTime(next, first, wallMs);
  switch (catchUp) {
    case "none":
      return last < wallMs - SCHEDULE_LATE_MS_MAX ? { fire: [], missedMs: last } : { fire: [last], missedMs: null };
    case "last":
      return { fire: [last], missedMs: null };
    case "all":
      return { fire: lastTimes(next, first, last), missedMs: null };
    default:
      return catchUp satisfies never;
  }
}

/** The last of at most SCHEDULE_CATCH_UP_MAX from `first` to `last`, which are times. */
function lastTimes(next: NextTime, first: number, last: number): readonly number[] {
  const times = [last];
  while (times.length < SCHEDULE_CATCH_UP_MAX && (times[0] as number) > first) {
    times.unshift(lastTime(next, first, (times[0] as number) - 1));
  }
  return times;
}

/** The last time up to `untilMs`; `first` is one. */
function lastTime(next: NextTime, first: number, untilMs: number): number {
  // Up to `found` there is one more; behind `past` there is none.
  let found = first;
  let past = untilMs;
  while (found < past) {
    const middle = Math.floor((found + past) / 2);
    const at = next(middle);
    if (at === null || at > untilMs) past = middle;
    else found = at;
  }
  return found;
}
