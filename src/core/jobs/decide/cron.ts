// Five-field cron: minute, hour, day of the month, month, day of the week. Lists, ranges, steps, names of months and days;
// 7 is Sunday too. As in Vixie cron, where both day fields are given, either may match; a field that begins with `*` is not
// given.
//
// Time zones. A pattern names local times; each runs once:
// - a local time that does not exist, because clocks are put forward, runs at the moment at which they are;
// - one that exists twice, because clocks are put back, runs the first time.
// A pattern that takes every hour means "so often", not "at this time": it goes on through both, as if nothing happened.
//
// Invariants: `nextAfter` is strictly after `afterMs`, depends on its arguments alone, and looks at CRON_SEARCH_DAYS_MAX days at
// most. It holds for zones at most 16 hours away from universal time, whose clocks change by a day at most, and not twice
// within PROBE_MS on either side of a time: all that there are.

import { TenureError } from "../../kit/errors.ts";
import { CRON_CHARACTERS_MAX, CRON_SEARCH_DAYS_MAX } from "../limits.ts";

/** Minutes to add to universal time at that moment: 120 for Berlin in summer. */
export interface Zone {
  offsetMinutesAt(utcMs: number): number;
}

export interface Cron {
  readonly minutes: readonly boolean[];
  readonly hours: readonly boolean[];
  readonly daysOfMonth: readonly boolean[];
  readonly months: readonly boolean[];
  /** 0 is Sunday. */
  readonly daysOfWeek: readonly boolean[];
  /** Both day fields are given: one of them is enough. */
  readonly eitherDay: boolean;
  readonly everyHour: boolean;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** Further from a local time, read as if it were universal, than any zone is, and than any change of a zone's clocks. */
const PROBE_MS = 26 * HOUR_MS;

interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** The first is the least value. */
  readonly words: readonly string[];
}

const MINUTE: Field = { name: "minute", min: 0, max: 59, words: [] };
const HOUR: Field = { name: "hour", min: 0, max: 23, words: [] };
const DAY_OF_MONTH: Field = { name: "day of the month", min: 1, max: 31, words: [] };
const MONTH: Field = {
  name: "month",
  min: 1,
  max: 12,
  words: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const DAY_OF_WEEK: Field = {
  name: "day of the week",
  min: 0,
  max: 7,
  words: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};
const FIELDS = [MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK];

/** Throws SCHEDULE_INVALID, which names the field. */
export function parseCron(expression: string): Cron {
  const parts = expression.length > CRON_CHARACTERS_MAX ? [] : expression.trim().split(/[ \t]+/);
  const [minute, hour, day, month, weekday, ...more] = parts;
  if (minute === undefined || hour === undefined || day === undefined || month === undefined || weekday === undefined) {
    throw invalid(`${JSON.stringify(expression.slice(0, 80))} has not five fields`);
  }
  if (more.length > 0) throw invalid(`${JSON.stringify(expression.slice(0, 80))} has more than five fields`);
  const hours = parseField(hour, HOUR);
  const daysOfWeek = parseField(weekday, DAY_OF_WEEK);
  daysOfWeek[0] = daysOfWeek[0] === true || daysOfWeek[7] === true;
  return {
    minutes: parseField(minute, MINUTE),
    hours,
    daysOfMonth: parseField(day, DAY_OF_MONTH),
    months: parseField(month, MONTH),
    daysOfWeek: daysOfWeek.slice(0, 7),
    eitherDay: !day.startsWith("*") && !weekday.startsWith("*"),
    everyHour: hours.every(Boolean),
  };
}

/** The first time after `afterMs` at which it runs; null where that is never, or further away than the search goes. */
export function nextAfter(cron: Cron, afterMs: number, zone: Zone): number | null {
  const local = afterMs + offsetMs(zone, afterMs);
  const behind = nextLocal(cron, local);
  const next = behind === null ? null : firstMoment(cron, behind, afterMs, zone);
  return cron.everyHour ? earlier(next, inRepeatedHour(cron, afterMs, local, zone)) : next;
}

/** From this local time on, the first that has a moment after `afterMs`. In time's order, moments come in theirs. */
function firstMoment(cron: Cron, from: number, afterMs: number, zone: Zone): number | null {
  // Only times of an hour that is repeated or left out have none: two days of them at most.
  const until = from + 2 * PROBE_MS;
  for (let local: number | null = from; local !== null; local = nextLocal(cron, local)) {
    const moment = momentOf(local, cron.everyHour, afterMs, zone);
    if (moment !== null) return moment;
    if (local > until) return null;
  }
  return null;
}

/** When clocks show this local time, after `afterMs`; null where they did so before, or never do. */
function momentOf(local: number, everyHour: boolean, afterMs: number, zone: Zone): number | null {
  const before = offsetMs(zone, local - PROBE_MS);
  const after = offsetMs(zone, local + PROBE_MS);
  if (before === after) return local - before > afterMs ? local - before : null;
  const change = changeBetween(zone, local - PROBE_MS, local + PROBE_MS);
  if (local < change + before) {
    if (local - before > afterMs) return local - before;
    if (!everyHour) return null;
  }
  if (local >= change + after) return local - after > afterMs ? local - after : null;
  return !everyHour && change > afterMs ? change : null;
}

/** Clocks will be put back: local times that have just been come a second time. Only for patterns of every hour. */
function inRepeatedHour(cron: Cron, afterMs: number, local: number, zone: Zone): number | null {
  const before = local - afterMs;
  const after = offsetMs(zone, afterMs + PROBE_MS);
  if (after >= before) return null;
  const change = changeBetween(zone, afterMs, afterMs + PROBE_MS);
  const again = nextLocal(cron, change + after - 1);
  return again !== null && again <= local ? again - after : null;
}

/** The first moment of the new offset. */
function changeBetween(zone: Zone, from: number, to: number): number {
  const before = offsetMs(zone, from);
  let low = from;
  let high = to;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetMs(zone, middle) === before) low = middle;
    else high = middle;
  }
  return high;
}

/** The first matching local time after `local`, both as if they were universal. */
function nextLocal(cron: Cron, local: number): number | null {
  const from = (Math.floor(local / MINUTE_MS) + 1) * MINUTE_MS;
  const firstDay = Math.floor(from / DAY_MS);
  for (let day = firstDay; day < firstDay + CRON_SEARCH_DAYS_MAX; day++) {
    if (!matchesDay(cron, day)) continue;
    const minute = nextMinute(cron, day === firstDay ? (from - day * DAY_MS) / MINUTE_MS : 0);
    if (minute !== null) return day * DAY_MS + minute * MINUTE_MS;
  }
  return null;
}

/** Of a day, from this one on. */
function nextMinute(cron: Cron, from: number): number | null {
  for (let hour = Math.floor(from / 60); hour < 24; hour++) {
    if (cron.hours[hour] !== true) continue;
    const start = Math.max(from - hour * 60, 0);
    const minute = cron.minutes.indexOf(true, start);
    if (minute >= 0) return hour * 60 + minute;
  }
  return null;
}

function matchesDay(cron: Cron, day: number): boolean {
  const { month, dayOfMonth } = dateOf(day);
  if (cron.months[month] !== true) return false;
  const isDay = cron.daysOfMonth[dayOfMonth] === true;
  // The first of January 1970 was a Thursday.
  const isWeekday = cron.daysOfWeek[(((day + 4) % 7) + 7) % 7] === true;
  return cron.eitherDay ? isDay || isWeekday : isDay && isWeekday;
}

/** In the Gregorian calendar, of a number of days since 1970. Years are counted from March, so that the leap day is last. */
function dateOf(day: number): { readonly month: number; readonly dayOfMonth: number } {
  const shifted = day + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const leapDays = Math.floor(dayOfEra / 1_460) - Math.floor(dayOfEra / 36_524) + Math.floor(dayOfEra / 146_096);
  const yearOfEra = Math.floor((dayOfEra - leapDays) / 365);
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const dayOfMonth = dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1;
  return { month: monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9, dayOfMonth };
}

function offsetMs(zone: Zone, utcMs: number): number {
  return zone.offsetMinutesAt(utcMs) * MINUTE_MS;
}

function earlier(left: number | null, right: number | null): number | null {
  if (left === null || right === null) return left ?? right;
  return Math.min(left, right);
}

/** Places below the field's least value are false. */
function parseField(text: string, field: Field): boolean[] {
  const values = new Array<boolean>(field.max + 1).fill(false);
  for (const item of text.split(",")) {
    const { from, to, step } = parseItem(item, field);
    for (let value = from; value <= to; value += step) values[value] = true;
  }
  return values;
}

function parseItem(item: string, field: Field): { readonly from: number; readonly to: number; readonly step: number } {
  const [range = "", stepText, ...more] = item.split("/");
  if (more.length > 0) throw wrong(item, field, "it has two steps");
  const step = stepText === undefined ? 1 : parseStep(stepText, item, field);
  if (range === "*") return { from: field.min, to: field === DAY_OF_WEEK ? 6 : field.max, step };
  const [first = "", last, ...rest] = range.split("-");
  if (rest.length > 0) throw wrong(item, field, "it has two ends");
  const from = parseValue(first, item, field);
  if (last === undefined) {
    if (stepText !== undefined)
      throw wrong(item, field, `a step needs a range: write ${first}-${field.max}/${stepText}`);
    return { from, to: from, step };
  }
  // Sunday is also the last day of a week: "sat-sun".
  const isSundayLast = field === DAY_OF_WEEK && last.toLowerCase() === "sun";
  const to = isSundayLast ? 7 : parseValue(last, item, field);
  if (to < from) throw wrong(item, field, "it ends before it begins; write two ranges with a comma");
  return { from, to, step };
}

function parseStep(text: string, item: string, field: Field): number {
  const step = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0;
  if (step < 1 || step > field.max) throw wrong(item, field, `a step is a number from 1 to ${field.max}`);
  return step;
}

function parseValue(text: string, item: string, field: Field): number {
  const word = field.words.indexOf(text.toLowerCase());
  if (word >= 0) return field.min + word;
  const value = /^[0-9]{1,3}$/.test(text) ? Number(text) : -1;
  if (value >= field.min && value <= field.max) return value;
  const words = field.words.length === 0 ? "" : ` or a name (${field.words.join(", ")})`;
  throw wrong(item, field, `it takes ${field.min} to ${field.max}${words}`);
}

function wrong(item: string, field: Field, why: string): TenureError {
  const place = FIELDS.indexOf(field) + 1;
  return invalid(`field ${place} (${field.name}) has ${JSON.stringify(item.slice(0, 40))}: ${why}`);
}

function invalid(what: string): TenureError {
  return new TenureError(
    "SCHEDULE_INVALID",
    `the cron expression can't be read: ${what}. It has five fields with spaces between: minute, hour, day of the month, month, day of the week, as in "30 4 * * mon-fri".`,
  );
}
