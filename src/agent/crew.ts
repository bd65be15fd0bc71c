// All jobs in this agent's hands, and what the cluster says about them. The loops share it: polls bring jobs, beats keep
// them, results end them.

import { assertNever } from "../core/kit/assert.ts";
import { type ErrorCode, TenureError } from "../core/kit/errors.ts";
import { JOB_PROGRESS_BYTES_MAX } from "../core/kit/limits.ts";
import type { Random } from "../core/kit/random.ts";
import { errorOf } from "../core/kit/user-code.ts";
import type { Instant } from "../core/trust/window.ts";
import type { Clock } from "../ports/clock.ts";
import type { AgentInfo, GivenLease, LeaseAnswer } from "../ports/jobs.ts";
import { Attempt } from "./attempt.ts";
import { Bell } from "../loops/bell.ts";
import type { LeaseDesk } from "./desk.ts";
import { CREW_RETRY_MS_MAX, CREW_RETRY_MS_MIN } from "./limits.ts";
import { outcomeOfReturn, outcomeOfThrow } from "./outcome.ts";
import type { CheckedSettings, JobContext } from "./settings.ts";

/** What is wrong with the request itself: it is refused again however often it is sent. */
const CONTENT: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "BAD_REQUEST",
  "PAYLOAD_TOO_LARGE",
  "ENTRY_TOO_LARGE",
  "EVENT_INVALID",
]);

export interface CrewWorld {
  readonly clock: Clock;
  readonly desk: LeaseDesk;
  readonly random: Random;
}

export class Crew {
  readonly settings: CheckedSettings;
  readonly world: CrewWorld;
  readonly info: AgentInfo;
  /** By the id of their leases. */
  readonly attempts = new Map<string, Attempt>();
  /** Aborts when nothing more is to be said. */
  readonly over = new AbortController();
  readonly beatBell: Bell;
  readonly pollBell: Bell;
  readonly resultBell: Bell;
  readonly idleBell: Bell;
  /** As the cluster gave it; undefined before its first answer, and of servers that give none. */
  epoch: number | undefined;
  /** Its session was taken over or removed: nothing of it counts any more. */
  onReplaced: (error: TenureError) => void = () => undefined;
  /** Something of its own failed, which nothing of the world does to it: it can't go on. */
  onBroken: (error: unknown) => void = () => undefined;

  constructor(settings: CheckedSettings, world: CrewWorld, session: string) {
    const { name, kinds, labels, platform, capacity } = settings;
    this.settings = settings;
    this.world = world;
    this.info = { name, session, kinds, labels, platform, capacity };
    this.beatBell = new Bell(world.clock);
    this.pollBell = new Bell(world.clock);
    this.resultBell = new Bell(world.clock);
    this.idleBell = new Bell(world.clock);
  }

  /** A lease is run once, however often it is given. */
  begin(lease: GivenLease, sentAt: Instant): void {
    if (this.attempts.has(lease.leaseId)) return;
    const attempt = new Attempt(this.world.clock, lease, sentAt);
    this.attempts.set(lease.leaseId, attempt);
    // One that stood still may hear of it when it is over (trap 51): then nothing is begun.
    if (attempt.isTooLate) attempt.settle({ kind: "handed-back" });
    else void this.#run(attempt).catch((error: unknown) => this.onBroken(error));
    this.resultBell.ring();
    // Its time has run since the call was sent, up to a third of it: the beat must know.
    this.beatBell.ring();
  }

  finish(attempt: Attempt): void {
    attempt.finish();
    this.attempts.delete(attempt.ref.leaseId);
    this.pollBell.ring();
    this.beatBell.ring();
    if (this.attempts.size === 0) this.idleBell.ring();
  }

  /** What an answer to a call says about the leases that it named. */
  heard(sentAt: Instant, { leaderEpoch, renewed, agentEpoch }: LeaseAnswer): void {
    this.epoch ??= agentEpoch;
    for (const { leaseId, outcome } of renewed) {
      const attempt = this.attempts.get(leaseId);
      if (attempt === undefined) continue;
      switch (outcome) {
        case "renewed":
          attempt.renewed(sentAt, leaderEpoch);
          break;
        case "cancelled":
          attempt.renewed(sentAt, leaderEpoch);
          attempt.abort("cancelled", `Job ${attempt.ref.jobId} was cancelled.`);
          break;
        case "committed":
          this.finish(attempt);
          break;
        case "lost":
          this.#lost(attempt);
          break;
        default:
          assertNever(outcome, "renewal");
      }
    }
    this.resultBell.ring();
  }

  /** Tells whoever listens; the time after which to try again. */
  failed(error: unknown, failures: number): number {
    if (!this.over.signal.aborted) this.settings.onError(errorOf(error));
    const ms = Math.min(CREW_RETRY_MS_MAX, CREW_RETRY_MS_MIN * 2 ** Math.min(failures, 10));
    return this.world.random.between(ms / 2, ms);
  }

  ringAll(): void {
    for (const bell of [this.beatBell, this.pollBell, this.resultBell, this.idleBell]) bell.ring();
  }

  #lost(attempt: Attempt): void {
    attempt.isLost = true;
    if (attempt.outcome === null) {
      attempt.abort(
        "lease-lost",
        `The lease of job ${attempt.ref.jobId} is over: the job is not this agent's any more.`,
      );
    } else if (!attempt.isSending) this.finish(attempt);
  }

  async #run(attempt: Attempt): Promise<void> {
    const { spec, jobId: id } = attempt.lease;
    const { kind, payload, queue, labels, priority } = spec;
    const handler = this.settings.handlers.get(kind);
    try {
      if (handler === undefined) throw new Error(`This agent has no handler for ${kind}.`);
      const value = await handler({ id, kind, payload, queue, labels, priority }, this.#contextOf(attempt));
      attempt.settle(outcomeOfReturn(value));
    } catch (error) {
      attempt.settle(outcomeOfThrow(error, attempt.aborted));
    }
    // A drain waits for what it has aborted.
    this.idleBell.ring();
    if (attempt.isOver) return;
    if (attempt.isLost) return this.finish(attempt);
    this.beatBell.ring();
    this.resultBell.ring();
  }

  #contextOf(attempt: Attempt): JobContext {
    const isHeard = (): boolean => attempt.outcome === null && !attempt.isOver;
    return {
      get signal() {
        return attempt.signal;
      },
      get lost() {
        return attempt.lost;
      },
      attempt: attempt.lease.attempt,
      progress: (share, message = null) => {
        if (!isHeard()) return;
        const known = typeof share === "number" && !Number.isNaN(share) ? Math.min(1, Math.max(0, share)) : null;
        attempt.progress = { share: known, message: message === null ? null : clipped(message) };
        this.beatBell.ring();
      },
      log: (text) => {
        if (!isHeard()) return;
        attempt.logs.write(text);
        this.beatBell.ring();
      },
      logRoom: () => (isHeard() ? attempt.logs.room() : Promise.resolve()),
    };
  }
}

/** On both clocks: what is sent now counts from now. */
export function instantOf(clock: Clock): Instant {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

/** Whether sending the same again is of no use. */
export function isAboutContent(error: unknown): error is TenureError {
  return TenureError.is(error) && CONTENT.has(error.code);
}

export function isReplaced(error: unknown): error is TenureError {
  return TenureError.is(error) && error.code === "STALE_EPOCH";
}

function clipped(text: string): string {
  return text.slice(0, Math.floor(JOB_PROGRESS_BYTES_MAX / 3)).toWellFormed();
}
