// One leadership over the state log: from the moment in which the log is open in this epoch to its end. Nothing of it outlives it.

import type { Random } from "../../core/kit/random.ts";
import { isOfScope, isOfTxn, type StateFold, type StateRecord } from "../../core/state/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Leadership } from "../../ports/leadership.ts";
import type { Log } from "../../ports/log.ts";
import type { Opened, Serving } from "../leadership/reign.ts";
import { ScopesReign } from "../scopes/scopes-reign.ts";
import { TxnReign, type TxnSurroundings } from "../transactions/txn-reign.ts";
import { ValuesReign } from "../values/values-reign.ts";
import { StateDesk } from "./state-desk.ts";

export interface StateReignOptions extends Opened {
  readonly log: Log;
  readonly applied: StateFold;
  readonly clock: Clock;
  readonly leadership: Pick<Leadership, "epoch" | "confirm">;
  /** The cluster is paused: no hold ends by the passing of time. */
  readonly isPaused: () => boolean;
  readonly random: Random;
  readonly around: TxnSurroundings;
}

export class StateReign implements Serving {
  readonly epoch: number;
  readonly scopes: ScopesReign;
  readonly values: ValuesReign;
  readonly transactions: TxnReign;
  readonly #desk: StateDesk;

  constructor(options: StateReignOptions) {
    this.epoch = options.epoch;
    this.#desk = new StateDesk({
      ...options,
      onOver: () => {
        this.end();
        options.onOver();
      },
      onRefused: (records) => this.scopes.refused(records),
    });
    this.#desk.appends.startBehind(options.position);
    const { applied, isPaused, around } = options;
    const random = options.random.fork(`transactions ${this.epoch}`);
    this.scopes = new ScopesReign({ desk: this.#desk, applied: applied.scopes, isPaused });
    this.values = new ValuesReign(this.#desk);
    const onFreed = (scopes: readonly string[]): void => this.scopes.freed(scopes);
    this.transactions = new TxnReign({ desk: this.#desk, applied, around, random, onFreed });
  }

  end(): void {
    if (this.#desk.isOver) return;
    this.#desk.end();
    this.scopes.end();
    this.transactions.end();
  }

  /** A record was applied here. */
  applied(record: StateRecord, position: number): void {
    for (const change of record) {
      this.#desk.head.applied(change, position);
      if (isOfScope(change)) this.scopes.applied(change);
      else if (isOfTxn(change)) this.transactions.applied(change);
    }
  }

  /** The applied state has jumped. */
  jumped(): void {
    this.#desk.head.recount();
    this.scopes.restartLeases();
    this.transactions.jumped();
  }
}
