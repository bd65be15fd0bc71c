// Results, sent until each is answered: taken, stale, or the lease is known to be over. What is ready goes out together, one
// call at a time.
//
// A leader that is new refuses the old epoch (STALE_EPOCH with its own): the lease is renewed there first, which says whether
// the result was taken before; only then does it go out again, with the new epoch (design D16).

import { RESULTS_PER_CALL_MAX } from "../core/kit/limits.ts";
import { ATTEMPT_MS } from "../core/kit/timeouts.ts";
import type { ResultAnswer, ResultCall } from "../ports/jobs.ts";
import type { Attempt } from "./attempt.ts";
import { pause } from "../loops/time.ts";
import { type Crew, isAboutContent } from "./crew.ts";
import { RESULTS_LETTERS_MAX, RESULTS_LETTERS_PER_ATTEMPT } from "./limits.ts";
import { refusedOutcome } from "./outcome.ts";

export class Results {
  readonly #crew: Crew;
  /** A result among the last ones was refused for what it says: they go out one by one. */
  #oneByOne = 0;

  constructor(crew: Crew) {
    this.#crew = crew;
  }

  async run(): Promise<void> {
    const { over, resultBell } = this.#crew;
    for (let failures = 0; !over.signal.aborted;) {
      const batch = this.#batch();
      if (batch.length === 0) {
        await resultBell.wait(null);
        continue;
      }
      failures = (await this.#send(batch, failures)) ? 0 : failures + 1;
    }
  }

  #batch(): readonly Attempt[] {
    const batch: Attempt[] = [];
    let letters = 0;
    const max = this.#oneByOne > 0 ? 1 : RESULTS_PER_CALL_MAX;
    for (const attempt of this.#crew.attempts.values()) {
      if (!attempt.isReadyToReport) continue;
      letters += JSON.stringify(attempt.outcome).length;
      if (batch.length > 0 && letters > RESULTS_LETTERS_MAX) break;
      batch.push(attempt);
      if (batch.length === max) break;
    }
    return batch;
  }

  async #send(batch: readonly Attempt[], failures: number): Promise<boolean> {
    const { world, info, settings, over } = this.#crew;
    const calls = batch.map((one) => callOf(one));
    for (const attempt of batch) attempt.isSending = true;
    let answers: readonly ResultAnswer[];
    try {
      const attemptMs = Math.min(settings.leaseMs, attemptMsOf(calls) * 2 ** Math.min(failures, 10));
      const options = { signal: over.signal, timeoutMs: settings.leaseMs, attemptMs };
      answers = await world.desk.results(info.session, calls, options);
    } catch (error) {
      for (const attempt of batch) attempt.isSending = false;
      if (isAboutContent(error)) {
        this.#refused(batch, error);
        return true;
      }
      const retryMs = this.#crew.failed(error, failures);
      // Beats go on meanwhile, and say what became of them.
      await pause(world.clock, retryMs, over.signal);
      return false;
    }
    this.#oneByOne = Math.max(0, this.#oneByOne - batch.length);
    batch.forEach((attempt, at) => {
      attempt.isSending = false;
      const answer = answers[at];
      if (answer !== undefined && !attempt.isOver) this.#answered(attempt, calls[at] as ResultCall, answer);
    });
    return true;
  }

  #answered(attempt: Attempt, call: ResultCall, answer: ResultAnswer): void {
    const isOtherLeader = !answer.ok && answer.code === "STALE_EPOCH" && answer.leaderEpoch !== call.leaderEpoch;
    if (!isOtherLeader) return this.#crew.finish(attempt);
    // Renewed there meanwhile, by a beat: then it can go out at once.
    if (attempt.leaderEpoch >= answer.leaderEpoch) return;
    attempt.needsRenewal = true;
    this.#crew.beatBell.ring();
  }

  #refused(batch: readonly Attempt[], error: Error): void {
    const [only, ...others] = batch;
    if (only === undefined) return;
    if (others.length > 0) {
      this.#oneByOne = batch.length;
      return;
    }
    this.#oneByOne = Math.max(0, this.#oneByOne - 1);
    this.#crew.settings.onError(error);
    if (only.isReplaced) return this.#crew.finish(only);
    only.replace(refusedOutcome(error.message));
  }
}

function attemptMsOf(calls: readonly ResultCall[]): number {
  const letters = calls.reduce((sum, { outcome }) => sum + JSON.stringify(outcome).length, 0);
  return ATTEMPT_MS * Math.ceil((letters + 1) / RESULTS_LETTERS_PER_ATTEMPT);
}

function callOf({ ref, leaderEpoch, outcome }: Attempt): ResultCall {
  return { ...ref, leaderEpoch, outcome: outcome ?? { kind: "handed-back" } };
}
