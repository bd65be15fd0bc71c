// Jobs as people see them: a table, one job, one line of how it ended. Pure. For programs: object.ts.

import type {
  JobAttemptView,
  JobBrief,
  JobProgressView,
  JobState,
  JobView,
  Json,
  PendingReasonView,
} from "../../client/index.ts";
import { assertNever } from "../../contract/errors.ts";
import { type Paint, paintState, PLAIN } from "../kit/colour.ts";
import { columns, duration, isoTime, printable, table } from "../kit/output.ts";

const FINAL: readonly JobState[] = ["completed", "failed", "cancelled"];
/** Of what may be large, in lines for people; -o json has all of it. */
const SHORT_LETTERS = 80;
const LONG_LETTERS = 2_000;
/** What is missing where no agent is online, in the servers' words. */
const NO_AGENT_AT_ALL = "any agent";

export function isFinished({ state }: Pick<JobView, "state">): boolean {
  return FINAL.includes(state);
}

// ---- lists --------------------------------------------------------------------------------------------

/** What is known of those that wait besides the list itself. */
export interface Waits {
  /** The queues that are; null where nobody could tell. */
  readonly paused: ReadonlySet<string> | null;
  /** By the job's id, of those that are not waiting for a time or for their queue. */
  readonly reasons: ReadonlyMap<string, PendingReasonView>;
}

const UNKNOWN: Waits = { paused: null, reasons: new Map() };

export function jobsTable(
  jobs: readonly JobBrief[],
  nowMs: number,
  paint: Paint = PLAIN,
  waits: Waits = UNKNOWN,
): string {
  const rows = jobs.map((job) => [
    job.id,
    printable(job.kind),
    paintState(job.state, paint),
    printable(job.queue),
    String(attemptsOf(job)),
    duration(Math.max(0, nowMs - job.submittedAtMs)),
    whyOf(job, nowMs, waits),
  ]);
  return table(["ID", "KIND", "STATE", "QUEUE", "ATTEMPT", "AGE", "WHY"], rows, paint);
}

/** Those that counted: what was handed back costs nothing. */
function attemptsOf({ state, failures, losses }: JobBrief): number {
  const isOneMore = ["assigned", "building", "cancelling", "completed"].includes(state);
  return failures + losses + (isOneMore ? 1 : 0);
}

function whyOf(job: JobBrief, nowMs: number, waits: Waits): string {
  const { state, errorMessage, progress, agent } = job;
  const error = errorMessage === null ? "" : oneLine(errorMessage);
  if (state === "pending") return [waitText(job, nowMs, waits), error].filter((text) => text !== "").join("; ") || "-";
  if (state === "failed") return error || "-";
  if (FINAL.includes(state)) return "-";
  const at = agent === null ? "" : `at ${printable(agent)}`;
  return [at, progressText(progress)].filter((text) => text !== "").join(", ") || "-";
}

function waitText({ id, queue, readyAtMs }: JobBrief, nowMs: number, { paused, reasons }: Waits): string {
  const time = readyAtMs > nowMs ? `not before ${isoTime(readyAtMs)}` : "";
  const queued = paused?.has(queue) === true ? "queue paused" : "";
  const waits = [queued, time].filter((text) => text !== "").join(", ");
  if (waits !== "") return waits;
  const reason = reasons.get(id);
  if (reason !== undefined) return pendingText(reason);
  return paused === null ? "" : "ready";
}

export function progressText(progress: Omit<JobProgressView, "atMs"> | null): string {
  if (progress === null) return "";
  const share = progress.share === null ? "" : `${Math.floor(progress.share * 100)}%`;
  return [share, progress.message === null ? "" : oneLine(progress.message)].filter((text) => text !== "").join(" ");
}

export function pendingText(reason: PendingReasonView): string {
  switch (reason.reason) {
    case "paused":
      return `the queue ${printable(reason.queue)} is paused`;
    case "not-before":
      return `it may not run before ${isoTime(reason.readyAtMs)}`;
    case "concurrency":
      return `${reason.limit} with the concurrency key ${printable(reason.key)} run already`;
    case "no-agent":
      if (reason.missing === NO_AGENT_AT_ALL) return `no agent is online; its kind is ${printable(reason.kind)}`;
      return `no agent takes it (${printable(reason.missing)}); its kind is ${printable(reason.kind)}`;
    case "agents-busy":
      if (reason.agents === 1) return "the one agent that could take it is busy";
      return `all ${reason.agents} agents that could take it are busy`;
    case "draining":
      return "the servers are draining: nothing is given out";
    case "cluster-paused":
      return "the cluster was restored paused: nothing is given out until `tenure cluster resume`";
    case "next":
      return "it is next";
    default:
      return assertNever(reason, "pending reason");
  }
}

// ---- one ----------------------------------------------------------------------------------------------

export function jobText(job: JobView, paint: Paint = PLAIN): string {
  return `${columns(linesOf(job, paint))}${attemptsText(job.attempts, paint)}${timelineText(job, paint)}`;
}

function linesOf(job: JobView, paint: Paint): string[][] {
  const { spec, lease } = job;
  const progress = progressText(job.progress);
  return [
    ["id", job.id],
    ["kind", printable(spec.kind)],
    ["state", paintState(job.state, paint)],
    ...optional("why pending", job.pendingReason && pendingText(job.pendingReason)),
    ...optional("agent", lease && `${printable(lease.agent)}, lease of ${duration(lease.ttlMs)}`),
    ...optional("progress", job.progress && `${progress === "" ? "-" : progress}, at ${isoTime(job.progress.atMs)}`),
    ...optional("error", job.error && oneLine(job.error.message, LONG_LETTERS)),
    ...optional("error detail", job.error && jsonText(job.error.detail)),
    ...optional("result", jsonText(job.result)),
    ["submitted", `${isoTime(job.submittedAtMs)} by ${printable(job.submittedBy)}, event ${job.submittedSequence}`],
    ["ready", isoTime(job.readyAtMs)],
    ...optional("finished", job.finishedAtMs === null ? null : isoTime(job.finishedAtMs)),
    ["epoch", String(job.jobEpoch)],
    ["failures", `${job.failures} of ${spec.attemptsMax}`],
    ["losses", `${job.losses} of ${spec.lossesMax}`],
    ["queue", printable(spec.queue)],
    ["priority", String(spec.priority)],
    ...optional(
      "labels",
      Object.entries(spec.labels)
        .map(([name, value]) => printable(`${name}=${value}`))
        .join(" "),
    ),
    ...optional("platform", spec.platform && printable(spec.platform)),
    ...optional("not before", spec.notBeforeMs === null ? null : isoTime(spec.notBeforeMs)),
    ["backoff", `${duration(spec.backoff.baseMs)} to ${duration(spec.backoff.maxMs)}`],
    ["timeout", spec.timeoutMs === null ? "none" : duration(spec.timeoutMs)],
    ["retention", duration(spec.retentionMs)],
    ...optional(
      "concurrency",
      spec.concurrency && `${printable(spec.concurrency.key)}, at most ${spec.concurrency.limit}`,
    ),
    ...optional("payload", jsonText(spec.payload)),
  ];
}

function optional(name: string, value: string | null): string[][] {
  return value === null || value === "" ? [] : [[name, value]];
}

function jsonText(value: Json): string | null {
  return value === null ? null : cut(printable(JSON.stringify(value)), LONG_LETTERS);
}

function attemptsText(attempts: readonly JobAttemptView[], paint: Paint): string {
  if (attempts.length === 0) return "";
  const rows = attempts.map((one) => [
    String(one.attempt),
    String(one.jobEpoch),
    String(one.leaderEpoch),
    printable(one.agent),
    isoTime(one.assignedAtMs),
    one.startedAtMs === null ? "-" : isoTime(one.startedAtMs),
    one.endedAtMs === null ? "-" : isoTime(one.endedAtMs),
    one.end ?? "-",
  ]);
  const head = ["ATTEMPT", "EPOCH", "LEADER EPOCH", "AGENT", "ASSIGNED", "STARTED", "ENDED", "END"];
  return `\n${table(head, rows, paint)}`;
}

function timelineText({ timeline }: JobView, paint: Paint): string {
  if (timeline.length === 0) return "";
  const rows = timeline.map(({ atMs, what, attempt, agent, end }) => [
    isoTime(atMs),
    what,
    attempt === null ? "-" : String(attempt),
    agent === null ? "-" : printable(agent),
    end === null ? "-" : printable(end),
  ]);
  return `\n${table(["AT", "WHAT", "ATTEMPT", "AGENT", "END"], rows, paint)}`;
}

/** How it ended, in one line, without the id. */
export function outcomeText(job: JobView, paint: Paint = PLAIN): string {
  const { state, error, result, finishedAtMs, submittedAtMs } = job;
  const took = finishedAtMs === null ? "" : ` after ${duration(Math.max(0, finishedAtMs - submittedAtMs))}`;
  if (state === "failed")
    return `${paintState(state, paint)}${took}: ${error === null ? "nobody said why" : oneLine(error.message, LONG_LETTERS)}`;
  if (state === "completed" && result !== null)
    return `${paintState(state, paint)}${took}, result ${oneLine(JSON.stringify(result), LONG_LETTERS)}`;
  return `${paintState(state, paint)}${took}`;
}

export function oneLine(text: string, letters: number = SHORT_LETTERS): string {
  return cut(printable(text.trim().replaceAll(/\s*\n\s*/g, " ")), letters);
}

function cut(text: string, letters: number): string {
  return text.length > letters ? `${text.slice(0, letters)}…` : text;
}

/**
 * What a job printed, for a terminal: lines, tabs and colours stay, and nothing that moves the cursor elsewhere or turns the
 * direction of writing.
 */
export function terminalText(text: string): string {
  return text.replaceAll(
    // oxlint-disable-next-line no-control-regex -- these are what it is about
    /(\u001B\[[\d;]{0,20}m)|[\n\r\t]|[\p{Cc}\u202A-\u202E\u2066-\u2069]/gu,
    (found, colour: string | undefined) => (colour !== undefined || "\n\r\t".includes(found) ? found : "?"),
  );
}
