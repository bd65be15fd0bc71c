// What agents ask of a leader: to be given jobs, now or as soon as there are any, and to keep those that they have.
//
//   lease ─▶ reported, renewed ─▶ given ───────────────────────────────▶ answered
//                                   └─ nothing for it ─▶ parked ─ woken ─┘
//
// A job is given to an agent that waits in the turn in which it became ready. `handOut` does that, and whatever may have made
// a job ready, or somebody fit to take one, ends in it: a command, a poll that is parked, the time, an append that made room
// or was taken back, the end of draining.
//
// Invariants:
// - After each turn no job is ready while an agent waits that may run it and has room, unless its slice is used up, or
//   the writer is full: then it goes on when an append is answered (`isOwed`), or a moment after one was taken back.
// - handOut throws nothing of the world: it runs within requests that are not about it, and they are done.
// - Leases that are committed are in the answer, whoever leads by then; what else it asked is for the new leader to say.
// - An answer may get lost. Agents number their calls, and the next call says which was answered last: what was given between
//   the two is ready again in the turn in which it comes, for those who wait and for itself. A call with jobs in its answer
//   shows by their commit that this was done; another is answered when that is committed, or nobody else leads. So "answered"
//   is never said of a call that was given more than its answer has: one that comes after a later one of its process, or
//   once more, is refused without saying what became of it, and given nothing.

import { assert } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { type CommandOf, type DecideContext, type JobsAnswers, openClasses } from "../../core/jobs/index.ts";
import type { JobsCommand, JobsCommandKind, OpenClass } from "../../core/jobs/index.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { DrainedBy, GivenLease, LeaseAnswer, LeaseCall } from "../../ports/jobs.ts";
import type { SiteJournal } from "../journal/site-journal.ts";
import { LEASING_RETRY_MS } from "./limits.ts";
import { type Poll, JobsPolls } from "./polls.ts";
import type { JobsTimers } from "./timers.ts";
import { Slice } from "../slice.ts";

export type Decided<Answer> =
  | { readonly kind: "decided"; readonly written: Promise<void> | null; readonly answer: Answer }
  | { readonly kind: "refused"; readonly error: TenureError };

export interface JobsLeasingOptions {
  readonly clock: Clock;
  readonly fold: SiteJournal;
  readonly context: DecideContext;
  readonly timers: () => JobsTimers;
  /** Nothing can be given at this moment. */
  readonly isFull: () => boolean;
  /** Decides and proposes, in this turn. */
  readonly decide: <Kind extends JobsCommandKind>(command: CommandOf<Kind>) => Decided<JobsAnswers[Kind]>;
  /** See JobsReign. */
  readonly confirmed: () => Promise<void>;
}

interface Given {
  readonly written: Promise<void> | null;
  readonly leases: readonly GivenLease[];
}

interface ParkedCall extends Pick<LeaseCall, "agent" | "max" | "ttlMs" | "poll"> {
  given: Given;
}

const NOBODY: readonly Poll<ParkedCall>[] = [];
const NOTHING_TO_DO = (): void => undefined;
interface Reported {
  readonly written: Promise<void> | null;
  readonly logEnds: LeaseAnswer["logEnds"];
}

const NO_REPORT: Reported = { written: null, logEnds: [] };
const NOTHING: Given = { written: null, leases: [] };

export class JobsLeasing {
  readonly #options: JobsLeasingOptions;
  readonly #fold: SiteJournal;
  readonly #polls: JobsPolls<ParkedCall>;
  readonly #drainedBy = new Set<DrainedBy>();
  #isOver = false;
  #isHanding = false;
  /** Jobs may be ready next to agents that wait for them. */
  #isOwed = false;
  #retry: Timer | null = null;

  constructor(options: JobsLeasingOptions) {
    this.#options = options;
    this.#fold = options.fold;
    this.#polls = new JobsPolls<ParkedCall>(options.clock);
  }

  get waiting(): number {
    return this.#polls.size;
  }

  /** Somebody waits for jobs, and may be given them. */
  get isWanting(): boolean {
    return this.#polls.isWanting && !this.isDraining;
  }

  get isDraining(): boolean {
    return this.#drainedBy.size > 0;
  }

  setDraining(draining: boolean, by: DrainedBy): void {
    if (draining) this.#drainedBy.add(by);
    else this.#drainedBy.delete(by);
    this.handOut();
  }

  end(): void {
    this.#isOver = true;
    this.#retry?.cancel();
    this.#polls.wakeAll();
  }

  /** An append was answered. What was taken back is ready again; not at once, or each who waits would be refused in turn. */
  settled(isKept: boolean): void {
    if (isKept) {
      if (this.#isOwed) this.handOut();
      return;
    }
    const { clock } = this.#options;
    this.#retry ??= clock.setTimer(clock.monotonicMs() + LEASING_RETRY_MS, () => {
      this.#retry = null;
      this.handOut();
    });
  }

  // ---- one call ------------------------------------------------------------------------------------

  async lease(call: LeaseCall, signal: AbortSignal): Promise<LeaseAnswer> {
    const { agent, ttlMs, waitMs, poll } = call;
    if (poll !== undefined && poll <= this.#options.timers().lastPoll(agent)) throw overtaken(poll);
    // Counted from its arrival, however late the answer leaves.
    this.#renew(call);
    // What it reports comes first: where that is refused, nothing was given.
    const reported = this.#report(call);
    this.#endEarlier(call);
    const takenBack = this.#takeBack(call);
    const mayGive = !this.isDraining && !signal.aborted;
    const max = mayGive && !this.#options.isFull() ? call.max : 0;
    const { agentEpoch, caller } = call;
    const goesOn = hasBeenAnswered(call);
    const first = this.#options.decide<"lease">({ kind: "lease", agent, max, ttlMs, poll, agentEpoch, caller, goesOn });
    if (first.kind === "refused") {
      // It tells a process to end: also this leaves only where it is committed, and nobody else has led since.
      await this.#options.confirmed();
      throw first.error;
    }
    // As it was registered, now or before: if that is taken back, this is not answered.
    const epoch = this.#fold.book.head.agentEpoch(agent.name);
    const { takenFrom } = first.answer;
    const about = {
      ...(epoch !== undefined && { agentEpoch: epoch }),
      ...(takenFrom !== null && { takenFrom }),
    };
    this.#options.timers().heard(agent, poll);
    // Of the process before, under its name.
    if (first.answer.lost.length > 0) this.handOut();
    let given: Given = { written: first.written, leases: first.answer.leases };
    // One that wants no jobs waits for news of those that it has. While draining nobody waits: they are to hear of it.
    if (given.leases.length === 0 && waitMs > 0 && mayGive && !this.#hasNews(call)) {
      // It must be known as an agent before it is given anything, and what it reported must be in.
      await Promise.all([first.written, reported.written, takenBack]);
      given = await this.#wait(call, signal);
    }
    await given.written;
    // What was reported is in the log before the leases, if there are any.
    if (given.leases.length === 0) await Promise.all([reported.written, takenBack]);
    const renewed = await this.#renewed(call, given);
    this.#options.timers().answered(agent);
    const { leaderEpoch } = this.#options.context;
    const { logEnds } = reported;
    return { leaderEpoch, ...about, renewed, leases: given.leases, logEnds, isDraining: this.isDraining };
  }

  /** Only who has a lease can keep it. */
  #renew({ agent, renew }: LeaseCall): void {
    const { head } = this.#fold.book;
    for (const ref of renew) {
      const { outcome } = head.renewal(agent.session, ref);
      const isHeld = outcome === "renewed" || outcome === "cancelled";
      if (isHeld) this.#options.timers().renewed(ref.jobId, ref.jobEpoch);
    }
  }

  #report({ agent, progress, logs }: LeaseCall): Reported {
    if (progress.length + logs.length === 0) return NO_REPORT;
    const decided = this.#options.decide<"report">({ kind: "report", session: agent.session, progress, logs });
    assert(decided.kind === "decided", "a report is taken as far as it goes");
    const written = decided.written ?? this.#options.confirmed();
    // Nobody waits for it while jobs are given.
    written.catch(() => undefined);
    return { written, logEnds: decided.answer.logs };
  }

  /** One that its process does not wait for any more must not be given anything. */
  #endEarlier({ agent, poll = 0 }: LeaseCall): void {
    for (const one of this.#pollOf(agent.name)) {
      const isEarlier = one.call.poll !== undefined && one.call.poll < poll;
      if (isEarlier && one.call.agent.session === agent.session) one.wake();
    }
  }

  /** What earlier calls of this process were given without its knowing. Null: nothing, by its own word. */
  #takeBack({ agent, poll = 0, answered = poll }: LeaseCall): Promise<void> | null {
    if (answered >= poll - 1) return null;
    const { name, session } = agent;
    const decided = this.#options.decide<"take-back">({ kind: "take-back", name, session, poll, answered });
    assert(decided.kind === "decided", "what is taken back is taken back as far as there is any");
    // Another leader may have given what this one knows nothing of.
    const written = decided.written ?? this.#options.confirmed();
    // Nobody waits for it while jobs are given.
    written.catch(() => undefined);
    return written;
  }

  async #renewed({ agent, renew }: LeaseCall, { leases }: Given): Promise<LeaseAnswer["renewed"]> {
    if (renew.length > 0 || (this.#isOver && leases.length === 0)) {
      try {
        await this.#options.confirmed();
      } catch (error) {
        if (leases.length === 0) throw error;
        return [];
      }
    }
    // Of what is committed: the head may have moved on since it was confirmed, and "committed" or "lost" is for good.
    const { applied } = this.#fold.book;
    return renew.map((ref) => ({ ...ref, ...applied.renewal(agent.session, ref) }));
  }

  /** Something that the agent should hear at once. */
  #hasNews({ agent, renew }: LeaseCall): boolean {
    return renew.some((ref) => this.#fold.book.head.renewal(agent.session, ref).outcome !== "renewed");
  }

  async #wait(call: LeaseCall, signal: AbortSignal): Promise<Given> {
    const { agent, max, ttlMs, waitMs, poll } = call;
    // What came since it was looked at woke nobody.
    if (this.#isOver || this.isDraining || this.#hasNews(call)) return NOTHING;
    if (poll !== undefined && poll < this.#options.timers().lastPoll(agent)) return NOTHING;
    const waiting: ParkedCall = { agent, max, ttlMs, poll, given: NOTHING };
    const parked = this.#polls.park(waiting, waitMs, signal);
    this.handOut();
    this.#options.timers().arm();
    await parked;
    return waiting.given;
  }

  // ---- those who wait ------------------------------------------------------------------------------

  /** Gives what is ready to those who wait, in this turn. */
  handOut(): void {
    if (this.#isHanding || this.#isOver || !this.isWanting) return;
    this.#isHanding = true;
    this.#isOwed = true;
    const slice = new Slice(this.#options.clock);
    try {
      // What is given changes what is walked through: only where nothing was given has everybody been asked.
      for (let isFirst = true; !this.#options.isFull() && (isFirst || !slice.isOver); isFirst = false) {
        let handed = false;
        for (const one of openClasses(this.#fold.book, this.#polls.kinds, this.#options.context)) {
          if (this.#handOutOf(one, slice)) handed = true;
          if (handed && slice.isOver) break;
        }
        if (handed) continue;
        this.#isOwed = false;
        return;
      }
    } finally {
      this.#isHanding = false;
    }
  }

  /** To one of each queue in turn. Where a job was given and the slice is over, it stops: it goes on when that one is committed. */
  #handOutOf(one: OpenClass, slice: Slice): boolean {
    let handed = 0;
    for (let before = -1; before < handed;) {
      before = handed;
      for (const queue of this.#polls.fitting(one)) {
        if (one.open.size === 0 || this.#options.isFull()) return handed > 0;
        handed += this.#giveOne(queue);
        if (handed > 0 && slice.isOver) return true;
      }
    }
    return handed > 0;
  }

  /** To the first who takes any. */
  #giveOne(queue: Iterable<Poll<ParkedCall>>): number {
    for (const poll of queue) {
      const given = this.#give(poll);
      if (given > 0) return given;
    }
    return 0;
  }

  #give(poll: Poll<ParkedCall>): number {
    const { agent, max, ttlMs, poll: number } = poll.call;
    let decided: Decided<JobsAnswers["lease"]>;
    try {
      decided = this.#options.decide<"lease">({ kind: "lease", agent, max, ttlMs, poll: number, goesOn: true });
    } catch (error) {
      if (!TenureError.is(error)) throw error;
      decided = { kind: "refused", error };
    }
    if (decided.kind === "refused") {
      // It is told when it asks again; those after it need not wait for that.
      poll.wake();
      return 0;
    }
    const { leases } = decided.answer;
    if (leases.length === 0) return 0;
    poll.call.given = { written: decided.written, leases };
    poll.wake();
    return leases.length;
  }

  // ---- what commands mean to them ------------------------------------------------------------------

  /** To be asked before what was decided is proposed. What it returns is done after that. */
  concerned(command: JobsCommand): () => void {
    if (this.#polls.size === 0) return NOTHING_TO_DO;
    const told = this.#toldBy(command);
    return () => {
      for (const poll of told) poll.wake();
      if (!MAKES_NOTHING_READY.has(command.kind)) this.handOut();
    };
  }

  /** Who waits with a job in its hands that this takes away hears of it now, not at its next call. */
  #toldBy(command: JobsCommand): readonly Poll<ParkedCall>[] {
    switch (command.kind) {
      case "cancel":
      case "lease-expired":
      case "attempt-timed-out": {
        const lease = this.#fold.book.head.lease(command.jobId);
        return this.#pollOf(lease?.agent);
      }
      case "remove-agent":
      case "hand-back":
        return this.#pollOf(command.name);
      case "lease": {
        // Another process under its name.
        const { name, session } = command.agent;
        return this.#pollOf(name).filter(({ call }) => call.agent.session !== session);
      }
      default:
        return NOBODY;
    }
  }

  #pollOf(agent: string | undefined): readonly Poll<ParkedCall>[] {
    const poll = agent === undefined ? undefined : this.#polls.ofAgent(agent);
    return poll === undefined ? NOBODY : [poll];
  }
}

/** Also where it names no epoch, as agents of older releases: who has leases, or heard an answer, was registered. */
function hasBeenAnswered({ renew, progress, logs, answered = 0 }: LeaseCall): boolean {
  return renew.length + progress.length + logs.length > 0 || answered > 0;
}

function overtaken(poll: number): TenureError {
  return new TenureError(
    "OUTCOME_UNKNOWN",
    `Call ${poll} of this agent came behind a later one, or once more: it is given nothing, and what it was given before is not known here. Ask with the next number.`,
  );
}

/** After all others a job may have become ready, or an agent may have room. */
const MAKES_NOTHING_READY: ReadonlySet<JobsCommandKind> = new Set<JobsCommandKind>([
  // But see what it may lose.
  "lease",
  "report",
  "agent-offline",
  "put-schedule",
  "delete-schedule",
  "forget",
]);
