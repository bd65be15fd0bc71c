// `tenure job submit|list|show|logs|cancel|retry|wait`: work at Tenure's own servers, from a terminal or a script. It talks to the
// servers' API as any other client does.
//
// On stdout is what was asked for: the log of a job that is followed, its id with --detach. What becomes of it is on stderr.

import { JOB } from "./help.ts";
import type { Client, JobBrief, JobsQuery, JobView, ReadOptions } from "../../client/index.ts";
import { WAIT_OUTAGE_MS } from "../../client/limits.ts";
import { assertNever, ERRORS, TenureError } from "../../contract/errors.ts";
import { JOBS_PER_PAGE_MAX } from "../../contract/limits.ts";
import { clientOf, type Connection, readConnection } from "../connection/connection.ts";
import { paintFor } from "../kit/colour.ts";
import { followJob, type Told } from "./follow.ts";
import { type JobStep, readJobFlags } from "./flags.ts";
import { briefObject, jobObject, type JobRefusal, pieceObject, steeredObject, waitedObject } from "./object.ts";
import { readPayload } from "../files/payload.ts";
import { whyTheyWait } from "../job-why.ts";
import { isFinished, jobsTable, jobText, outcomeText, pendingText, terminalText } from "./view.ts";
import { type Waited, waitForJobs } from "./wait.ts";
import { duration, json, LIST_OUTPUTS, OUTPUTS, printable } from "../kit/output.ts";
import { untilSignal } from "../kit/until-signal.ts";
import { printed, stdoutPaint } from "../kit/print.ts";

/** A job that failed or was cancelled. */
const EXIT_NOT_COMPLETED = 1;
const EXIT_TIME_OVER = ERRORS.OUTCOME_UNKNOWN.exit;

type StepOf<Verb extends JobStep["verb"]> = Extract<JobStep, { readonly verb: Verb }>;

export async function job(args: readonly string[]): Promise<number> {
  const flags = readJobFlags(args, Date.now());
  if (flags === "help") return printed(JOB.help);
  const { step } = flags;
  const connection = await readConnection(flags.connection, process.env, step.verb === "show" ? OUTPUTS : LIST_OUTPUTS);
  switch (step.verb) {
    case "submit":
      return await submit(connection, step);
    case "list":
      return await list(connection, step);
    case "show":
      return await show(connection, step.id);
    case "logs":
      return await logs(connection, step);
    case "cancel":
    case "retry":
      return await steer(connection, step.verb, step.ids);
    case "wait":
      return await wait(connection, step);
    default:
      return assertNever(step, "job");
  }
}

async function submit(connection: Connection, step: StepOf<"submit">): Promise<number> {
  const { request, payloadFile, idempotencyKey, detach } = step;
  const client = clientOf(connection);
  const isTable = connection.output === "table";
  const whole = payloadFile === null ? request : { ...request, payload: await readPayload(payloadFile) };
  const id = await client.submit(whole, { idempotencyKey });
  if (detach) return printed(isTable ? `${id}\n` : json({ id }));
  say(`job ${id}`);
  const end = untilSignal();
  const tell = ({ kind, text }: Told): void => {
    if (kind === "note") say(text);
    else if (isTable) printLog(text);
  };
  try {
    const ended = await followJob(client, id, { signal: end.signal, tell });
    say(outcomeText(ended, paintFor(process.stderr, process.env)));
    if (!isTable) process.stdout.write(json(jobObject(ended)));
    return ended.state === "completed" ? 0 : EXIT_NOT_COMPLETED;
  } catch (error) {
    say(`job ${id} goes on without us; look: tenure job show ${id}; stop it: tenure job cancel ${id}`);
    if (end.signal.aborted) return end.code;
    throw error;
  }
}

function say(text: string): void {
  process.stderr.write(`tenure: ${text}\n`);
}

/** Into a file or a pipe as it is; a terminal is not to be steered by what a job prints. */
function printLog(text: string): void {
  process.stdout.write(process.stdout.isTTY ? terminalText(text) : text);
}

async function list(connection: Connection, { query, limit }: StepOf<"list">): Promise<number> {
  const client = clientOf(connection);
  const { found, how } = await fresh(async (way) => await listed(client, { ...query, ...way }, limit));
  const { jobs, hasMore } = found;
  if (connection.output === "json") process.stdout.write(json({ jobs: jobs.map(briefObject), has_more: hasMore }));
  else if (connection.output === "jsonl") for (const one of jobs) process.stdout.write(json(briefObject(one)));
  else {
    const nowMs = Date.now();
    const pending = jobs.filter(({ state }) => state === "pending");
    const paused = pending.length > 0 ? await pausedQueues(client, how) : null;
    const ready = pending.filter(({ queue, readyAtMs }) => readyAtMs <= nowMs && paused?.has(queue) !== true);
    const reasons = await whyTheyWait(client, ready, how);
    process.stdout.write(jobsTable(jobs, nowMs, stdoutPaint(), { paused, reasons }));
  }
  if (hasMore) say(`these are the newest ${limit}, and there are more: --limit N shows more of them`);
  return 0;
}

/** Null where no answer comes: a list without it is better than none. */
async function pausedQueues(client: Client, how: ReadOptions): Promise<ReadonlySet<string> | null> {
  try {
    return new Set((await client.queues(how)).flatMap(({ queue, paused }) => (paused ? [queue] : [])));
  } catch (error) {
    if (!TenureError.is(error)) throw error;
    return null;
  }
}

async function listed(
  client: Client,
  query: JobsQuery,
  limit: number,
): Promise<{ readonly jobs: readonly JobBrief[]; readonly hasMore: boolean }> {
  const jobs: JobBrief[] = [];
  for await (const one of client.jobs({ ...query, pageSize: Math.min(limit + 1, JOBS_PER_PAGE_MAX) })) {
    if (jobs.length === limit) return { jobs, hasMore: true };
    jobs.push(one);
  }
  return { jobs, hasMore: false };
}

/** Everything that was confirmed before; where nobody leads, what a node has, and a word about it. */
async function fresh<T>(
  read: (how: ReadOptions) => Promise<T>,
): Promise<{ readonly found: T; readonly how: ReadOptions }> {
  const how = { consistency: "linearizable" } as const;
  try {
    return { found: await read(how), how };
  } catch (error) {
    if (!TenureError.is(error) || !error.retryable) throw error;
    const found = await read({}).catch(() => Promise.reject(error));
    say(`this may be old: ${error.message}`);
    return { found, how: {} };
  }
}

async function show(connection: Connection, id: string): Promise<number> {
  const client = clientOf(connection);
  const { found } = await fresh(async (how) => await client.job(id, how));
  return printed(connection.output === "json" ? json(jobObject(found)) : jobText(found, stdoutPaint()));
}

async function logs(connection: Connection, { id, attempt, follow }: StepOf<"logs">): Promise<number> {
  const client = clientOf(connection);
  const { found, how } = await fresh(async (way) => await client.job(id, way));
  const last = found.lease?.attempt ?? found.attempts.at(-1)?.attempt ?? 0;
  if (attempt !== undefined && attempt > last) {
    throw new TenureError(
      "NOT_FOUND",
      `job ${id} is ${found.state} and has no attempt ${attempt}: the last is ${last}.`,
    );
  }
  if (follow && found.pendingReason !== null) say(`job ${id} waits: ${pendingText(found.pendingReason)}`);
  const end = untilSignal();
  const pieces: object[] = [];
  let bytes = 0;
  try {
    const options = { attempt, follow, signal: end.signal, outageMs: WAIT_OUTAGE_MS, ...how };
    for await (const piece of client.logs(id, options)) {
      bytes = piece.nextOffset;
      if (connection.output === "table") printLog(piece.text);
      else if (connection.output === "jsonl") process.stdout.write(json(pieceObject(piece)));
      else pieces.push(pieceObject(piece));
    }
  } catch (error) {
    if (!end.signal.aborted) throw error;
    return end.code;
  }
  if (connection.output === "json") process.stdout.write(json({ id, pieces }));
  else if (bytes === 0) say(`job ${id} is ${found.state}; attempt ${attempt ?? Math.max(1, last)} has printed nothing`);
  return 0;
}

async function steer(connection: Connection, verb: "cancel" | "retry", ids: readonly string[]): Promise<number> {
  const client = clientOf(connection);
  const objects: object[] = [];
  let code = 0;
  for (const id of ids) {
    const { job: found, refusal } = await answered(async () => await client[verb](id));
    if (refusal !== null && code === 0) code = ERRORS[refusal.code].exit;
    const object = steeredObject(id, found, refusal);
    if (connection.output === "jsonl") process.stdout.write(json(object));
    else if (connection.output === "json") objects.push(object);
    else if (found !== null) process.stdout.write(`${id}  ${found.state}\n`);
    if (refusal !== null) sayRefusal(id, refusal);
  }
  if (connection.output === "json") process.stdout.write(json({ jobs: objects }));
  return code;
}

async function answered(ask: () => Promise<JobView>): Promise<Omit<Waited, "id">> {
  try {
    return { job: await ask(), refusal: null };
  } catch (error) {
    if (!TenureError.is(error)) throw error;
    return { job: null, refusal: { code: error.code, message: error.message } };
  }
}

function sayRefusal(id: string, { message }: JobRefusal): void {
  say(`${id}: ${printable(message.replaceAll(/\s*\n\s*/g, " "))}`);
}

async function wait(connection: Connection, { ids, timeoutMs }: StepOf<"wait">): Promise<number> {
  const end = untilSignal();
  const { output } = connection;
  const tell = ({ id, job: found, refusal }: Waited): void => {
    if (output === "jsonl") process.stdout.write(json(waitedObject(id, found, refusal)));
    if (refusal !== null) sayRefusal(id, refusal);
    else if (found === null || !isFinished(found)) {
      say(`${id} is ${found?.state ?? "not finished, as far as is known,"} after ${duration(timeoutMs ?? 0)}`);
    } else if (output === "table") process.stdout.write(`${id}  ${outcomeText(found, stdoutPaint())}\n`);
  };
  try {
    const all = await waitForJobs(clientOf(connection), ids, { signal: end.signal, timeoutMs, tell });
    if (output === "json") {
      process.stdout.write(json({ jobs: all.map(({ id, job: found, refusal }) => waitedObject(id, found, refusal)) }));
    }
    return waitCode(all);
  } catch (error) {
    if (!end.signal.aborted) throw error;
    return end.code;
  }
}

/** The first refusal, then that the time is over, then that one did not complete: what says less about the jobs goes first. */
function waitCode(all: readonly Waited[]): number {
  const refused = all.find(({ refusal }) => refusal !== null)?.refusal;
  if (refused !== null && refused !== undefined) return ERRORS[refused.code].exit;
  if (all.some(({ job: found }) => found === null || !isFinished(found))) return EXIT_TIME_OVER;
  return all.every(({ job: found }) => found?.state === "completed") ? 0 : EXIT_NOT_COMPLETED;
}
