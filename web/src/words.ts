// The words of the page: times, durations, why a job waits, how an attempt ended. Pure.

import type { JobAttemptView, JobState, PendingReasonView } from "../../src/client/index.ts";
import { assertNever } from "../../src/contract/errors.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Two units at most: 63 ms, 4.2 s, 3 min 10 s, 5 h 2 min, 2 d 4 h. */
export function duration(ms: number): string {
  const whole = Math.max(0, ms);
  if (whole < SECOND_MS) return `${Math.round(whole)} ms`;
  if (whole < 10 * SECOND_MS) return `${(whole / SECOND_MS).toFixed(1)} s`;
  if (whole < MINUTE_MS) return `${Math.floor(whole / SECOND_MS)} s`;
  if (whole < HOUR_MS) return pair(whole, MINUTE_MS, "min", SECOND_MS, "s");
  if (whole < DAY_MS) return pair(whole, HOUR_MS, "h", MINUTE_MS, "min");
  return pair(whole, DAY_MS, "d", HOUR_MS, "h");
}

function pair(ms: number, bigMs: number, big: string, smallMs: number, small: string): string {
  const rest = Math.floor((ms % bigMs) / smallMs);
  return `${Math.floor(ms / bigMs)} ${big}${rest === 0 ? "" : ` ${rest} ${small}`}`;
}

export function ago(atMs: number, nowMs: number): string {
  const ms = nowMs - atMs;
  if (ms < -SECOND_MS) return `in ${duration(-ms)}`;
  return ms < SECOND_MS ? "now" : `${duration(ms)} ago`;
}

/** Two figures at least: 812 B, 4.1 KiB, 63 KiB. */
export function sizeText(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`;
  const kib = bytes / 1_024;
  return kib < 10 ? `${kib.toFixed(1)} KiB` : `${Math.round(kib)} KiB`;
}

/** On the reader's clock, with milliseconds: 14:03:21.004. */
export function clockTime(atMs: number): string {
  const at = new Date(atMs);
  const ms = String(at.getMilliseconds()).padStart(3, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${ms}`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

/** With its day, in UTC: for titles, and for what may be long ago. */
export function fullTime(atMs: number): string {
  const at = new Date(atMs);
  return Number.isNaN(at.getTime()) ? "?" : at.toISOString().replace("T", " ").replace("Z", " UTC");
}

export function count(value: number): string {
  return value.toLocaleString("en-US");
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function pendingText(reason: PendingReasonView): string {
  switch (reason.reason) {
    case "paused":
      return `its queue ${reason.queue} is paused`;
    case "not-before":
      return `it may not run before ${fullTime(reason.readyAtMs)}`;
    case "concurrency":
      return `${reason.limit} with the concurrency key ${reason.key} run already`;
    case "no-agent":
      return `no agent takes it (${reason.missing}); its kind is ${reason.kind}`;
    case "agents-busy":
      return `all ${reason.agents} agents that could take it are busy`;
    case "draining":
      return "the servers are draining: nothing is given out";
    case "cluster-paused":
      return "the cluster was restored paused: nothing is given out until it is resumed (tenure cluster resume)";
    case "next":
      return "it is next";
    default:
      return assertNever(reason, "pending reason");
  }
}

/** What each node has refused since it was started, and whose counts these are. */
export function refusedSum(counts: readonly { readonly by: string; readonly staleRejected: number }[]): {
  readonly count: number;
  readonly by: readonly string[];
} {
  const sum = counts.reduce((total, { staleRejected }) => total + staleRejected, 0);
  return { count: sum, by: counts.map(({ by }) => by).toSorted() };
}

/** Of the tab: who leads comes first, because a tab's end is cut off. */
export function titleText(view: string, leader: string | null, isGone: boolean): string {
  const led = leader === null ? (isGone ? "nobody leads" : null) : `${leader} leads`;
  return [led, view, "Tenure"].filter((part) => part !== null).join(" – ");
}

export type Tone = "good" | "bad" | "busy" | "plain";

export function toneOf(state: JobState): Tone {
  switch (state) {
    case "completed":
      return "good";
    case "failed":
      return "bad";
    case "assigned":
    case "building":
    case "cancelling":
      return "busy";
    case "pending":
    case "cancelled":
      return "plain";
    default:
      return assertNever(state, "job state");
  }
}

/** What became of an attempt. `isLast`: there is none after it. */
export function attemptText({ end }: Pick<JobAttemptView, "end">): string {
  switch (end) {
    case null:
      return "runs";
    case "completed":
      return "completed";
    case "failed":
      return "failed";
    case "timed-out":
      return "ran for longer than it may";
    case "lost":
      return "its agent was not heard from in time";
    case "cancelled":
      return "cancelled";
    case "handed-back":
      return "handed back, at no cost";
    case "undelivered":
      return "never reached its agent, at no cost";
    default:
      return assertNever(end, "end of an attempt");
  }
}

/** An attempt that was taken away: whatever its agent still reports is refused. */
export function isFenced({ end }: Pick<JobAttemptView, "end">): boolean {
  return end === "lost" || end === "timed-out";
}

/** From a string: a literal may not name control characters, which is what is looked for. */
const ESCAPES = new RegExp(String.raw`\u001b(\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(\u0007|\u001b\\)?|.)`, "g");

/** Escape sequences of a terminal mean nothing here. */
export function plainLog(text: string): string {
  return text.replaceAll(ESCAPES, "").replaceAll(/\r(?!\n)/g, "\n");
}
