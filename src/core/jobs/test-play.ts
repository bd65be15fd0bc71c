// Random commands for property tests: a few agents, sessions, queues, keys and times, so that everything meets everything.

import type { GivenLease, ResultCall } from "../../ports/jobs.ts";
import type { DeliveredJob } from "../../ports/transactions.ts";
import type { CommandOf, JobsCommand, JobsCommandKind, TakenJob } from "./commands.ts";
import type { AgentInfo, JobSpec } from "./model.ts";
import { agent, COMPLETED, type Desk, FAILED, keyed, REQUEST, spec } from "./test-desk.ts";

/** Numbers that mean what they mean only where a command is made of them. */
export interface Step {
  readonly kind: JobsCommandKind | "tick";
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

/** Each as often as it should come. */
export const KINDS: readonly Step["kind"][] = [
  ...(["submit", "submit", "submit", "lease", "lease", "lease", "lease", "results", "results", "results"] as const),
  ...(["cancel", "retry", "report", "lease-expired", "attempt-timed-out", "agent-offline", "remove-agent"] as const),
  ...([
    "drain-agent",
    "hand-back",
    "take-back",
    "pause-queue",
    "put-schedule",
    "delete-schedule",
    "fire-schedule",
    "forget",
    "take",
    "deliver",
    "tick",
  ] as const),
];

const SPECS: readonly Partial<JobSpec>[] = [
  {},
  { priority: 3 },
  { queue: "q2" },
  { kind: "test", priority: -2 },
  { platform: "mac" },
  { labels: { gpu: "yes" } },
  { concurrency: { key: "k", limit: 1 } },
  { concurrency: { key: "k", limit: 2 }, queue: "q2", priority: 1 },
  { attemptsMax: 1, lossesMax: 0 },
  { notBeforeMs: 1_000_300 },
  { backoff: { baseMs: 0, maxMs: 0 }, timeoutMs: 100 },
  { payload: { z: [1, { y: "ä" }], a: null }, concurrency: { key: "other", limit: 1 } },
];

const AGENTS: readonly AgentInfo[] = [
  agent("a1", { capacity: 3, kinds: ["build", "test"] }),
  agent("a1", { capacity: 3, session: "a1-s2" }),
  agent("a2", { labels: { gpu: "yes" }, capacity: 2 }),
  agent("a2", { labels: { gpu: "yes" }, capacity: 2, session: "a2-s2", platform: "mac" }),
  agent("a3", { platform: "mac", kinds: ["build", "build"] }),
  agent("a3", { kinds: [] }),
];

const OUTCOMES: readonly ResultCall["outcome"][] = [
  COMPLETED,
  COMPLETED,
  FAILED,
  { kind: "failed", error: { message: "never", detail: { b: 1, a: 2 } }, retry: false },
  { kind: "cancelled" },
  { kind: "handed-back" },
];

const TICKS_MS = [1, 50, 300, 2_000, 90_000_000];

/** What was given out so far, to be named again: also what is long over. */
export class Memory {
  readonly jobIds: string[] = [];
  readonly leases: { readonly lease: GivenLease; readonly session: string }[] = [];

  learn(command: JobsCommand, answer: unknown): void {
    if (command.kind === "submit") this.jobIds.push(...(answer as { jobIds: string[] }).jobIds);
    if (command.kind === "take" || command.kind === "deliver") this.jobIds.push(...command.jobs.map(({ id }) => id));
    if (command.kind !== "lease") return;
    for (const lease of (answer as { leases: GivenLease[] }).leases) {
      this.leases.push({ lease, session: command.agent.session });
    }
  }
}

/** Null: only time passes, or there is nothing yet to speak of. */
export function commandOf(desk: Desk, memory: Memory, { kind, a, b, c }: Step): JobsCommand | null {
  const jobId = pick(memory.jobIds, 12 * a + b) ?? "nobody";
  const held = pick(memory.leases, memory.leases.length - 1 - ((a * b) % 7));
  const request = c % 3 === 0 ? keyed(`key-${a}`, String(b % 2)) : REQUEST;
  switch (kind) {
    case "tick":
      desk.nowMs += TICKS_MS[a % TICKS_MS.length]!;
      return null;
    case "submit":
      return { kind, request, specs: Array.from({ length: 1 + (c % 3) }, (_, at) => spec(SPECS[(a + at * b) % 12])) };
    case "take":
      return { kind, jobs: takenJobs(a, b, c) };
    case "deliver":
      return { kind, jobs: deliveredJobs(a, b, c) };
    case "cancel":
      return { kind, request, jobId };
    case "retry":
      return { kind, request, jobId, job: null };
    case "lease":
      return { kind, agent: AGENTS[a % AGENTS.length]!, max: b % 5, ttlMs: 1_000, poll: c === 0 ? undefined : c };
    case "take-back":
      return { kind, name: `a${1 + (a % 3)}`, session: `a${1 + (a % 3)}-s${1 + (b % 2)}`, poll: c, answered: c - b };
    case "forget":
      return { kind, jobIds: [jobId] };
    case "remove-agent":
    case "hand-back":
      return { kind, request, name: `a${1 + (a % 3)}` };
    case "drain-agent":
      return { kind, request, name: `a${1 + (a % 3)}`, draining: b % 2 === 0 };
    case "agent-offline":
      return { kind, name: `a${1 + (a % 3)}`, session: `a${1 + (a % 3)}-s${1 + (b % 2)}` };
    case "pause-queue":
      return { kind, request, queue: a % 2 === 0 ? "default" : "q2", paused: b % 2 === 0 };
    case "put-schedule":
    case "delete-schedule":
    case "fire-schedule":
      return scheduleCommand(desk, kind, request, { a, b });
    case "results":
    case "report":
    case "lease-expired":
    case "attempt-timed-out":
      return held === undefined ? null : leaseCommand(desk, kind, held, { a, b, c });
    default:
      return kind satisfies never;
  }
}

/** Some are unusable, and some were taken over before. */
function takenJobs(a: number, b: number, c: number): TakenJob[] {
  return Array.from({ length: 1 + (c % 3) }, (_, at) => ({
    id: `taken-${(a + at) % 9}-${b % 3}`,
    by: "postgres:app",
    spec: spec(SPECS[(a + at * b) % 12]),
    problem: (b + at) % 3 === 0 ? "priority must be a whole number" : null,
  }));
}

/** Most were delivered before; of each pair there is one job. */
function deliveredJobs(a: number, b: number, c: number): DeliveredJob[] {
  return Array.from({ length: 1 + (c % 4) }, (_, at) => {
    const [place, operation] = [100 + a + b + Math.floor(at / 2), at % 2];
    const bad = (place + operation) % 5 === 0 ? { attemptsMax: 0 } : {};
    const mark = `txn:${place}:${operation}`;
    return {
      id: `delivered-${place}-${operation}`,
      by: "mover",
      spec: spec({ ...SPECS[place % 12], ...bad }),
      mark,
      place,
      operation,
    };
  });
}

function scheduleCommand(
  desk: Desk,
  kind: "put-schedule" | "delete-schedule" | "fire-schedule",
  request: CommandOf<"put-schedule">["request"],
  { a, b }: { a: number; b: number },
): JobsCommand {
  const name = `s${a % 2}`;
  if (kind === "delete-schedule") return { kind, request, name };
  if (kind === "fire-schedule") return { kind, name, atMs: desk.nowMs + b };
  const paused = b % 4 === 0;
  const overlap = b % 2 === 0 ? "skip" : "allow";
  const schedule = { name, cron: `${a} * * * *`, timeZone: "UTC", overlap, catchUp: "none", paused } as const;
  return { kind, request, schedule: { ...schedule, spec: spec(SPECS[b]) } };
}

function leaseCommand(
  desk: Desk,
  kind: "results" | "report" | "lease-expired" | "attempt-timed-out",
  { lease, session }: { readonly lease: GivenLease; readonly session: string },
  { a, b, c }: { a: number; b: number; c: number },
): JobsCommand {
  const { jobId, jobEpoch } = lease;
  if (kind === "lease-expired" || kind === "attempt-timed-out") return { kind, jobId, jobEpoch };
  if (kind === "report") {
    const progress = a % 2 === 0 ? [{ ...lease, progress: { share: b / 11, message: null } }] : [];
    const logs = a % 3 > 0 ? [{ ...lease, chunk: { offset: b % 4, text: "log".slice(0, c % 4) } }] : [];
    return { kind, session, progress, logs };
  }
  // Mostly as it should be; now and then of another epoch.
  const leaderEpoch = c === 0 ? lease.leaderEpoch : desk.leaderEpoch;
  const call = { ...lease, leaderEpoch, jobEpoch: c === 1 ? jobEpoch + 1 : jobEpoch };
  return { kind, session, results: [{ ...call, outcome: OUTCOMES[b % OUTCOMES.length]! }] };
}

function pick<T>(list: readonly T[], at: number): T | undefined {
  return list.length === 0 ? undefined : list[Math.abs(at) % list.length];
}
