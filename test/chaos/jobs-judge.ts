// Compares what clients and agents were told with what the log of events says. Pure: the evidence comes in, counts and
// findings come out.
//
// - A submission that was acknowledged is there once, whole, and completed; one that was refused is not there; one whose
//   fate is unknown is there once, whole, or not at all.
// - A lease that an agent was given is in the log, and no job has two at once. A handler runs once for each lease.
// - A job is completed once, by the attempt that was told so, with what that attempt returned.
// - What is run more than once was taken from an agent, or given back by it, in between: committed once, run at least once.

import { LeaseSecrets } from "../../src/controller/jobs/lease-secrets.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import type { GhostTold } from "./jobs-ghosts.ts";
import type { AgentLine, ToldLine } from "./jobs-journal.ts";
import { type Submission, sumOf } from "./jobs-submitters.ts";

/** Of an event about a job. */
export interface JobEvent {
  readonly sequence: number;
  readonly eventType: string;
  readonly entityId: string;
  readonly leaderEpoch: number;
  readonly payload: {
    readonly leaseHash?: string | null;
    readonly spec?: { readonly payload: unknown };
    readonly result?: unknown;
  };
}

export interface Evidence {
  readonly submissions: readonly Submission[];
  readonly lines: readonly AgentLine[];
  readonly ghosts: readonly GhostTold[];
  readonly events: readonly JobEvent[];
}

export interface Judgement {
  /** Acknowledged, in the end. */
  readonly jobs: number;
  readonly completed: number;
  readonly lost: number;
  readonly doubleSubmitted: number;
  readonly doubleCommitted: number;
  readonly executedMoreThanOnce: number;
  readonly assignments: number;
  /** In the log, and no agent ever heard of them: the leader died on the way. */
  readonly undelivered: number;
  readonly staleAttempts: number;
  readonly staleRejected: number;
  readonly refused: number;
  readonly unknown: number;
  /** Of those, what stayed so, as it had no key. */
  readonly unresolved: number;
  readonly failovers: number;
  readonly findings: readonly string[];
}

const secrets = new LeaseSecrets(systemDigest);
/** Of one kind so many are told in full. */
const TOLD_MAX = 3;

/** What is wrong, by kind: a mistake that shows a thousand times is one line to read. */
class Findings {
  readonly #byKind = new Map<string, string[]>();

  push(kind: string, what: string): void {
    const of = this.#byKind.get(kind);
    if (of === undefined) this.#byKind.set(kind, [what]);
    else of.push(what);
  }

  list(): string[] {
    return [...this.#byKind].map(([kind, of]) => {
      const more = of.length > TOLD_MAX ? `; and ${of.length - TOLD_MAX} more` : "";
      return `${kind}: ${of.slice(0, TOLD_MAX).join("; ")}${more}`;
    });
  }
}

/** What the log says about one job. */
interface Story {
  readonly tag: string;
  readonly leases: string[];
  /** The lease that holds it now. */
  open: string | null;
  readonly completions: { readonly lease: string; readonly mark: string }[];
}

export function judge(evidence: Evidence): Judgement {
  const findings = new Findings();
  const stories = tell(evidence.events, findings);
  const submitted = judgeSubmissions(evidence.submissions, stories, findings);
  // Agents tell the ids of their leases, which nobody else knows; events have their hashes.
  const lines = evidence.lines.map((line) =>
    "lease" in line ? { ...line, lease: secrets.leaseHash(line.lease) } : line,
  );
  const attempts = judgeAttempts({ ...evidence, lines }, stories, findings);
  const epochs = new Set(evidence.events.map(({ leaderEpoch }) => leaderEpoch));
  return {
    ...submitted,
    ...attempts,
    lost: submitted.lost + attempts.lost,
    completed: [...stories.values()].filter(({ completions }) => completions.length > 0).length,
    failovers: Math.max(0, epochs.size - 1),
    findings: findings.list(),
  };
}

// ---- the log -------------------------------------------------------------------------------------------

function tell(events: readonly JobEvent[], findings: Findings): Map<string, Story> {
  const stories = new Map<string, Story>();
  let last = 0;
  for (const { sequence, eventType, entityId, payload } of events) {
    if (sequence <= last) findings.push("events are out of order", `${sequence} stands behind ${last}`);
    last = sequence;
    if (eventType === "build:submitted") {
      if (stories.has(entityId)) findings.push("submitted twice under one id", `job ${entityId}`);
      stories.set(entityId, { tag: textIn(payload.spec?.payload, "tag"), leases: [], open: null, completions: [] });
      continue;
    }
    if (!eventType.startsWith("build:")) continue;
    const story = stories.get(entityId);
    if (story === undefined)
      findings.push("an event is about a job that is not there", `${sequence} (${eventType}), job ${entityId}`);
    else step(story, entityId, eventType, payload, findings);
  }
  return stories;
}

function step(
  story: Story,
  id: string,
  eventType: string,
  { leaseHash, result }: JobEvent["payload"],
  findings: Findings,
): void {
  const lease = leaseHash ?? "none";
  switch (eventType) {
    case "build:assigned":
      if (story.open !== null)
        findings.push("assigned while somebody held it", `job ${id} as ${lease}, held as ${story.open}`);
      if (story.completions.length > 0) findings.push("assigned after it was completed", `job ${id} as ${lease}`);
      story.leases.push(lease);
      story.open = lease;
      break;
    case "build:completed":
      if (story.open !== lease)
        findings.push(
          "completed by one that did not hold it",
          `job ${id} by ${lease}, held as ${story.open ?? "none"}`,
        );
      story.completions.push({ lease, mark: textIn(result, "mark") });
      story.open = null;
      break;
    case "build:retried":
    case "build:failed":
    case "build:cancelled":
      if (story.open !== lease)
        findings.push(
          "a lease ended that was not held",
          `${eventType} of job ${id}, ${lease}, held as ${story.open ?? "none"}`,
        );
      story.open = null;
      break;
    default:
      break;
  }
}

function textIn(value: unknown, name: string): string {
  const found = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
  return typeof found === "string" ? found : "none";
}

// ---- submissions ---------------------------------------------------------------------------------------

function judgeSubmissions(
  submissions: readonly Submission[],
  stories: ReadonlyMap<string, Story>,
  findings: Findings,
): Pick<Judgement, "jobs" | "lost" | "doubleSubmitted" | "refused" | "unknown" | "unresolved"> {
  const byTag = Map.groupBy(stories, ([, { tag }]) => tag);
  const idsOf = (tag: string): string[] => (byTag.get(tag) ?? []).map(([id]) => id);
  let [lost, doubleSubmitted] = [0, 0];
  for (const { manner, tags, fate } of submissions) {
    const there = tags.map((tag) => idsOf(tag));
    const twice = tags.filter((_, at) => there[at]!.length > 1);
    doubleSubmitted += twice.length;
    if (twice.length > 0) findings.push("submitted more than once", `${twice.join(", ")} (${manner})`);
    const count = there.filter((ids) => ids.length > 0).length;
    switch (fate.kind) {
      case "acknowledged":
        for (const [at, id] of fate.ids.entries()) {
          const problem = problemOf(id, stories.get(id), tags[at]!);
          if (problem === null) continue;
          lost++;
          findings.push("acknowledged and not as it was said", `${problem} (${manner})`);
        }
        break;
      case "refused":
        if (count > 0)
          findings.push("refused, and done all the same (trap 66)", `${tags.join(", ")} (${manner}: ${fate.why})`);
        break;
      case "unknown":
        if (count > 0 && count < tags.length) findings.push("half of a submission is there", tags.join(", "));
        break;
    }
  }
  const jobsOf = (isCounted: (one: Submission) => boolean): number =>
    sumOf(submissions, (one) => (isCounted(one) ? one.tags.length : 0));
  return {
    jobs: jobsOf(({ fate }) => fate.kind === "acknowledged"),
    lost,
    doubleSubmitted,
    refused: jobsOf(({ fate }) => fate.kind === "refused"),
    unknown: jobsOf(({ wasUnknown }) => wasUnknown),
    unresolved: jobsOf(({ fate }) => fate.kind === "unknown"),
  };
}

function problemOf(id: string, story: Story | undefined, tag: string): string | null {
  if (story === undefined) return `lost: job ${id} (${tag})`;
  if (story.tag !== tag) return `another's: job ${id} is ${story.tag}, not ${tag}`;
  return story.completions.length === 0 ? `never completed: job ${id} (${tag})` : null;
}

// ---- attempts ------------------------------------------------------------------------------------------

type AttemptCounts = Pick<
  Judgement,
  | "lost"
  | "doubleCommitted"
  | "executedMoreThanOnce"
  | "assignments"
  | "undelivered"
  | "staleAttempts"
  | "staleRejected"
>;

function judgeAttempts(
  { lines, ghosts }: Evidence,
  stories: ReadonlyMap<string, Story>,
  findings: Findings,
): AttemptCounts {
  const known = new Set([...stories.values()].flatMap(({ leases }) => leases));
  const given = new Set(lines.flatMap((line) => (line.is === "leased" ? [line.lease] : [])));
  for (const lease of given)
    if (!known.has(lease)) findings.push("an agent was given a lease that is not in the log", lease);
  for (const line of lines)
    if (line.is === "denied") findings.push("a valid key was refused", `${line.agent}: ${line.why}`);
    else if (line.is === "ended") findings.push("the cluster ended an agent", `${line.agent}: ${line.why}`);

  const starts = lines.filter((line) => line.is === "started");
  for (const [lease, of] of Map.groupBy(starts, (line) => line.lease)) {
    if (of.length > 1)
      findings.push(
        "a handler ran more than once for one lease",
        `job ${of[0]!.job}, lease ${lease}, ${of.length} times`,
      );
  }
  const told = lines.filter((line) => line.is === "told");
  const taken = told.filter(({ verdict, outcome }) => verdict === "taken" && outcome === "completed");
  const { lost, doubleCommitted } = judgeCommits(taken, ghosts, stories, findings);
  const stale = told.filter(({ verdict }) => verdict === "stale").length;
  const ghostsRefused = ghosts.filter(({ verdict }) => verdict === "refused").length;
  return {
    lost,
    doubleCommitted,
    executedMoreThanOnce: [...Map.groupBy(starts, ({ job }) => job).values()].filter((of) => of.length > 1).length,
    assignments: known.size,
    undelivered: [...known].filter((lease) => !given.has(lease)).length,
    staleAttempts: stale + ghosts.length,
    staleRejected: stale + ghostsRefused,
  };
}

/** `lost`: an agent was notified that its result was taken, and the log does not have it. */
function judgeCommits(
  taken: readonly ToldLine[],
  ghosts: readonly GhostTold[],
  stories: ReadonlyMap<string, Story>,
  findings: Findings,
): Pick<AttemptCounts, "lost" | "doubleCommitted"> {
  const doubled = new Set<string>();
  let lost = 0;
  for (const [id, { completions }] of stories) if (completions.length > 1) doubled.add(id);
  for (const [job, of] of Map.groupBy(taken, (line) => line.job)) {
    const leases = new Set(of.map(({ lease }) => lease));
    if (leases.size > 1) doubled.add(job);
    const committed = stories.get(job)?.completions ?? [];
    for (const lease of leases) {
      const marks = of.filter((line) => line.lease === lease).map(({ mark }) => mark);
      if (committed.some((one) => one.lease === lease && marks.includes(one.mark))) continue;
      lost++;
      findings.push("said to be taken, and the log has another result or none", `job ${job}, lease ${lease}`);
    }
  }
  for (const { job, lease, verdict } of ghosts) {
    if (verdict === "refused") continue;
    doubled.add(job);
    findings.push("a stale result was taken", `lease ${lease} of job ${job} was over when it was sent`);
  }
  for (const job of doubled) findings.push("committed twice", `job ${job}`);
  return { lost, doubleCommitted: doubled.size };
}
