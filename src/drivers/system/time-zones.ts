// Time zones by the machine's own tables (Intl): what a wall clock shows at a place, at a moment.

import { TenureError } from "../../core/kit/errors.ts";

const MS_PER_MINUTE = 60_000;
/** Zones that people really use; past it the oldest goes. */
const ZONES_KEPT_MAX = 64;

export interface TimeZone {
  /** How far local time is ahead of UTC at this moment. */
  offsetMinutesAt(utcMs: number): number;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** Throws SCHEDULE_INVALID for a name that this machine does not know. */
export function timeZone(name: string): TimeZone {
  const format = formatOf(name);
  return {
    offsetMinutesAt: (utcMs) => {
      const parts = new Map(format.formatToParts(utcMs).map(({ type, value }) => [type, Number(value)]));
      const at = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
      const localMs = Date.UTC(at("year"), at("month") - 1, at("day"), at("hour"), at("minute"), at("second"));
      return Math.round((localMs - Math.floor(utcMs / 1000) * 1000) / MS_PER_MINUTE);
    },
  };
}

function formatOf(name: string): Intl.DateTimeFormat {
  const known = formats.get(name);
  if (known !== undefined) return known;
  const fields = {
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  } as const;
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-US-u-ca-gregory-nu-latn", { ...fields, timeZone: name, hourCycle: "h23" });
  } catch (error) {
    const message = `There is no time zone "${name}" here; use a name of the IANA database such as Europe/Berlin or UTC.`;
    throw new TenureError("SCHEDULE_INVALID", message, { cause: error });
  }
  if (formats.size >= ZONES_KEPT_MAX) formats.delete(formats.keys().next().value!);
  formats.set(name, format);
  return format;
}
