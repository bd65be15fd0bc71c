// Agents of production that come and go, one after the other under one name, when nothing else fails: a rolling deploy over slow
// links. Each is stopped at a bad moment: while an answer with a job for it is on the way, while it registers, with work in its
// hands, while leadership moves.
//
// - A stop costs no loss: no attempt of theirs is lost, or failed, and every job is completed in the end (trap 81).
// - A stop ends within its time, and the agent says that it has ended.
//
// What they run is src/agent itself; the desk is a client that follows the leader.

import { type Agent, checkSettings, type DeskOptions, JobAgent, type LeaseDesk } from "../../agent/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { type JobSpec, PLAIN_SPEC } from "../../core/jobs/model.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LeaseAnswer, LeaseCall, ResultAnswer, ResultCall } from "../../ports/jobs.ts";
import type { JobsCluster } from "./cluster.ts";
import { type Answer, type Letter, post } from "./post.ts";
import { reached } from "./probes.ts";

const NAME = "leaver";
const LIVES = 5;
const JOBS = 10;
/** No client of a run makes so many calls. */
const FIRST_CALL = 1_000_000;
const LEASE_MS = 6_000;
const WAYS_MS: readonly (readonly [number, number])[] = [
  [0.2, 8],
  [300, 400],
];
const WORK_MS: readonly [number, number] = [5, 900];
/** How often work never ends, but in the last agent. */
const NEVER_RATE = 0.15;
const DRAINS_MS: readonly number[] = [0, 200, 2_000];
const GRACE_MS = 100;
/** What stop() may take in addition to drain and grace. */
const FAREWELL_MS = 5_000;
const SLACK_MS = 100;
const AGAIN_MS = 40;
const WITHIN_MS = 120_000;
const TRANSFER_RATE = 0.3;
/** Where a stop is called: as an answer with a job leaves the server, at any time, or while the agent registers. */
const MOMENTS = ["given", "given", "given", "any", "any", "starting"] as const;

const SPEC: JobSpec = {
  ...PLAIN_SPEC,
  kind: "leave",
  queue: "leavers",
  attemptsMax: 1,
  lossesMax: 1,
  backoff: { baseMs: 50, maxMs: 500 },
  retentionMs: 3_600_000,
};

/** Null: all of it held. Where servers fail or clocks lie by the run's own nature there are none. */
export async function leaving(cluster: JobsCluster, stepsMax: number): Promise<string | null> {
  const { world, knobs, clocks } = cluster;
  if (knobs.race || knobs.moonlights || !clocks.areAllRight || world.findings.length > 0) return null;
  let end: string | null | undefined;
  new Leavers(cluster).run().then(
    (verdict) => (end = verdict),
    (error: unknown) => (end = `agents that stop: ${String(error instanceof Error ? error.stack : error)}`),
  );
  const isOver = (): boolean => end !== undefined || world.findings.length > 0;
  await world.run(isOver, { untilMs: world.nowMs + WITHIN_MS, stepsMax });
  return isOver() ? (end ?? null) : `agents that stop have not done their jobs after ${WITHIN_MS} ms`;
}

class Leavers {
  readonly #cluster: JobsCluster;
  readonly #random: Random;
  readonly #clock: Clock;
  readonly #wayMs: readonly [number, number];
  #letters = 0;
  #lives = 0;
  /** In the turn in which an answer with jobs leaves the server. */
  #onGiven: () => void = () => undefined;

  constructor(cluster: JobsCluster) {
    this.#cluster = cluster;
    this.#random = cluster.random.fork("leavers");
    this.#wayMs = this.#random.pick(WAYS_MS);
    const { scheduler } = cluster.world;
    const owner = scheduler.owner(NAME);
    this.#clock = {
      monotonicMs: () => scheduler.nowMs,
      wallMs: () => scheduler.nowMs,
      setTimer: (atMs, fire) => {
        const event = scheduler.schedule(atMs, owner, fire);
        return { cancel: () => event.cancel() };
      },
    };
  }

  async run(): Promise<string | null> {
    const jobs = await this.#submitted();
    for (let life = 0; life < LIVES; life++) {
      const problem = await this.#live();
      if (problem !== null) return problem;
    }
    const last = this.#agent(true);
    await last.start();
    const isDone = (jobId: string): boolean => this.#cluster.oracle.jobs.get(jobId)?.isFinal === true;
    while (!jobs.every(isDone)) await this.#pause(AGAIN_MS);
    return (await this.#stopped(last, 0)) ?? this.#verdict(jobs);
  }

  #verdict(jobs: readonly string[]): string | null {
    for (const jobId of jobs) {
      const job = this.#cluster.oracle.jobs.get(jobId);
      const causes = [...(job?.ends.values() ?? [])].map(({ cause }) => cause);
      const dear = causes.find((cause) => cause !== "completed" && cause !== "handed-back" && cause !== "undelivered");
      if (dear !== undefined)
        return `an agent was stopped, and an attempt of job ${jobId} is ${dear}: ${causes.join()}`;
      if (job?.now.state !== "completed") return `agents were stopped, and job ${jobId} is ${job?.now.state ?? "gone"}`;
    }
    return null;
  }

  async #submitted(): Promise<readonly string[]> {
    const specs = Array.from({ length: JOBS }, (_, at) => ({ ...SPEC, payload: { call: FIRST_CALL + at } }));
    for (;;) {
      const ids = await this.#ask<readonly string[]>({
        ask: ({ service }) => service.submit({ caller: NAME, idempotencyKey: NAME, bodyHash: NAME }, specs),
        judge: () => undefined,
      });
      if (ids.ok) return ids.value;
      await this.#pause(AGAIN_MS);
    }
  }

  async #live(): Promise<string | null> {
    const random = this.#random.fork(`life/${this.#lives}`);
    const moment = random.pick(MOMENTS);
    const drainMs = random.pick(DRAINS_MS);
    const agent = this.#agent(false);
    const bad = Promise.withResolvers<void>();
    if (moment === "given") this.#onGiven = bad.resolve;
    const started = agent.start();
    this.#later(moment === "starting" ? random.between(0, this.#wayMs[1]) : random.between(0, 4_000), bad.resolve);
    await bad.promise;
    this.#onGiven = () => undefined;
    const leader = this.#cluster.leader();
    if (leader !== undefined && random.chance(TRANSFER_RATE)) {
      this.#cluster.world.call(leader, () => void this.#cluster.server(leader)?.transfer(null));
    }
    const problem = await this.#stopped(agent, drainMs);
    await started;
    return problem;
  }

  async #stopped(agent: Agent, drainMs: number): Promise<string | null> {
    const sinceMs = this.#clock.monotonicMs();
    await agent.stop({ drainMs, graceMs: GRACE_MS });
    const tookMs = this.#clock.monotonicMs() - sinceMs;
    if (tookMs > drainMs + GRACE_MS + FAREWELL_MS + SLACK_MS) return `a stop took ${tookMs} ms`;
    const error = await agent.ended;
    return error === null ? null : `an agent that was stopped ended as ${error.code}: ${error.message}`;
  }

  #agent(isLast: boolean): Agent {
    const session = `${NAME}-${++this.#lives}`;
    const random = this.#random.fork(session);
    const handler = (_job: unknown, { signal }: { readonly signal: AbortSignal }): Promise<void> =>
      new Promise((resolve, reject) => {
        if (random.chance(0.5)) signal.addEventListener("abort", () => reject(signal.reason as Error));
        const settles = isLast || !random.chance(NEVER_RATE);
        if (settles) this.#later(random.between(...WORK_MS), resolve);
      });
    const capacity = random.pick([1, 2, 3]);
    const settings = checkSettings({ name: NAME, handlers: { leave: handler }, capacity, leaseMs: LEASE_MS });
    return new JobAgent(settings, {
      clock: this.#clock,
      desk: this.#desk(),
      random,
      newSession: () => session,
    });
  }

  #desk(): LeaseDesk {
    return {
      lease: (call, options) => this.#lease(call, options),
      results: async (session, said, options) => {
        const results = said.map((one) => this.#signed(one));
        return await this.#call<readonly ResultAnswer[]>(options, true, () => ({
          ask: ({ service }) => service.results(session, results),
          judge: (asked, answer) => {
            if (!answer.ok) return;
            for (const [at, one] of answer.value.entries())
              this.#cluster.oracle.resultAnswered(asked, session, results[at] as ResultCall, one);
          },
        }));
      },
    };
  }

  /** Every result says whose it is, for the history; a handler does not know its lease. */
  #signed(call: ResultCall): ResultCall {
    if (call.outcome.kind !== "completed") return call;
    const result = { lease: this.#cluster.secrets.leaseHash(call.leaseId), job: call.jobId };
    return { ...call, outcome: { kind: "completed", result } };
  }

  async #lease(call: LeaseCall, options: DeskOptions): Promise<LeaseAnswer> {
    const { oracle, probes } = this.#cluster;
    let hasLeft = false;
    const answered = this.#call<LeaseAnswer>(options, call.max === 0, (gone) => ({
      ask: ({ service }) => service.lease(call, gone),
      judge: (asked, judged, { engine }) => {
        if (!judged.ok) {
          if (judged.error.code === "STALE_EPOCH") oracle.sessionRefused(asked, call, engine.status().term);
          return;
        }
        oracle.leaseAnswered(asked, call, judged.value);
        if (judged.value.leases.length === 0) return;
        hasLeft = true;
        this.#onGiven();
      },
    }));
    try {
      const answer = await answered;
      for (const { jobId, leaseId } of answer.leases) oracle.given(call.agent.session, jobId, leaseId);
      return answer;
    } catch (error) {
      if (hasLeft && options.signal.aborted) reached(probes, "stopped-with-an-answer-in-flight");
      throw error;
    }
  }

  /** As the SDK's: to the leader, again where that said no and did nothing, until the time or the caller's patience is over. */
  async #call<T>(
    { signal, timeoutMs }: DeskOptions,
    mayRepeat: boolean,
    letter: (gone: AbortSignal) => Pick<Letter<T>, "ask" | "judge">,
  ): Promise<T> {
    const untilMs = this.#clock.monotonicMs() + timeoutMs;
    const over = Promise.withResolvers<never>();
    const gone = new AbortController();
    over.promise.catch(() => undefined);
    const end = (reason: unknown): void => {
      over.reject(reason);
      // The server sees it when the connection's end has come to it.
      this.#later(this.#random.between(...this.#wayMs), () => gone.abort());
    };
    const abort = (): void => end(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    const limit = this.#clock.setTimer(untilMs, () => end(new TenureError("OUTCOME_UNKNOWN", "no answer in time")));
    try {
      for (;;) {
        const answer = await Promise.race([this.#ask<T>(letter(gone.signal)), over.promise]);
        if (answer.ok) return answer.value;
        const { code } = answer.error;
        if (code !== "NOT_LEADER" && code !== "ERR_NO_LEADER" && !(mayRepeat && answer.error.retryable))
          throw answer.error;
        await Promise.race([this.#pause(AGAIN_MS), over.promise]);
      }
    } finally {
      limit.cancel();
      signal.removeEventListener("abort", abort);
    }
  }

  #ask<T>(letter: Pick<Letter<T>, "ask" | "judge">): Promise<Answer<T>> {
    const { promise, resolve } = Promise.withResolvers<Answer<T>>();
    post<T>(this.#cluster, {
      random: this.#random.fork(`letter/${++this.#letters}`),
      from: null,
      to: this.#cluster.leader() ?? this.#random.pick(this.#cluster.names),
      wayMs: this.#wayMs,
      ...letter,
      arrived: resolve,
    });
    return promise;
  }

  #later(afterMs: number, fire: () => void): void {
    this.#clock.setTimer(this.#clock.monotonicMs() + afterMs, fire);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#later(ms, resolve));
  }
}
