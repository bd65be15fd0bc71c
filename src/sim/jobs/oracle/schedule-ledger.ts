// What became of schedules by the committed events alone, in this room's own words: which times each of them has, one after the
// other from a table, and what may be fired of them. Nothing here is shared with the code that searches for times.
//
// - A time is fired at most once, in order, not before it comes, and not of a schedule that is paused or gone.
// - Of one that catches up with all times none is left out, unless the last hundred were due by then.
// - One that does not overlap itself has one live job at most by its own doing: none is fired while another, also one that
//   somebody has sent once more, is not finished.
// - In the end nobody owes a time.

import type { Schedule } from "../../../core/jobs/model.ts";
import { isFinal, type SeenEvent, type SeenState } from "./history.ts";
import { type JobsProbeCounts, reached } from "../probes.ts";

const MINUTE_MS = 60_000;
/** As documented: the last hundred. */
const CAUGHT_UP_MAX = 100;
/** Later than this, by what anybody may believe, a time was missed. */
const LATE_MS = 180_000;

/** The minutes of an hour that each cron line means: all that simulated schedules use. */
const LINES: Readonly<Record<string, (minute: number) => boolean>> = {
  "* * * * *": () => true,
  "*/5 * * * *": (minute) => minute % 5 === 0,
  "*/20 * * * *": (minute) => minute % 20 === 0,
  "7,37 * * * *": (minute) => minute === 7 || minute === 37,
};
export const CRON_LINES: readonly string[] = Object.keys(LINES);

/** Zones, and how many minutes they are ahead. */
export const ZONE_MINUTES: Readonly<Record<string, number>> = { UTC: 0, "Asia/Kathmandu": 345 };

interface Seen {
  readonly schedule: Schedule;
  /** Times up to it are not its business. */
  readonly sinceMs: number;
  readonly lastAtMs: number | null;
  readonly leaderEpoch: number;
}

const decoder = new TextDecoder();

export class ScheduleLedger {
  readonly #probes: JobsProbeCounts;
  readonly #wrong: (node: string, what: string) => void;
  readonly #latest: () => number;
  readonly #schedules = new Map<string, Seen>();
  readonly #requests = new Set<string>();
  /** Jobs of schedules: of which, and those that are not finished. */
  readonly #jobs = new Map<string, string>();
  readonly #live = new Map<string, Set<string>>();

  /** `latestMs`: no server may believe that it is later; Infinity where most clocks may be wrong. */
  constructor(probes: JobsProbeCounts, wrong: (node: string, what: string) => void, latestMs: () => number) {
    this.#probes = probes;
    this.#wrong = wrong;
    this.#latest = latestMs;
  }

  committed(node: string, data: Uint8Array): void {
    const event = JSON.parse(decoder.decode(data)) as SeenEvent;
    const { eventType, entityId: name, payload, leaderEpoch } = event;
    if (eventType === "schedule:put") this.#put(name, payload, leaderEpoch);
    else if (eventType === "schedule:deleted") this.#schedules.delete(name);
    else if (eventType === "schedule:fired") this.#fired(node, name, event);
    else if (eventType.startsWith("build:")) this.#build(event);
  }

  /** Jobs of schedules that are finished. */
  ended(): readonly string[] {
    return [...this.#jobs].filter(([jobId, name]) => this.#live.get(name)?.has(jobId) !== true).map(([jobId]) => jobId);
  }

  /** A client was answered that it is done. */
  answered(node: string, key: string): void {
    if (!this.#requests.has(key)) this.#wrong(node, `said that ${key} is done, which is not committed`);
  }

  /** Null: by this wall time nobody owes anything. */
  owed(wallMs: number): string | null {
    for (const [name, { schedule, ...seen }] of this.#schedules) {
      const first = schedule.paused ? undefined : timesOf(schedule, upTo(seen), wallMs, 1)[0];
      if (first !== undefined) return `schedule ${name} owes its time of ${first}, and it is ${wallMs}`;
    }
    return null;
  }

  #build({ eventType, entityId: jobId, payload }: SeenEvent): void {
    const known = payload["schedule"];
    if (eventType === "build:submitted" && typeof known === "string") this.#jobs.set(jobId, known);
    const name = this.#jobs.get(jobId);
    if (name === undefined) return;
    const live = this.#live.get(name) ?? new Set();
    this.#live.set(name, live);
    if (isFinal(eventType.slice("build:".length) as SeenState)) live.delete(jobId);
    else live.add(jobId);
  }

  #put(name: string, payload: SeenEvent["payload"], leaderEpoch: number): void {
    const { schedule, wallMs, request } = payload as { schedule: Schedule; wallMs: number; request?: { key: string } };
    if (request !== undefined) this.#requests.add(request.key);
    const before = this.#schedules.get(name);
    const isSame = before?.schedule.cron === schedule.cron && before.schedule.timeZone === schedule.timeZone;
    const goesOn = isSame && (schedule.paused || !before.schedule.paused);
    const sinceMs = goesOn ? before.sinceMs : wallMs;
    this.#schedules.set(name, { schedule, sinceMs, lastAtMs: isSame ? before.lastAtMs : null, leaderEpoch });
  }

  #fired(node: string, name: string, { payload, leaderEpoch }: SeenEvent): void {
    const { atMs, jobId } = payload as { atMs: number; jobId: string | null };
    const time = `its time of ${atMs}`;
    const seen = this.#schedules.get(name);
    if (seen === undefined || seen.schedule.paused)
      return this.#wrong(node, `fired schedule ${name}, which is not there`);
    const { schedule, lastAtMs } = seen;
    const from = upTo(seen);
    const latestMs = this.#latest();
    const isLate = Number.isFinite(latestMs) && atMs < latestMs - LATE_MS;
    if (atMs <= from) return this.#wrong(node, `fired ${name} for ${time} again, or of before it was put`);
    if (atMs > latestMs) return this.#wrong(node, `fired ${name} for ${time}, which is still to come`);
    const before = timesOf(schedule, from, atMs);
    if (before.pop() !== atMs)
      return this.#wrong(node, `fired ${name} for ${time}, which is no time of ${schedule.cron}`);
    if (schedule.catchUp === "all" && before.length > 0) {
      const left = timesOf(schedule, atMs - 1, latestMs, CAUGHT_UP_MAX).length;
      if (left < CAUGHT_UP_MAX) {
        const what = `left out ${before.length} times of ${name} before ${time}, with ${left} due from there on`;
        return this.#wrong(node, what);
      }
      reached(this.#probes, "oldest-missed-times-left-out");
    }
    const [other] = this.#live.get(name) ?? [];
    if (jobId !== null && schedule.overlap === "skip" && other !== undefined)
      return this.#wrong(node, `fired ${name} for ${time}, though its job ${other} is not finished`);
    if (jobId === null && schedule.overlap === "allow" && schedule.catchUp !== "none")
      return this.#wrong(node, `fired ${name} for ${time} without a job`);
    if (isLate) reached(this.#probes, "missed-time-fired");
    if (lastAtMs !== null && leaderEpoch > seen.leaderEpoch && isLate)
      reached(this.#probes, "caught-up-by-two-leaders");
    this.#schedules.set(name, { ...seen, lastAtMs: atMs, leaderEpoch });
  }
}

function upTo({ sinceMs, lastAtMs }: Pick<Seen, "sinceMs" | "lastAtMs">): number {
  return Math.max(sinceMs, lastAtMs ?? 0);
}

/** After `fromMs` and up to `untilMs`: each minute is looked at. */
function timesOf({ cron, timeZone }: Schedule, fromMs: number, untilMs: number, max = Infinity): number[] {
  const isMeant = LINES[cron]!;
  const times: number[] = [];
  let atMs = (Math.floor(fromMs / MINUTE_MS) + 1) * MINUTE_MS;
  for (; atMs <= untilMs && times.length < max; atMs += MINUTE_MS) {
    const minute = (((atMs / MINUTE_MS + ZONE_MINUTES[timeZone]!) % 60) + 60) % 60;
    if (isMeant(minute)) times.push(atMs);
  }
  return times;
}
