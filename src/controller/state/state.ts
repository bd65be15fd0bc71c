// The state log's service on one node: scopes, values and transactions in one log, decided by whoever leads, shown by every node.
//
//   requests ─▶ scopes, values, transactions ─▶ the reign (one leadership) ─▶ append ─▶ committed ─▶ applied ─▶ answers, watchers

import type { TenureError } from "../../core/kit/errors.ts";
import type { Random } from "../../core/kit/random.ts";
import { decodeRecord, type StateFold } from "../../core/state/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Leadership } from "../../ports/leadership.ts";
import type { Log, LogRecord } from "../../ports/log.ts";
import { type Opened, Reign } from "../leadership/reign.ts";
import { ScopesService } from "../scopes/scopes.ts";
import { type Island, TransactionsService } from "../transactions/transactions.ts";
import { ValuesService } from "../values/values.ts";
import { StateReign } from "./state-reign.ts";

export interface StateServiceOptions {
  readonly log: Log;
  /** What the log is folded into on this node. */
  readonly applied: StateFold;
  readonly leadership: Leadership;
  readonly clock: Clock;
  readonly random: Random;
  /** The cluster was restored paused: no hold ends by the passing of time. */
  readonly isPaused?: (() => boolean) | undefined;
  readonly island: Island;
  /**
   * Why nothing new is taken: no holds are granted, no values written, no transaction is prepared; null: they are. Renewals write nothing, and resigning
   * frees: they go on, as do transactions that are prepared.
   */
  readonly refusesNew?: (() => TenureError | null) | undefined;
  /** Nodes that are not known to be of a release that reads records of values: such a record would stop them. */
  readonly unready?: (() => readonly string[]) | undefined;
  /** The same of records of transactions. */
  readonly unreadyForTransactions?: (() => readonly string[]) | undefined;
}

export class StateService {
  readonly scopes: ScopesService;
  readonly values: ValuesService;
  readonly transactions: TransactionsService;
  readonly #log: Log;
  readonly #applied: StateFold;
  readonly #reign: Reign<StateReign>;
  #stopRecords: () => void = () => undefined;

  constructor(options: StateServiceOptions) {
    this.#log = options.log;
    this.#applied = options.applied;
    const { applied, refusesNew, clock, island } = options;
    const unready = options.unready ?? nobody;
    const isPaused = options.isPaused ?? ((): boolean => false);
    const begin = (opened: Opened): StateReign =>
      new StateReign({ ...options, isPaused, around: this.transactions.around, ...opened });
    // Before the reign can begin: what is applied from now on is followed.
    const door = (): Reign<StateReign> => this.#reign;
    this.scopes = new ScopesService({ door, applied: applied.scopes, refusesNew });
    const position = (): number => this.#log.head().position;
    this.values = new ValuesService({ door, applied, position, clock, refusesNew, unready });
    const unreadyForTransactions = options.unreadyForTransactions ?? nobody;
    this.transactions = new TransactionsService({
      door,
      island,
      applied,
      clock,
      refusesNew,
      unready: unreadyForTransactions,
    });
    this.#follow();
    this.#reign = new Reign({ ...options, begin });
  }

  /** Whoever waits is refused: this node does not lead. Safe to call twice. */
  close(): void {
    this.#stopRecords();
    this.#reign.close();
    this.scopes.close();
    this.values.close();
  }

  /** The cluster is paused no longer: every lease starts at its full duration, as under a new leader. */
  resumed(): void {
    this.#reign.current?.scopes.restartLeases();
  }

  #follow(): void {
    this.#stopRecords();
    this.#stopRecords = this.#log.subscribe(
      this.#log.head().position + 1,
      (record) => this.#follows(record),
      () => {
        // A snapshot was restored: the state has jumped.
        this.#follow();
        this.scopes.allChanged();
        this.values.jumped();
        this.#reign?.current?.jumped();
      },
    );
  }

  #follows({ data, position }: LogRecord): void {
    const record = decodeRecord(data);
    if (record.kind !== "changes") return;
    this.#reign?.current?.applied(record.changes, position);
    // Who watches has what is there: one that did not fit changed nothing.
    if (!this.#applied.hasTaken(position)) return;
    this.scopes.applied(record.changes);
    this.values.applied(record.changes, position);
  }
}

function nobody(): readonly string[] {
  return [];
}
