// A made-up cluster for an agent's tests: what it was asked, and what it answers. Time is the test's.

import { PLAIN_SPEC } from "../core/jobs/model.ts";
import { TenureError } from "../core/kit/errors.ts";
import { seededRandom } from "../core/kit/random.ts";
import { HandClock, settled } from "../loops/test-clock.ts";
import type { GivenLease, JobSpec, LeaseAnswer, LeaseCall, LogChunk, ResultAnswer, ResultCall } from "../ports/jobs.ts";
import { type Agent, JobAgent } from "./agent.ts";
import type { DeskOptions, LeaseDesk } from "./desk.ts";
import { type AgentSettings, checkSettings } from "./settings.ts";

const SPEC: JobSpec = {
  ...PLAIN_SPEC,
  kind: "work",
  attemptsMax: 3,
  lossesMax: 3,
  backoff: { baseMs: 1_000, maxMs: 10_000 },
  retentionMs: 60_000,
};

type Call = Omit<LeaseCall, "leaderEpoch">;
type Renewal = LeaseAnswer["renewed"][number]["outcome"];

export class TestDesk implements LeaseDesk {
  readonly clock = new HandClock();
  /** Calls that renew and report only. */
  readonly beats: { readonly atMs: number; readonly call: Call }[] = [];
  readonly polls: Call[] = [];
  /** Polls that want nothing: of an agent that stops. */
  readonly lasts: Call[] = [];
  readonly sent: ResultCall[] = [];
  /** What was logged of each lease; in ASCII. */
  readonly logs = new Map<string, string>();
  /** Of the last call with results. */
  attemptMs: number | undefined;
  leaderEpoch = 1;
  /** What a beat is told about every lease; an error is thrown. */
  renewal: Renewal | Error = "renewed";
  /** What becomes of each result. */
  answer: (call: ResultCall) => ResultAnswer | Error = () => ({ ok: true, state: "completed", isRepeated: false });
  /** What every poll is refused with from the next on. */
  pollError: Error | null = null;
  /** What a last poll, and the registration, are answered with: an error is thrown, a promise is waited for. */
  lastAnswer: () => Error | Promise<void> | null = () => null;
  registering: Promise<void> | null = null;
  /** How fast a beat goes out; one that takes longer than its attempt gets nowhere until its time is over. */
  bytesPerMs = Infinity;
  #last: readonly GivenLease[] = [];
  #parked: ((leases: readonly GivenLease[]) => void) | null = null;
  #given = 0;

  lease(call: Call, { signal, timeoutMs, attemptMs = 1_000 }: DeskOptions): Promise<LeaseAnswer> {
    if (call.max > 0) {
      this.polls.push(call);
      if (this.pollError !== null) return Promise.reject(this.pollError);
      return new Promise((resolve, reject) => {
        this.#parked = (leases) => resolve(this.#answerTo(call, leases, "renewed"));
        signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
      });
    }
    if (call.poll !== undefined) return this.#farewell(call, signal);
    this.beats.push({ atMs: this.clock.monotonicMs(), call });
    if (this.registering !== null) {
      const answer = this.registering.then(() => this.#answerTo(call, [], "renewed"));
      return orAborted(answer, signal);
    }
    const { renewal } = this;
    if (renewal instanceof Error) return Promise.reject(renewal);
    if (this.bytesPerMs === Infinity) return Promise.resolve(this.#answerTo(call, [], renewal));
    const tookMs = JSON.stringify(call).length / this.bytesPerMs;
    const isCutOff = tookMs > attemptMs;
    return new Promise((resolve, reject) => {
      this.clock.setTimer(this.clock.monotonicMs() + (isCutOff ? timeoutMs : tookMs), () => {
        if (isCutOff) reject(new TenureError("BACKEND_UNAVAILABLE", "no answer in time"));
        else resolve(this.#answerTo(call, [], renewal));
      });
    });
  }

  results(
    _session: string,
    results: readonly ResultCall[],
    { attemptMs }: DeskOptions,
  ): Promise<readonly ResultAnswer[]> {
    this.sent.push(...results);
    this.attemptMs = attemptMs;
    const answers: ResultAnswer[] = [];
    for (const one of results) {
      const answer = this.answer(one);
      if (answer instanceof Error) return Promise.reject(answer);
      answers.push(answer);
    }
    return Promise.resolve(answers);
  }

  /** To the poll that is parked. */
  async give(spec: Partial<JobSpec> = {}): Promise<void> {
    const id = `job-${++this.#given}`;
    const ttlMs = this.polls.at(-1)?.ttlMs ?? 0;
    const ref = { jobId: id, jobEpoch: 1, leaseId: `lease-${this.#given}` };
    this.#last = [{ ...ref, leaderEpoch: this.leaderEpoch, attempt: 1, ttlMs, spec: { ...SPEC, ...spec } }];
    this.#parked?.(this.#last);
    await settled();
  }

  /** The same lease once more, to the next poll. */
  async giveAgain(): Promise<void> {
    this.#parked?.(this.#last);
    await settled();
  }

  make(handler: AgentSettings["handlers"][string], settings: Partial<AgentSettings> = {}): Agent {
    const checked = checkSettings({ name: "a", handlers: { work: handler }, leaseMs: 9_000, ...settings });
    return new JobAgent(checked, {
      clock: this.clock,
      desk: this,
      random: seededRandom(1),
      newSession: () => "session",
    });
  }

  async start(handler: AgentSettings["handlers"][string], settings: Partial<AgentSettings> = {}): Promise<Agent> {
    const agent = this.make(handler, settings);
    await agent.start();
    await settled();
    return agent;
  }

  async #farewell(call: Call, signal: AbortSignal): Promise<LeaseAnswer> {
    this.lasts.push(call);
    const answer = this.lastAnswer();
    if (answer instanceof Error) throw answer;
    await orAborted(answer ?? Promise.resolve(), signal);
    return this.#answerTo(call, [], "renewed");
  }

  #answerTo({ renew, logs }: Call, leases: readonly GivenLease[], outcome: Renewal): LeaseAnswer {
    const renewed = renew.map((ref) => ({ ...ref, outcome, state: null }));
    const logEnds = logs.map(({ leaseId, chunk }) => this.#logged(leaseId, chunk));
    return { leaderEpoch: this.leaderEpoch, renewed, leases, logEnds, isDraining: false };
  }

  /** As the cluster does it: what does not follow is not taken. */
  #logged(leaseId: string, { offset, text }: LogChunk): number {
    const known = this.logs.get(leaseId) ?? "";
    if (offset === known.length) this.logs.set(leaseId, known + text);
    return this.logs.get(leaseId)?.length ?? 0;
  }
}

function orAborted<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    answer.then(resolve, reject);
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}
