// The handler of the kind exec: a job is a command, run as a process of its own with everything that it starts.
//
//   running ──the command ends──▶ sweeping ──nobody lives──▶ its exit code is the outcome
//      ├─ cancelled, timed-out, stopping: SIGTERM, grace ──▶ sweeping ──▶ aborted
//      └─ lease-lost, also in a grace; all end now ────────▶ sweeping ──▶ aborted
//
// Invariants: the handler settles only when nobody of the family lives, or SIGKILL did not help for EXEC_KILL_MS, which
// is logged as an error, and SIGKILL is sent again until it helps; an exit code that came before an abort counts; renewals never wait for any of this (trap 52).

import { isJobVariable } from "../core/kit/job-variables.ts";
import type { Json } from "../core/kit/json.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { Processes, StartedProcess } from "../ports/processes/processes.ts";
import { type ExecPayload, readExecPayload } from "./exec-payload.ts";
import { LastLine } from "./last-line.ts";
import { EXEC_KILL_AGAIN_MS, EXEC_KILL_MS, EXEC_PRINTED_MS } from "./limits.ts";
import { JobAborted, JobError } from "./outcome.ts";
import type { AgentJob, JobContext } from "./settings.ts";

const JOB_COOKIE = "TENURE_JOB_COOKIE";

export interface ExecOptions {
  readonly clock: Clock;
  readonly processes: Processes;
  readonly logger: Logger;
  /** From SIGTERM to SIGKILL. */
  readonly graceMs: number;
  /** What every command gets; see `jobEnvironment`. */
  readonly environment: Readonly<Record<string, string>>;
  /** Of the agent: whoever must find all of its jobs finds these. */
  readonly cookies: Readonly<Record<string, string>>;
  readonly newCookie: () => string;
}

type Exit = Awaited<StartedProcess["ended"]>;
const NEVER = new Promise<never>(() => undefined);

export class ExecJobs {
  readonly #options: ExecOptions;
  readonly #running = new Set<Promise<unknown>>();
  readonly #now = new AbortController();

  constructor(options: ExecOptions) {
    this.#options = options;
  }

  /** Without any grace, from now on. */
  kill(): void {
    this.#now.abort();
  }

  /** Resolves when nothing runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  /** The handler. */
  run(job: AgentJob, context: JobContext): Promise<Json> {
    const run = this.#run(job, context).finally(() => this.#running.delete(run));
    this.#running.add(run);
    return run;
  }

  async #run(job: AgentJob, context: JobContext): Promise<Json> {
    const { processes, newCookie, logger, clock } = this.#options;
    const { command, cwd, env } = readExecPayload(job.payload);
    // One that is leased in the last moment begins no more.
    if (this.#now.signal.aborted) throw endsNow();
    const lastLine = new LastLine();
    let output: Output | null = null;
    const started = await processes.start({
      command,
      environment: this.#environmentOf(job, context, env),
      directory: cwd,
      cookie: { name: JOB_COOKIE, value: newCookie() },
      mayStart: () => !context.signal.aborted && !this.#now.signal.aborted,
      onOutput: (from, text) => {
        if (from === "stderr") lastLine.write(text);
        context.log(text);
        void output?.taken();
      },
    });
    if (started.kind === "refused" && context.signal.aborted) throw context.signal.reason;
    if (started.kind === "refused") throw new JobError(`The command was not started: ${started.message}.`);
    output = new Output(started, context);
    const fields = { job: job.id, attempt: context.attempt };
    const beganMs = clock.monotonicMs();
    logger.info({ event: "job_begun", ...fields, pid: started.pid }, "job begun");
    const exit = await this.#exitOrAbort(started, context);
    await this.#sweep(started, output, context, fields);
    const ms = Math.round(clock.monotonicMs() - beganMs);
    if (exit instanceof JobAborted) {
      const level = exit.reason === "lease-lost" ? "warn" : "info";
      logger[level]({ event: "job_aborted", ...fields, reason: exit.reason, ms }, exit.message);
      throw exit;
    }
    const { code, signal } = exit;
    logger.info({ event: "job_ended", ...fields, exit_code: code, signal, ms }, "job ended");
    if (code === 0) return { exit_code: 0 };
    throw failureOf(exit, lastLine.text);
  }

  #environmentOf(job: AgentJob, context: JobContext, env: ExecPayload["env"]): Record<string, string> {
    return {
      ...this.#options.environment,
      // A server of an older release may have taken one that is ours.
      ...Object.fromEntries(Object.entries(env).filter(([name]) => !isJobVariable(name))),
      // These come last: nobody slips out of them.
      ...this.#options.cookies,
      TENURE_JOB_ID: job.id,
      TENURE_JOB_KIND: job.kind,
      TENURE_JOB_ATTEMPT: String(context.attempt),
    };
  }

  /** The command's exit, or why it may not go on; it has had its grace then. */
  async #exitOrAbort(started: StartedProcess, { signal, lost }: JobContext): Promise<Exit | JobAborted> {
    const now = this.#now.signal;
    const exit = await orAborted(started.ended, signal, lost, now);
    if (exit !== "aborted") return exit;
    const reason = signal.reason instanceof JobAborted ? signal.reason : endsNow();
    if (lost.aborted || now.aborted) return reason;
    started.terminate();
    await this.#within(this.#options.graceMs, started.ended, lost, now);
    return reason;
  }

  async #sweep(
    started: StartedProcess,
    output: Output,
    context: JobContext,
    fields: { readonly job: string; readonly attempt: number },
  ): Promise<void> {
    const { logger } = this.#options;
    const { survivors } = await started.kill(EXEC_KILL_MS);
    if (survivors > 0) {
      const text = `${survivors} processes of this job live on after SIGKILL (group ${started.pid}); look at this machine`;
      logger.error({ event: "job_survivors", ...fields, survivors, group: started.pid }, text);
      context.log(`\n[tenure: ${text}]\n`);
      void this.#killAgain(started, fields);
    }
    output.drain();
    await this.#within(EXEC_PRINTED_MS, started.printed);
  }

  /** Until nobody is left, or this agent ends: then all that it has started is killed. */
  async #killAgain(started: StartedProcess, fields: { readonly job: string; readonly attempt: number }): Promise<void> {
    const now = this.#now.signal;
    for (let survivors = 1; survivors > 0;) {
      await this.#within(EXEC_KILL_AGAIN_MS, NEVER, now);
      if (now.aborted) return;
      ({ survivors } = await started.kill(EXEC_KILL_MS));
    }
    this.#options.logger.info({ event: "job_survivors_gone", ...fields }, "nobody of this job lives any more");
  }

  async #within(limitMs: number, promise: Promise<unknown>, ...signals: readonly AbortSignal[]): Promise<void> {
    const { clock } = this.#options;
    const late = new AbortController();
    const timer = clock.setTimer(clock.monotonicMs() + limitMs, () => late.abort());
    await orAborted(promise, late.signal, ...signals);
    timer.cancel();
  }
}

/** Reads what the command prints as fast as the cluster takes it: a full pipe makes the command wait, and nothing is lost. */
class Output {
  readonly #started: StartedProcess;
  readonly #context: JobContext;
  #isWaiting = false;
  #isDraining = false;

  constructor(started: StartedProcess, context: JobContext) {
    this.#started = started;
    this.#context = context;
  }

  async taken(): Promise<void> {
    if (this.#isWaiting || this.#isDraining) return;
    this.#isWaiting = true;
    this.#started.setReading(false);
    await this.#context.logRoom();
    this.#isWaiting = false;
    this.#started.setReading(true);
  }

  /** Nobody prints any more: what is in the pipe is bounded. */
  drain(): void {
    this.#isDraining = true;
    this.#started.setReading(true);
  }
}

/** What a command gets of the agent's own: nothing of Tenure's (keys, URLs with passwords), nor the channel to a supervisor. */
export function jobEnvironment(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && !/^(TENURE_|NODE_CHANNEL_)/.test(name)) kept[name] = value;
  }
  return kept;
}

/** What the promise gives, or "aborted" where a signal comes first; leaves no listener behind. */
async function orAborted<T>(promise: Promise<T>, ...signals: readonly AbortSignal[]): Promise<T | "aborted"> {
  if (signals.some((signal) => signal.aborted)) return "aborted";
  const abort = Promise.withResolvers<"aborted">();
  const onAbort = (): void => abort.resolve("aborted");
  for (const signal of signals) signal.addEventListener("abort", onAbort);
  try {
    return await Promise.race([promise, abort.promise]);
  } finally {
    for (const signal of signals) signal.removeEventListener("abort", onAbort);
  }
}

function endsNow(): JobAborted {
  return new JobAborted("stopping", "This agent ends at once.");
}

function failureOf({ code, signal }: Exit, lastLine: string): JobError {
  const how = signal === null ? `The command ended with exit code ${code}` : `The command was ended by ${signal}`;
  const detail = { exit_code: code, signal };
  return new JobError(lastLine === "" ? `${how}.` : `${how}: ${lastLine}`, { detail });
}
