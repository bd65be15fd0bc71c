// What one leader appends to the state log, of scopes and of values, and the head that its decisions look at (design D11). One for both: two
// writers of one log would not know each other's end.
// Not journal/writer.ts: there a decision is a range of the sealed tail, gathered with others of its turn and undone by the journal; here
// a batch is records, sent as it is, and the head is built again from the batches that are left. What they share is four outcomes.
//
//   begin ─▶ add record… ─▶ send ─▶ committed | unknown | fenced | refused
//
// Invariants:
// - From `begin` to `send` is one synchronous turn, so no two decisions rest on the same head.
// - A batch is settled once: `done` resolves when it is committed, and rejects with what is known of it. A definite failure
//   is only said where nothing was written (trap 66).
// - What the log refuses without writing it (too much waits, the disk is full, a transfer) takes everything after it along:
//   it was decided on a head that never came to be. The head goes back to before it, and the leader goes on.

import { assert, assertNever } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { encodeRecord, type StateFold, StateHead, type StateKey, type StateRecord } from "../../core/state/index.ts";
import type { Log, LogAppended } from "../../ports/log.ts";
import { STATE_APPENDS_MAX } from "./limits.ts";

export interface Batch {
  readonly after: number;
  readonly records: StateRecord[];
  readonly done: Promise<void>;
  readonly settle: PromiseWithResolvers<void>;
}

export interface AppendsOptions {
  readonly log: Log;
  readonly epoch: number;
  readonly applied: StateFold;
  /** The log says that this epoch is over. */
  readonly onOver: () => void;
  /** These records were given up; nothing of them was written. */
  readonly onRefused: (records: readonly StateRecord[]) => void;
}

export class Appends {
  readonly head: StateHead<Batch>;
  readonly #options: AppendsOptions;
  #end = 0;
  #underWay: Batch[] = [];

  constructor(options: AppendsOptions) {
    this.#options = options;
    this.head = new StateHead(options.applied);
  }

  get isFull(): boolean {
    return this.#underWay.length >= STATE_APPENDS_MAX;
  }

  /** The log is open, and its last record is here. */
  startBehind(position: number): void {
    this.#end = position;
  }

  begin(): Batch {
    const settle = Promise.withResolvers<void>();
    // Many batches have nobody who waits for them: an expiry, a resignation in the name of someone who is gone.
    settle.promise.catch(() => undefined);
    return { after: this.#end, records: [], done: settle.promise, settle };
  }

  /** The place that the next record of this batch will have. */
  positionIn(batch: Batch): number {
    return batch.after + batch.records.length + 1;
  }

  add(batch: Batch, record: StateRecord): void {
    assert(batch.after === this.#end, "one batch at a time is being made");
    this.#push(record, this.positionIn(batch), batch);
    batch.records.push(record);
  }

  send(batch: Batch): void {
    if (batch.records.length === 0) return batch.settle.resolve();
    const { log, epoch } = this.#options;
    this.#end += batch.records.length;
    this.#underWay.push(batch);
    log.append(epoch, batch.after, batch.records.map(encodeRecord)).then(
      (answer) => this.#answered(batch, answer),
      (error: unknown) => this.#refused(batch, error),
    );
  }

  /** Resolves when what is known of it here is committed. */
  settled(key: StateKey): Promise<void> {
    return this.head.underWay(key)?.done ?? Promise.resolve();
  }

  /** Resolves when all that is known here is committed. */
  allSettled(): Promise<void> {
    return this.#underWay.at(-1)?.done ?? Promise.resolve();
  }

  #push(record: StateRecord, position: number, batch: Batch): void {
    for (const change of record) this.head.push(change, position, batch);
  }

  #answered(batch: Batch, answer: LogAppended): void {
    const at = this.#underWay.indexOf(batch);
    if (at >= 0) this.#underWay.splice(at, 1);
    switch (answer.outcome) {
      case "committed":
        assert(answer.position === batch.after + batch.records.length, "a batch is where it was decided to be");
        return batch.settle.resolve();
      case "fenced":
        batch.settle.reject(
          new TenureError("NOT_LEADER", "This node stopped leading before it was written. Ask the new leader."),
        );
        return this.#options.onOver();
      case "unknown":
        batch.settle.reject(
          new TenureError(
            "OUTCOME_UNKNOWN",
            "This node stopped leading before it knew whether it was written. Ask the new leader.",
          ),
        );
        return this.#options.onOver();
      default:
        return assertNever(answer, "append");
    }
  }

  #refused(batch: Batch, error: unknown): void {
    const at = this.#underWay.indexOf(batch);
    // It went with one before it.
    if (at < 0) return;
    const dropped = this.#underWay.splice(at);
    this.#end = batch.after;
    this.head.clear();
    for (const one of this.#underWay) {
      for (const [offset, record] of one.records.entries()) this.#push(record, one.after + 1 + offset, one);
    }
    for (const one of dropped) one.settle.reject(error);
    this.#options.onRefused(dropped.flatMap(({ records }) => records));
  }
}
