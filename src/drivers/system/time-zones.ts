// Time zones by the machine's own tables (Intl): what a wall clock shows at a place, at a moment.
//
// To ask Intl takes microseconds, and a schedule's next time asks dozens of times. So what a zone was asked for is kept by days of
// universal time: the offsets at both ends, and where they differ, the moment of the change.
//
// Invariants: a zone's clocks change at most once in a day (core/jobs/decide/cron.ts rests on more than that), so equal ends mean a day
// without a change; the tables of a process never change, so what is kept is never out of date. Zones and days that are kept are
// bounded: the oldest go.

import { TenureError } from "../../core/kit/errors.ts";
import { DAYS_KEPT_MAX, ZONES_KEPT_MAX } from "./limits.ts";

const MS_PER_MINUTE = 60_000;
const MS_PER_DAY = 86_400_000;

export interface TimeZone {
  /** How far local time is ahead of UTC at this moment. */
  offsetMinutesAt(utcMs: number): number;
}

/** `changeMs`: the first moment of the offset `after`; Infinity: there is no change. */
interface Day {
  readonly before: number;
  readonly changeMs: number;
  readonly after: number;
}

const zones = new Map<string, TimeZone>();

/** Throws SCHEDULE_INVALID for a name that this machine does not know. */
export function timeZone(name: string): TimeZone {
  const known = zones.get(name);
  if (known !== undefined) return known;
  const zone = new KnownZone(formatOf(name));
  keep(zones, ZONES_KEPT_MAX, name, zone);
  return zone;
}

class KnownZone implements TimeZone {
  readonly #format: Intl.DateTimeFormat;
  readonly #days = new Map<number, Day>();

  constructor(format: Intl.DateTimeFormat) {
    this.#format = format;
  }

  offsetMinutesAt(utcMs: number): number {
    const number = Math.floor(utcMs / MS_PER_DAY);
    let day = this.#days.get(number);
    if (day === undefined) {
      day = this.#look(number);
      keep(this.#days, DAYS_KEPT_MAX, number, day);
    }
    return utcMs < day.changeMs ? day.before : day.after;
  }

  #look(number: number): Day {
    const [from, to] = [number * MS_PER_DAY, (number + 1) * MS_PER_DAY];
    const before = this.#days.get(number - 1)?.after ?? askedOffset(this.#format, from - 1);
    const after = this.#days.get(number + 1)?.before ?? askedOffset(this.#format, to - 1);
    if (before === after) return { before, changeMs: Infinity, after };
    // The first moment of the day may have the new offset: the one before it has not.
    let [low, high] = [from - 1, to - 1];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (askedOffset(this.#format, middle) === before) low = middle;
      else high = middle;
    }
    return { before, changeMs: high, after };
  }
}

/** In minutes; what a zone's offset has of seconds, a century ago, is rounded. */
function askedOffset(format: Intl.DateTimeFormat, utcMs: number): number {
  const parts = new Map(format.formatToParts(utcMs).map(({ type, value }) => [type, Number(value)]));
  const at = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
  const localMs = Date.UTC(at("year"), at("month") - 1, at("day"), at("hour"), at("minute"), at("second"));
  return Math.round((localMs - Math.floor(utcMs / 1000) * 1000) / MS_PER_MINUTE);
}

function keep<K, V>(map: Map<K, V>, most: number, key: K, value: V): void {
  if (map.size >= most) map.delete(map.keys().next().value!);
  map.set(key, value);
}

function formatOf(name: string): Intl.DateTimeFormat {
  const fields = {
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  } as const;
  try {
    return new Intl.DateTimeFormat("en-US-u-ca-gregory-nu-latn", { ...fields, timeZone: name, hourCycle: "h23" });
  } catch (error) {
    const message = `There is no time zone "${name}" here; use a name of the IANA database such as Europe/Berlin or UTC.`;
    throw new TenureError("SCHEDULE_INVALID", message, { cause: error });
  }
}
