// One leadership over the receipts: from the moment in which their log is open in this epoch to its end.
//
//   pages ──▶ waiting ──▶ (one append at a time) a record ──▶ committed, and so applied here ──▶ answered
//
// Decided is on what is applied, and on what the same record holds before: with one append under way nothing else can change it
// meanwhile. So what is answered "accepted" was taken, on every node.
//
// Who is answered what:
// - Accepted: when the record is committed in this epoch.
// - A duplicate, or a page that must be verified again: at once, or with the record that makes it one. What is known of a line only
//   grows, whoever leads.
// - What is under way when the epoch ends: OUTCOME_UNKNOWN, or NOT_LEADER where nothing was written. What waits: NOT_LEADER.

import { assert, assertNever } from "../../../core/kit/assert.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import type { LineState, Page } from "../../../core/mesh/model.ts";
import {
  encodePage,
  encodeRecord,
  type LinePoint,
  LINES_MAX,
  RECORD_BYTES_MAX,
  RECORD_GATHERED_BYTES_MAX,
  RECORD_PAGES_MAX,
  recordedBytes,
  recordedPage,
  type RecordedPage,
} from "../../../core/mesh/receipts/index.ts";
import type { Log, LogAppended } from "../../../ports/log.ts";
import type { Opened, Serving } from "../../leadership/reign.ts";
import { RECEIPTS_WAITING_BYTES_MAX, RECEIPTS_WAITING_MAX } from "../limits.ts";
import type { ReceiptsFold } from "./receipts-fold.ts";

/** A page, and what was proven about it (core/mesh/proof). */
export interface VerifiedPage {
  readonly page: Page;
  /** The state of its line that it was verified on. */
  readonly from: LineState;
  /** The state that it gives. */
  readonly state: LineState;
  /** Of its new events whose text is known here. */
  readonly timestamps: readonly number[];
}

export type PageReceived =
  /** Its new events are in this site's log; the others were there before. */
  | { readonly kind: "accepted"; readonly accepted: number; readonly duplicates: number }
  /** All of it was known. */
  | { readonly kind: "duplicate"; readonly duplicates: number }
  /** More is known of the line, or less, than what it was verified on: verify it on what is applied now. */
  | { readonly kind: "again"; readonly have: number }
  /** So many lines are known that no other is taken. */
  | { readonly kind: "full" };

export interface ReceiptsReignOptions extends Opened {
  readonly log: Pick<Log, "append">;
  readonly fold: ReceiptsFold;
  /** The time of day on this node, in whole milliseconds. */
  readonly wallMs: () => number;
  /** Events that are further ahead of it do not move the clock of own events. */
  readonly maxSkewMs: number;
}

interface Waiting {
  readonly page: Page;
  readonly recorded: RecordedPage;
  /** It was verified as the first page of its line, and not on what another page gives. */
  readonly isFirst: boolean;
  readonly state: LineState;
  readonly timestamps: readonly number[];
  readonly settle: PromiseWithResolvers<PageReceived>;
}

/** What becomes of it when the record is committed. */
interface Decided extends Waiting {
  readonly outcome: PageReceived;
}

export class ReceiptsReign implements Serving {
  readonly epoch: number;
  readonly #options: ReceiptsReignOptions;
  #position: number;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #isUnderWay = false;
  #isOver = false;

  constructor(options: ReceiptsReignOptions) {
    this.#options = options;
    this.epoch = options.epoch;
    this.#position = options.position;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const { settle } of this.#waiting.splice(0)) settle.reject(stoppedLeading());
    this.#waitingBytes = 0;
  }

  /** One outcome for each. Where it rejects, some of them may be written: brought again, those are duplicates. */
  receive(pages: readonly VerifiedPage[]): Promise<readonly PageReceived[]> {
    if (this.#isOver) throw stoppedLeading();
    const waiting = pages.map(waitingOf);
    const bytes = waiting.reduce((sum, { recorded }) => sum + recordedBytes(recorded), 0);
    const isFull = this.#waiting.length + waiting.length > RECEIPTS_WAITING_MAX;
    if (isFull || this.#waitingBytes + bytes > RECEIPTS_WAITING_BYTES_MAX) {
      const why = "too many pages of other sites wait to be written";
      throw new TenureError("OVERLOADED", `${why}. Nothing was done; send them again in a moment.`);
    }
    this.#waiting.push(...waiting);
    this.#waitingBytes += bytes;
    this.#goOn();
    return Promise.all(waiting.map(({ settle }) => settle.promise));
  }

  #goOn(): void {
    while (!this.#isUnderWay && !this.#isOver && this.#waiting.length > 0) {
      const batch = this.#gather();
      if (batch.length > 0) this.#append(batch);
    }
  }

  /** What goes into the next record; what does not is answered. */
  #gather(): Decided[] {
    const batch: Decided[] = [];
    const lines = new Map<string, LinePoint>();
    let [bytes, newLines] = [0, 0];
    while (batch.length < RECORD_PAGES_MAX) {
      const next = this.#waiting[0];
      if (next === undefined) return batch;
      const size = recordedBytes(next.recorded);
      if (batch.length > 0 && bytes + size > RECORD_GATHERED_BYTES_MAX) return batch;
      this.#waiting.shift();
      this.#waitingBytes -= size;
      const { line } = next.page;
      const { state } = this.#options.fold;
      const known = lines.get(line) ?? state.line(line);
      const isNew = known === undefined;
      const outcome: PageReceived =
        isNew && state.lineCount + newLines >= LINES_MAX ? { kind: "full" } : decide(next, known);
      // What rests on this record is answered with it.
      if (outcome.kind === "accepted" || lines.has(line)) batch.push({ ...next, outcome });
      else next.settle.resolve(outcome);
      if (outcome.kind !== "accepted") continue;
      if (isNew) newLines++;
      lines.set(line, next.state);
      bytes += size;
    }
    return batch;
  }

  #append(batch: readonly Decided[]): void {
    this.#isUnderWay = true;
    const { log, fold, wallMs, maxSkewMs } = this.#options;
    const arrivedMs = Math.max(0, Math.floor(wallMs()));
    const floorMs = floorOf(batch, arrivedMs + maxSkewMs);
    const pages = batch.filter(({ outcome }) => outcome.kind === "accepted").map(({ recorded }) => recorded);
    const record = encodeRecord({ arrivedMs, floorMs: floorMs > fold.state.floorMs ? floorMs : 0, pages });
    const ignored = fold.counts.ignored;
    log.append(this.epoch, this.#position, [record]).then(
      (answer) => {
        assert(answer.outcome !== "committed" || fold.counts.ignored === ignored, "what is accepted is taken");
        this.#answered(batch, answer);
      },
      (error: unknown) => this.#refused(batch, error),
    );
  }

  #answered(batch: readonly Decided[], answer: LogAppended): void {
    this.#isUnderWay = false;
    switch (answer.outcome) {
      case "committed":
        this.#position = answer.position;
        for (const { settle, outcome } of batch) settle.resolve(outcome);
        return this.#goOn();
      case "fenced":
        return this.#over(batch, stoppedLeading());
      case "unknown":
        return this.#over(
          batch,
          new TenureError(
            "OUTCOME_UNKNOWN",
            "This node stopped leading before it knew whether the pages were written. Send them to the new leader: it skips what it has.",
          ),
        );
      default:
        return assertNever(answer, "append");
    }
  }

  /** Nothing of it was written, and the epoch may go on. */
  #refused(batch: readonly Decided[], error: unknown): void {
    this.#isUnderWay = false;
    // The log knows better than this node who leads: to go on here would be to be refused for ever.
    if (TenureError.is(error) && error.code === "NOT_LEADER") return this.#over(batch, error);
    for (const { settle } of batch) settle.reject(error);
    this.#goOn();
  }

  #over(batch: readonly Decided[], why: TenureError): void {
    for (const { settle } of batch) settle.reject(why);
    this.end();
    this.#options.onOver();
  }
}

function waitingOf({ page, from, state, timestamps }: VerifiedPage): Waiting {
  const recorded = recordedPage(encodePage(page), from, state);
  assert(recordedBytes(recorded) <= RECORD_BYTES_MAX, "a page fits into a record", () => page.line);
  assert(
    state.line === page.line && state.size === page.after + page.items.length && from.size < state.size,
    "a verified page leads from one state of its line to another",
  );
  const settle = Promise.withResolvers<PageReceived>();
  // Of several that one caller waits for, it hears the first failure.
  settle.promise.catch(() => undefined);
  return { page, recorded, isFirst: from.checkpoint === null, state, timestamps, settle };
}

/** `known`: of its line; undefined: nothing. Then only a first page is taken: what rests on one that was not written would begin the line in its middle, for ever. */
function decide({ page, recorded: { from }, isFirst, state }: Waiting, known: LinePoint | undefined): PageReceived {
  if (known !== undefined && state.size <= known.size) return { kind: "duplicate", duplicates: page.items.length };
  const isOn = known === undefined ? isFirst : from.size === known.size && from.hash === known.hash;
  if (!isOn) return { kind: "again", have: known?.size ?? 0 };
  return { kind: "accepted", accepted: state.size - from.size, duplicates: from.size - page.after };
}

/** The latest time of an event that is not too far ahead, in whole milliseconds; 0: there is none. */
function floorOf(batch: readonly Decided[], untilMs: number): number {
  let floorMs = 0;
  for (const { timestamps, outcome } of batch) {
    if (outcome.kind !== "accepted") continue;
    for (const timestamp of timestamps) if (timestamp <= untilMs) floorMs = Math.max(floorMs, timestamp);
  }
  return Math.ceil(floorMs);
}

function stoppedLeading(): TenureError {
  return new TenureError("NOT_LEADER", "This node stopped leading before the pages were written. Ask the new leader.");
}
