// Schedules as they are printed: a row or a page for people, an object for programs, and that object read back from a file.
// Pure; the fields of the object are documented in docs/reference/cli.md, and a test compares.

import type { ScheduleRequest, ScheduleView } from "../../client/index.ts";
import { toCamel, toSnake } from "../../contract/snake-case.ts";
import { labelsText } from "../agent/view.ts";
import { UsageError } from "../kit/flags.ts";
import { type Paint, PLAIN } from "../kit/colour.ts";
import { columns, duration, isoTime, printable, table, timeOrNull } from "../kit/output.ts";

export function scheduleObject(schedule: ScheduleView) {
  const { name, cron, timeZone, spec, overlap, catchUp, paused, lastAtMs, nextAtMs } = schedule;
  return {
    name,
    cron,
    time_zone: timeZone,
    overlap,
    catch_up: catchUp,
    paused,
    last_at: timeOrNull(lastAtMs),
    next_at: timeOrNull(nextAtMs),
    spec: toSnake(spec),
  };
}

/** What `show -o json` tells next to the schedule itself: a file may have it, so that what was shown can be put again. */
const SHOWN_ONLY: ReadonlySet<string> = new Set(["name", "last_at", "next_at"]);

/** The servers check the fields, and name the wrong ones. */
export function scheduleOfFile(what: string, contents: unknown): ScheduleRequest {
  if (typeof contents !== "object" || contents === null || Array.isArray(contents)) {
    throw new UsageError(`${what} must hold an object such as {"cron": "0 3 * * *", "spec": {"kind": "backup"}}`);
  }
  const own = Object.fromEntries(Object.entries(contents).filter(([field]) => !SHOWN_ONLY.has(field)));
  return toCamel(own) as unknown as ScheduleRequest;
}

export function schedulesTable(schedules: readonly ScheduleView[], paint: Paint = PLAIN): string {
  const rows = schedules.map(({ name, cron, timeZone, spec, paused, lastAtMs, nextAtMs }) => [
    name,
    cron,
    timeZone,
    spec.kind,
    paused ? "paused" : "on",
    timeOrNull(nextAtMs) ?? "-",
    timeOrNull(lastAtMs) ?? "-",
  ]);
  const head = ["NAME", "CRON", "ZONE", "KIND", "STATE", "NEXT", "LAST"];
  return table(
    head,
    rows.map((row) => row.map(printable)),
    paint,
  );
}

export function scheduleText(schedule: ScheduleView): string {
  const { name, cron, timeZone, spec, overlap, catchUp, paused, lastAtMs, nextAtMs } = schedule;
  const { concurrency, backoff, timeoutMs } = spec;
  const rows = [
    ["name", name],
    ["cron", `${cron}, in ${timeZone}`],
    ["state", paused ? "paused" : "on"],
    ["next", timeOrNull(nextAtMs) ?? "-"],
    ["last", timeOrNull(lastAtMs) ?? "-"],
    ["overlap", overlap],
    ["catch up", catchUp],
    ["kind", spec.kind],
    ["queue", spec.queue],
    ["priority", String(spec.priority)],
    ["labels", labelsText(spec.labels)],
    ["platform", spec.platform ?? "any"],
    ...(spec.notBeforeMs === null ? [] : [["not before", isoTime(spec.notBeforeMs)]]),
    ["attempts", `${spec.attemptsMax}, ${duration(backoff.baseMs)} to ${duration(backoff.maxMs)} apart`],
    ["losses", String(spec.lossesMax)],
    ["timeout", timeoutMs === null ? "none" : duration(timeoutMs)],
    ["kept for", duration(spec.retentionMs)],
    ["concurrency", concurrency === null ? "-" : `${concurrency.limit} with ${concurrency.key}`],
    ["payload", JSON.stringify(spec.payload)],
  ];
  return columns(rows.map((row) => row.map(printable)));
}
