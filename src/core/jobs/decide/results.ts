// What agents say about their leases: results, progress and log chunks. A result counts only with the current jobEpoch, the
// lease and the session that go with it, and the leader epoch in force (traps 50, 56); what is stale causes no event. The
// same result again is answered as the first time.

import { assertNever } from "../../kit/assert.ts";
import { TenureError } from "../../kit/errors.ts";
import { TextMap } from "../../kit/keyed/text-map.ts";
import {
  JOB_LOG_BYTES_MAX,
  JOB_PAYLOAD_BYTES_MAX,
  LOG_CHUNK_BYTES_MAX,
  RESULTS_PER_CALL_MAX,
} from "../../kit/limits.ts";
import type { LeaseRef, LogChunk, ResultAnswer, ResultCall } from "../../../ports/jobs.ts";
import type { CommandOf, DecideContext, Decision, JobsAnswers } from "../commands.ts";
import { decided, draft, refused, type Refused } from "./decision.ts";
import { type Ended, endAttempt } from "./ending.ts";
import type { Building, Completed, EventDraft, Logged } from "../events.ts";
import type { JobState } from "../model.ts";
import type { JobRecord, Reported, Run } from "../state/records.ts";
import { payloadProblem } from "./spec-problem.ts";
import type { BookState } from "../state/state.ts";

type Leased = JobRecord & { readonly run: Run };

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

// ---- results -------------------------------------------------------------------------------------------

export function decideResults(
  state: BookState,
  { session, results }: CommandOf<"results">,
  context: DecideContext,
): Decision<JobsAnswers["results"]> {
  if (results.length > RESULTS_PER_CALL_MAX) {
    return refused("BAD_REQUEST", `${results.length} results at once; send at most ${RESULTS_PER_CALL_MAX}.`);
  }
  const problem = resultsProblem(state, results);
  if (problem !== null) return problem;
  const drafts: EventDraft[] = [];
  /** What this call has ended already: the book does not know of it yet. */
  const ended = new TextMap<{ readonly lease: LeaseRef; readonly kind: Reported; readonly state: JobState }>();
  const answers = results.map((call): ResultAnswer => {
    if (call.leaderEpoch !== context.leaderEpoch) return stale(call, context);
    const record = state.jobs.get(call.jobId);
    if (record === undefined) return notFound(call, context);
    const { kind } = call.outcome;
    const now = ended.get(call.jobId);
    const before = now !== undefined && isSameLease(now.lease, call) ? now : reportedBefore(record, session, call);
    if (before !== null) {
      return before.kind === kind ? { ok: true, state: before.state, isRepeated: true } : stale(call, context);
    }
    if (!isHeld(record, session, call)) return stale(call, context);
    const end = resultOf(record, call, context);
    drafts.push(end.draft);
    ended.set(call.jobId, { lease: call, kind, state: end.state });
    return { ok: true, state: end.state, isRepeated: false };
  });
  return decided(drafts, { answers });
}

function resultOf(record: Leased, { outcome }: ResultCall, context: DecideContext): Ended {
  switch (outcome.kind) {
    case "completed": {
      // Also of a job that is being cancelled: the work is done, and saying otherwise would be untrue.
      const { jobEpoch, leaseId: leaseHash } = record.run;
      const payload: Completed = { jobEpoch, leaseHash, result: outcome.result };
      return { draft: draft(context, "build:completed", record.ticket.id, payload), state: "completed" };
    }
    case "failed":
      return endAttempt(context, record, { cause: "failed", error: outcome.error, mayRetry: outcome.retry });
    case "cancelled":
      // Nobody asked for it: the agent gives it up, which is what handing back is.
      return endAttempt(context, record, { cause: "cancelled", error: null, mayRetry: true });
    case "handed-back":
      return endAttempt(context, record, { cause: "handed-back", error: null, mayRetry: true });
    default:
      return assertNever(outcome, "result");
  }
}

function isHeld(record: JobRecord, session: string, ref: LeaseRef): record is Leased {
  const { run } = record;
  return run !== null && run.session === session && isSameLease(run, ref);
}

type LeaseName = Pick<LeaseRef, "leaseId" | "jobEpoch">;

function isSameLease(one: LeaseName, other: LeaseName): boolean {
  return one.leaseId === other.leaseId && one.jobEpoch === other.jobEpoch;
}

/** What this session has said about this lease before, and what became of the job by it. */
export function reportedBefore(
  { ended }: JobRecord,
  session: string,
  ref: LeaseRef,
): { readonly kind: Reported; readonly state: JobState } | null {
  const run = ended.find((one) => one.session === session && isSameLease(one, ref));
  return run === undefined || run.reported === null ? null : { kind: run.reported, state: run.stateAfter };
}

/** What can't stand in an event is refused before anything is decided. */
function resultsProblem(state: BookState, results: readonly ResultCall[]): Refused | null {
  for (const [at, { outcome }] of results.entries()) {
    if (outcome.kind !== "completed" && outcome.kind !== "failed") continue;
    try {
      const text = state.canonical(outcome.kind === "completed" ? outcome.result : { ...outcome.error });
      if (payloadProblem(text) === null) continue;
    } catch (error) {
      if (!TenureError.is(error)) throw error;
      return refused(error.code, `Result ${at + 1}: ${error.message}`);
    }
    return refused(
      "PAYLOAD_TOO_LARGE",
      `Result ${at + 1} has more than ${JOB_PAYLOAD_BYTES_MAX} bytes. None was taken.`,
    );
  }
  return null;
}

function notFound({ jobId }: ResultCall, { leaderEpoch }: DecideContext): ResultAnswer {
  return {
    ok: false,
    code: "NOT_FOUND",
    message: `There is no job ${jobId}, or it was finished long ago.`,
    leaderEpoch,
  };
}

function stale({ jobId, jobEpoch, leaderEpoch: of }: ResultCall, { leaderEpoch }: DecideContext): ResultAnswer {
  const why =
    of === leaderEpoch
      ? `this lease of job ${jobId} (epoch ${jobEpoch}) is over. Stop its work`
      : `leader epoch ${of} is over, ${leaderEpoch} is in force. Renew the lease there, then send the result again`;
  return { ok: false, code: "STALE_EPOCH", message: `Not taken: ${why}.`, leaderEpoch };
}

// ---- progress and logs ---------------------------------------------------------------------------------

export function decideReport(
  state: BookState,
  { session, progress, logs }: CommandOf<"report">,
  context: DecideContext,
): Decision<JobsAnswers["report"]> {
  const drafts: EventDraft[] = [];
  const taken = progress.map((one) => {
    const record = state.jobs.get(one.jobId);
    if (record === undefined || !isHeld(record, session, one)) return false;
    const { share, message } = one.progress;
    if (message?.isWellFormed() === false || (share !== null && !(share >= 0 && share <= 1))) return false;
    const payload: Building = { jobEpoch: one.jobEpoch, leaseHash: one.leaseId, progress: { share, message } };
    drafts.push(draft(context, "build:building", one.jobId, payload));
    return true;
  });
  /** Where the logs end with what this call has taken. */
  const ends = new TextMap<number>();
  const offsets = logs.map((one) => {
    const record = state.jobs.get(one.jobId);
    if (record === undefined || !isHeld(record, session, one)) return null;
    const { run } = record;
    const end = ends.get(run.leaseId) ?? run.logBytes;
    const fresh = freshPart(one.chunk, end);
    if (fresh === null) return end;
    const { jobEpoch, leaseId, attempt } = run;
    const payload: Logged = {
      jobEpoch,
      leaseHash: leaseId,
      attempt,
      offset: end,
      text: fresh.text,
      bytes: fresh.bytes,
    };
    drafts.push(draft(context, "build:log", one.jobId, payload));
    ends.set(leaseId, end + fresh.bytes);
    return end + fresh.bytes;
  });
  return decided(drafts, { progress: taken, logs: offsets });
}

/** Of a chunk, what is after the end of the log; null where that is nothing, or something is missing between. */
function freshPart({ offset, text }: LogChunk, end: number): { text: string; bytes: number } | null {
  if (offset > end || !text.isWellFormed()) return null;
  const bytes = encoder.encode(text);
  const known = end - offset;
  if (known >= bytes.length || bytes.length > LOG_CHUNK_BYTES_MAX) return null;
  if (end + bytes.length - known > JOB_LOG_BYTES_MAX) return null;
  if (known === 0) return { text, bytes: bytes.length };
  try {
    return { text: decoder.decode(bytes.subarray(known)), bytes: bytes.length - known };
  } catch {
    // The log ends inside of one of its characters: it is another log.
    return null;
  }
}
