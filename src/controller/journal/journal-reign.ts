// One leadership over a site's journal: from the moment in which this node may write in an epoch to its end. Every tenant writes
// through it, so that there is one time of events, one order of appends and one answer to whether this node still leads.
//
// What the caller of a change is answered, and when (design D11):
// - What was decided, by events: when they are committed in this epoch.
// - What rests on the head without an event of its own (a refusal, a repetition, nothing to do): when the head is committed,
//   and nobody else can have led since it was asked. Otherwise OUTCOME_UNKNOWN, never a refusal.

import { TenureError } from "../../core/kit/errors.ts";
import { CLOCK_SKIP_MS_MIN } from "../../core/kit/limits.ts";
import type { EventDraft, SealedEvent } from "../../core/events/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Leadership } from "../../ports/leadership.ts";
import type { Serving } from "../leadership/reign.ts";
import { EventTime, type NodeTime } from "./event-time.ts";
import type { SiteJournal } from "./site-journal.ts";
import { JournalWriter, type JournalWriterOptions } from "./writer.ts";

/** In which events are decided: the time is read once for all of them. */
export interface Moment {
  readonly nowMs: number;
  /** What the events' clock has jumped over, and no event has said yet. */
  readonly skippedMs: number;
  readonly leaderEpoch: number;
  readonly newId: () => string;
}

/** Decides on what is applied, in this turn; throws what refuses it. */
export type Change = (moment: Moment) => readonly EventDraft[];

/** What a tenant's service hears of the journal's reign. */
interface Watcher {
  /** These will never be applied, and the head is what it was before them. */
  readonly takenBack: (events: readonly SealedEvent[]) => void;
  /** An append is answered, and there is room for another. `isKept`: false where its events are taken back. */
  readonly settled: (isKept: boolean) => void;
  readonly ended: () => void;
}

export interface JournalReignOptions extends Pick<JournalWriterOptions, "log" | "epoch" | "author" | "onOver"> {
  readonly journal: SiteJournal;
  readonly leadership: Leadership;
  readonly clock: Clock;
  readonly time: NodeTime;
  readonly newId: () => string;
}

export class JournalReign implements Serving {
  readonly epoch: number;
  /** Of this node. */
  readonly time: NodeTime;
  readonly #options: JournalReignOptions;
  readonly #writer: JournalWriter;
  readonly #eventTime: EventTime;
  readonly #skippedBeforeMs: number;
  readonly #beganMs: number;
  readonly #watchers: Watcher[] = [];
  #isOver = false;

  constructor(options: JournalReignOptions) {
    const { epoch, time, clock, journal } = options;
    this.#options = options;
    this.epoch = epoch;
    this.time = time;
    this.#eventTime = new EventTime(clock, time);
    this.#skippedBeforeMs = journal.book.skippedMs;
    this.#beganMs = clock.monotonicMs();
    this.#writer = new JournalWriter({
      ...options,
      onOver: () => {
        this.end();
        options.onOver();
      },
      onTakenBack: (events) => this.#watchers.forEach(({ takenBack }) => takenBack(events)),
      onSettled: (isKept) => this.#watchers.forEach(({ settled }) => settled(isKept)),
    });
  }

  /** For a service that lives as long as this. */
  watch(watcher: Watcher): void {
    this.#watchers.push(watcher);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** For what is new. */
  get isFull(): boolean {
    return this.#writer.isFull;
  }

  /** For whatever it is. */
  get isFullForAll(): boolean {
    return this.#writer.isFullForAll;
  }

  /** Something new could be written now, as far as was heard. */
  get leads(): boolean {
    return !this.#isOver && !this.isFull && this.#options.leadership.epoch() === this.epoch;
  }

  /** The events' time. */
  get nowMs(): number {
    return this.#eventTime.nowMs();
  }

  /** What it has jumped over by then, and no event has said yet. */
  get skippedMs(): number {
    return Math.floor(this.#skippedBeforeMs + this.#eventTime.skippedMs - this.#options.journal.book.skippedMs);
  }

  /** What is dated by the time of day may be taken down: see NodeTime. */
  get isTimeSettled(): boolean {
    return this.time.isSettled(this.#beganMs);
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#writer.end();
    for (const { ended } of this.#watchers) ended();
  }

  /** What was decided in that moment, in this turn. Resolves when it is committed; until then only the head has it. */
  write(
    drafts: readonly EventDraft[],
    moment: Pick<Moment, "skippedMs">,
    taken: readonly string[] = [],
  ): Promise<void> {
    const written = this.#writer.write(withSkip(drafts, moment), taken);
    this.#eventTime.written();
    return written;
  }

  /** Whose events they are that are written from this turn on. */
  writeAs(author: string): void {
    this.#writer.writeAs(author);
  }

  /** One has to be over before the next: see JournalService. */
  async change(make: Change): Promise<void> {
    if (this.#isOver) throw this.notLeader();
    const { nowMs, skippedMs, epoch: leaderEpoch } = this;
    const moment = { nowMs, skippedMs, leaderEpoch, newId: this.#options.newId };
    let drafts: readonly EventDraft[];
    try {
      drafts = make(moment);
    } catch (error) {
      await this.confirmed();
      throw error;
    }
    await (drafts.length === 0 ? this.confirmed() : this.write(drafts, moment));
  }

  /** The head is committed, and nobody else has led since this was called. */
  async confirmed(): Promise<void> {
    await this.#writer.settled();
    if (await this.#options.leadership.confirm()) {
      if (!this.#isOver) return;
    }
    if (this.#isOver) throw this.notLeader();
    throw new TenureError(
      "OUTCOME_UNKNOWN",
      "It is not known whether this node still leads, so this answer may be out of date. Retry with the same idempotency key.",
    );
  }

  notLeader(): TenureError {
    return new TenureError("NOT_LEADER", `This node stopped leading (epoch ${this.epoch}). Ask the new leader.`);
  }
}

/** The first event after a jump of the events' clock says so. One that is taken back takes its word along. */
function withSkip(drafts: readonly EventDraft[], { skippedMs }: Pick<Moment, "skippedMs">): readonly EventDraft[] {
  const [first, ...rest] = drafts;
  if (first === undefined || skippedMs < CLOCK_SKIP_MS_MIN) return drafts;
  return [{ ...first, payload: { ...first.payload, skippedMs } }, ...rest];
}
