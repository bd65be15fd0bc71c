// What one leader writes to the journal: drafts are sealed and proposed in the turn in which they were decided, and those of one
// turn travel in one append (design D11).
//
//   write ─▶ sealed, proposed ─▶ gathered ─▶ sent ─▶ committed | unknown | fenced | refused
//
// Invariants:
// - The drafts of one decision are in one append: all or nothing.
// - An append is a range of the journal's tail: what is given up is taken back there.
// - What the log refuses without writing it takes everything after it along: it was decided on a head that never came to
//   be. The leader goes on from before it.
// - A definite failure is only said where nothing was written (trap 66).

import { assert, assertNever } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { EventDraft, SealedEvent } from "../../core/events/index.ts";
import type { Log, LogAppended, TakingLog } from "../../ports/log.ts";
import type { Author, Journal } from "./journal.ts";
import { APPENDS_MAX, APPENDS_MORE_MAX, GATHERED_BYTES_MAX, GATHERED_EVENTS_MAX } from "./limits.ts";

interface Append {
  /** The sequence before its first event. */
  readonly after: number;
  events: number;
  /** What leaves the inbox next to the log when it is committed. */
  readonly taken: string[];
  bytes: number;
  isSent: boolean;
  readonly settle: PromiseWithResolvers<void>;
}

export interface JournalWriterOptions extends Author {
  /** TakingLog where jobs are taken over from next to it. */
  readonly log: Log | TakingLog;
  readonly journal: Journal;
  /** The log says that this epoch is over, or does not know what became of an append. */
  readonly onOver: () => void;
  /** These will never be applied, and the head is what it was before them. */
  readonly onTakenBack: (events: readonly SealedEvent[]) => void;
  /** An append is answered, and there is room for another. `isKept`: false where its events are taken back. */
  readonly onSettled: (isKept: boolean) => void;
}

export class JournalWriter {
  readonly #options: JournalWriterOptions;
  #author: string;
  #underWay: Append[] = [];
  #isOver = false;
  #isFlushing = false;

  /** The log is open, and its last record is folded here. */
  constructor(options: JournalWriterOptions) {
    this.#options = options;
    this.#author = options.author;
  }

  /** Of what is written from this turn on. */
  writeAs(author: string): void {
    this.#author = author;
  }

  /** For what is new. */
  get isFull(): boolean {
    return this.#underWay.length >= APPENDS_MAX;
  }

  /** For whatever it is. */
  get isFullForAll(): boolean {
    return this.#underWay.length >= APPENDS_MAX + APPENDS_MORE_MAX;
  }

  /** Resolves when they are committed; until then the head has them and nobody else knows of them. */
  write(drafts: readonly EventDraft[], taken: readonly string[] = []): Promise<void> {
    if (this.#isOver) return Promise.reject(stoppedLeading());
    if (drafts.length === 0) return this.settled();
    const { journal, epoch } = this.#options;
    const { before, events, bytes } = journal.propose({ epoch, author: this.#author }, drafts);
    const append = this.#appendFor(before.sequence, events, bytes);
    append.events += events;
    append.bytes += bytes;
    append.taken.push(...taken);
    return append.settle.promise;
  }

  /** Resolves when all that the head has is committed. */
  settled(): Promise<void> {
    return this.#underWay.at(-1)?.settle.promise ?? Promise.resolve();
  }

  /** The reign is over. What was sent is answered by the log; what was not, was never written. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.journal.rollback();
    for (const append of this.#underWay) if (!append.isSent) append.settle.reject(stoppedLeading());
    this.#underWay = this.#underWay.filter(({ isSent }) => isSent);
  }

  #appendFor(after: number, events: number, bytes: number): Append {
    const last = this.#underWay.at(-1);
    if (last?.isSent === false) {
      if (last.bytes + bytes <= GATHERED_BYTES_MAX && last.events + events <= GATHERED_EVENTS_MAX) return last;
      this.#send(last);
    }
    const settle = Promise.withResolvers<void>();
    // Much is written that nobody waits for: an expiry, a schedule.
    settle.promise.catch(() => undefined);
    const append: Append = { after, events: 0, taken: [], bytes: 0, isSent: false, settle };
    this.#underWay.push(append);
    this.#flushSoon();
    return append;
  }

  /** Whatever is decided in this turn of the loop travels together. */
  #flushSoon(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    void Promise.resolve().then(() => {
      this.#isFlushing = false;
      const last = this.#underWay.at(-1);
      if (last?.isSent === false) this.#send(last);
    });
  }

  #send(append: Append): void {
    append.isSent = true;
    this.#appended(append).then(
      (answer) => this.#answered(append, answer),
      (error: unknown) => this.#refused(append, error),
    );
  }

  #appended({ after, events, taken }: Append): Promise<LogAppended> {
    const { log, epoch, journal } = this.#options;
    const batch = journal.tailAfter(after, events);
    if (batch === null) return Promise.resolve({ outcome: "fenced", epoch: null });
    if (taken.length === 0) return log.append(epoch, after, batch);
    assert("appendTaking" in log, "only what lies beside the log is taken over into it");
    return log.appendTaking(epoch, after, batch, taken);
  }

  #answered(append: Append, answer: LogAppended): void {
    const at = this.#underWay.indexOf(append);
    if (at >= 0) this.#underWay.splice(at, 1);
    switch (answer.outcome) {
      case "committed":
        assert(at === 0 || this.#isOver, "appends are committed in order");
        assert(answer.position === append.after + append.events, "an append is where it was decided to be");
        append.settle.resolve();
        if (!this.#isOver) this.#options.onSettled(true);
        return;
      case "fenced":
        append.settle.reject(stoppedLeading());
        return this.#over();
      case "unknown":
        append.settle.reject(
          new TenureError(
            "OUTCOME_UNKNOWN",
            "This node stopped leading before it knew whether it was written. Ask the new leader, with the same idempotency key.",
          ),
        );
        return this.#over();
      default:
        return assertNever(answer, "append");
    }
  }

  #refused(append: Append, error: unknown): void {
    const at = this.#underWay.indexOf(append);
    // It went with one before it.
    if (at < 0) return;
    const givenUp = this.#underWay.splice(at);
    if (!this.#isOver) {
      const takenBack = this.#options.journal.rollback(append.after);
      this.#options.onTakenBack(takenBack);
    }
    for (const one of givenUp) one.settle.reject(error);
    // The log knows better than this node who leads: to go on here would be to be refused for ever.
    if (TenureError.is(error) && error.code === "NOT_LEADER") return this.#over();
    if (!this.#isOver) this.#options.onSettled(false);
  }

  #over(): void {
    if (this.#isOver) return;
    this.end();
    this.#options.onOver();
  }
}

function stoppedLeading(): TenureError {
  return new TenureError("NOT_LEADER", "This node stopped leading before it was written. Ask the new leader.");
}
