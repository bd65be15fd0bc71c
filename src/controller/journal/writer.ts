// What one leader writes to the jobs' log: drafts are sealed and proposed in the turn in which they were decided, and those
// of one turn travel in one append (design D11).
//
//   write ─▶ sealed, proposed ─▶ gathered ─▶ sent ─▶ committed | unknown | fenced | refused
//
// Invariants:
// - The drafts of one decision are in one append: all or nothing.
// - The fold's head and the sealer's are the same, always: what is given up is taken back from both.
// - What the log refuses without writing it takes everything behind it along: it was decided on a head that never came to
//   be. The leader goes on from before it.
// - A definite failure is only said where nothing was written (trap 66).

import { assert, assertNever } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { ENTRY_BYTES_MAX } from "../../core/kit/limits.ts";
import { type ChainHead, type EventDraft, type SealedEvent, Sealer } from "../../core/events/index.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Log, LogAppended, TakingLog } from "../../ports/log.ts";
import type { SiteJournal } from "./site-journal.ts";

/** Appends that may wait to be committed; past it new requests are told to come back. */
const APPENDS_MAX = 1_024;
/** So many more for what ends work that goes on: an agent whose results are refused keeps what others wait for. */
const APPENDS_MORE_MAX = 256;
/** Of one append; what the log adds to each record, and to the whole, is far below the rest. */
const APPEND_BYTES_MAX = ENTRY_BYTES_MAX - 256 * 1024;
const APPEND_EVENTS_MAX = 4_096;
/** Of what several decisions write together: an entry is applied in one turn of the loop, on every node. */
const GATHERED_BYTES_MAX = 64 * 1024;
const GATHERED_EVENTS_MAX = 128;

interface Append {
  /** The chain before its first event. */
  readonly before: ChainHead;
  readonly events: Uint8Array[];
  /** What leaves the inbox beside the log when it is committed. */
  readonly taken: string[];
  bytes: number;
  isSent: boolean;
  readonly done: Promise<void>;
  readonly settle: { resolve: () => void; reject: (error: unknown) => void };
}

export interface JournalWriterOptions {
  readonly epoch: number;
  /** TakingLog where jobs are taken over from beside it. */
  readonly log: Log | TakingLog;
  readonly fold: SiteJournal;
  readonly digest: Digest;
  /** The author of the chain: the site's incarnation. */
  readonly author: string;
  /** The log says that this epoch is over, or does not know what became of an append. */
  readonly onOver: () => void;
  /** These will never be applied, and the head is what it was before them. */
  readonly onTakenBack: (events: readonly SealedEvent[]) => void;
  /** An append is answered, and there is room for another. `isKept`: false where its events are taken back. */
  readonly onSettled: (isKept: boolean) => void;
}

export class JournalWriter {
  readonly #options: JournalWriterOptions;
  readonly #sealer: Sealer;
  #underWay: Append[] = [];
  #isOver = false;
  #isFlushing = false;

  /** The log is open, and its last record is folded here. */
  constructor(options: JournalWriterOptions) {
    this.#options = options;
    const { fold, author, epoch, digest } = options;
    this.#sealer = new Sealer({ head: fold.chain, sourceControllerId: author, leaderEpoch: epoch, digest });
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
    const before = this.#sealer.head;
    const sealed = this.#seal(drafts, before);
    const bytes = sealed.reduce((sum, one) => sum + one.bytes.length, 0);
    const append = this.#appendFor(before, sealed.length, bytes);
    for (const one of sealed) append.events.push(one.bytes);
    append.taken.push(...taken);
    append.bytes += bytes;
    const { fold, epoch } = this.#options;
    fold.propose(epoch, sealed);
    return append.done;
  }

  /** Resolves when all that the head has is committed. */
  settled(): Promise<void> {
    return this.#underWay.at(-1)?.done ?? Promise.resolve();
  }

  /** The reign is over. What was sent is answered by the log; what was not, was never written. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.fold.rollback();
    for (const append of this.#underWay) if (!append.isSent) append.settle.reject(stoppedLeading());
    this.#underWay = this.#underWay.filter(({ isSent }) => isSent);
  }

  #seal(drafts: readonly EventDraft[], before: ChainHead): SealedEvent[] {
    try {
      const sealed = drafts.map((draft) => this.#sealer.seal(draft));
      const bytes = sealed.reduce((sum, one) => sum + one.bytes.length, 0);
      if (bytes <= APPEND_BYTES_MAX && sealed.length <= APPEND_EVENTS_MAX) return sealed;
      throw new TenureError(
        "PAYLOAD_TOO_LARGE",
        `This would write ${sealed.length} events of ${bytes} bytes; at once ${APPEND_EVENTS_MAX} and ${APPEND_BYTES_MAX} are possible. Nothing was done: send less at a time.`,
      );
    } catch (error) {
      this.#sealer.rewind(before);
      throw error;
    }
  }

  #appendFor(before: ChainHead, events: number, bytes: number): Append {
    const last = this.#underWay.at(-1);
    if (last?.isSent === false) {
      if (last.bytes + bytes <= GATHERED_BYTES_MAX && last.events.length + events <= GATHERED_EVENTS_MAX) return last;
      this.#send(last);
    }
    const { promise: done, resolve, reject } = Promise.withResolvers<void>();
    // Much is written that nobody waits for: an expiry, a schedule.
    done.catch(() => undefined);
    const append: Append = {
      before,
      events: [],
      taken: [],
      bytes: 0,
      isSent: false,
      done,
      settle: { resolve, reject },
    };
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

  #appended({ before, events, taken }: Append): Promise<LogAppended> {
    const { log, epoch } = this.#options;
    if (taken.length === 0) return log.append(epoch, before.sequence, events);
    assert("appendTaking" in log, "only what lies beside the log is taken over into it");
    return log.appendTaking(epoch, before.sequence, events, taken);
  }

  #answered(append: Append, answer: LogAppended): void {
    const at = this.#underWay.indexOf(append);
    if (at >= 0) this.#underWay.splice(at, 1);
    switch (answer.outcome) {
      case "committed":
        assert(at === 0 || this.#isOver, "appends are committed in order");
        assert(
          answer.position === append.before.sequence + append.events.length,
          "an append is where it was decided to be",
        );
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
      const takenBack = this.#options.fold.rollback(append.before.sequence);
      this.#sealer.rewind(append.before);
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
