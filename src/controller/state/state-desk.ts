// What the parts of one leadership over the state log share: the one append pipeline, and the proof that this node still leads.
//
// What may be answered, and when:
// - What was appended: when that is committed in this epoch.
// - What rests on the head without an append: when the head is committed.
// - What says that something is so, or is not (a refusal for an epoch, for a version): also only after a majority has confirmed, after the
//   request arrived, that this node leads. A deposed leader knows nothing of what was written since.

import { TenureError } from "../../core/kit/errors.ts";
import type { StateHead, StateKey, StateRecord } from "../../core/state/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Leadership } from "../../ports/leadership.ts";
import { CONFIRMATIONS_PENDING_MAX } from "../leadership/limits.ts";
import { Appends, type AppendsOptions, type Batch } from "./appends.ts";
import { STATE_APPENDS_MAX } from "./limits.ts";

export interface StateDeskOptions extends AppendsOptions {
  readonly clock: Clock;
  readonly leadership: Pick<Leadership, "epoch" | "confirm">;
}

export class StateDesk {
  readonly epoch: number;
  readonly clock: Clock;
  readonly appends: Appends;
  readonly #leadership: StateDeskOptions["leadership"];
  #confirming = 0;
  #isOver = false;

  constructor(options: StateDeskOptions) {
    this.epoch = options.epoch;
    this.clock = options.clock;
    this.#leadership = options.leadership;
    this.appends = new Appends(options);
  }

  get head(): StateHead<Batch> {
    return this.appends.head;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  end(): void {
    this.#isOver = true;
  }

  /** As far as this node knows at this moment. */
  get leads(): boolean {
    return this.#leadership.epoch() === this.epoch;
  }

  /** Throws OVERLOADED where too much waits to be committed. */
  admit(): void {
    if (this.appends.isFull) throw overloaded(`${STATE_APPENDS_MAX} appends wait to be committed`);
  }

  /** One record, decided in this turn: resolves when it is committed. */
  append(record: StateRecord): Promise<void> {
    const batch = this.appends.begin();
    this.appends.add(batch, record);
    this.appends.send(batch);
    return batch.done;
  }

  async settled(...keys: readonly StateKey[]): Promise<void> {
    for (const key of keys) await this.appends.settled(key);
  }

  async allSettled(): Promise<void> {
    await this.appends.allSettled();
  }

  /** Resolves when a majority has taken this node for its leader after this call. */
  async confirmed(): Promise<void> {
    if (this.#confirming >= CONFIRMATIONS_PENDING_MAX)
      throw overloaded(`${CONFIRMATIONS_PENDING_MAX} requests wait for a majority`);
    this.#confirming++;
    const confirmed = await this.#leadership.confirm();
    this.#confirming--;
    if (this.#isOver || !this.leads) throw this.notLeader();
    if (confirmed) return;
    throw new TenureError("ERR_NO_LEADER", "No majority confirmed in time that this node leads. Retry in a moment.");
  }

  notLeader(): TenureError {
    return new TenureError("NOT_LEADER", `This node stopped leading (term ${this.epoch}). Ask the new leader.`);
  }

  /** For people. Leases never look at it (trap 56b). */
  wallMs(): number {
    return Math.max(0, Math.floor(this.clock.wallMs()));
  }
}

export function overloaded(why: string, advice = "retry in a moment"): TenureError {
  return new TenureError("OVERLOADED", `${why}. Nothing was done; ${advice}.`);
}
