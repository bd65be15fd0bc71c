// This island's part in transactions over islands: its leader decides, every node shows the applied state.
//
// Why a transaction is committed everywhere or nowhere, as far as this island is concerned. Home's record is the decision.
// 1. What is prepared here can be committed, for as long as it takes: its locks, its room and its jobs' specifications are in the log, and outlive
//    every leader of this island.
// 2. It ends by home's record alone: by the coordinator's `commit`, which follows that record, or by home's answer to `inquire`. `rollback` here is
//    only a hint to ask. (An operator may end it by force, where home is gone for good.)
// 3. Home decides once. Who asks about a transaction that home does not know makes home roll it back from then on; what home has forgotten is refused.
// 4. No answer is a deposed leader's: what was appended is answered when it is committed, and what rests on the head when a majority has confirmed,
//    after the request arrived, that this node leads.

import type { JobSpec } from "../../core/jobs/model.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { StateFold } from "../../core/state/index.ts";
import type { BackendHash, TxnAnswer, TxnContext, TxnPhase, TxnRequest } from "../../core/txn/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type {
  IslandCalls,
  JobsDelivery,
  TxnParticipant,
  TxnsPage,
  TxnStats,
  TxnView,
} from "../../ports/transactions.ts";
import type { Door } from "../leadership/reign.ts";
import type { TxnReign, TxnSurroundings } from "./txn-reign.ts";
import { isInDoubt, viewOf } from "./views.ts";

/** What transactions need to know of this island. */
export interface Island {
  readonly backendHash: BackendHash;
  readonly newJobId: () => string;
  /** Why nobody can do such a job; null: somebody can. */
  readonly problemOf: (spec: JobSpec) => string | null;
}

/** What may come later than the log: without it nothing is asked, reported or delivered, and nothing is lost. */
export interface TxnAttached {
  readonly calls?: IslandCalls | undefined;
  readonly jobs?: JobsDelivery | undefined;
  /** No coordinator is configured on this node: `calls` never comes, and nobody can be asked. */
  readonly isAlone?: boolean | undefined;
  /** The term of the coordinators' leader, as this node's coordinator has heard of it. */
  readonly observed?: (() => TxnContext["observed"]) | undefined;
}

export interface TransactionsServiceOptions {
  readonly door: () => Door<{ readonly transactions: TxnReign }>;
  readonly island: Island;
  /** What is applied on this node. */
  readonly applied: StateFold;
  readonly clock: Clock;
  /** Why nothing new is promised; null: it is. */
  readonly refusesNew?: (() => TenureError | null) | undefined;
  /** Nodes that are not known to be of a release that reads records of transactions: such a record would stop them. */
  readonly unready: () => readonly string[];
}

export class TransactionsService implements TxnParticipant {
  /** For the reign. */
  readonly around: TxnSurroundings;
  readonly #options: TransactionsServiceOptions;
  readonly #decided: Record<"committed" | "rolled-back", number> = { committed: 0, "rolled-back": 0 };
  #staleTerms = 0;
  #attached: TxnAttached = {};

  constructor(options: TransactionsServiceOptions) {
    this.#options = options;
    const { island, refusesNew } = options;
    this.around = {
      self: island.backendHash,
      newJobId: island.newJobId,
      problemOf: island.problemOf,
      calls: () => this.#attached.calls ?? null,
      isAlone: () => this.#attached.isAlone === true,
      jobs: () => this.#attached.jobs ?? null,
      observed: () => this.#attached.observed?.() ?? null,
      refusesNew: () => refusesNew?.() ?? null,
      checkReadable: () => this.#checkReadable(),
      onDecided: (outcome) => void this.#decided[outcome]++,
    };
  }

  get backendHash(): BackendHash {
    return this.#options.island.backendHash;
  }

  /** Each when it is there. */
  attach(attached: TxnAttached): void {
    this.#attached = { ...this.#attached, ...attached };
    this.#options.door().current?.transactions.attached();
  }

  // ---- what the leader decides ---------------------------------------------------------------------

  async answer(request: TxnRequest): Promise<TxnAnswer> {
    const answer = await (await this.#reign()).answer(request);
    if (answer.kind === "refused" && answer.code === "tc_term_stale") this.#staleTerms++;
    return answer;
  }

  async replay(id: string, force: "committed" | "rolled-back" | null): Promise<TxnPhase | null> {
    return (await this.#reign()).replay(id, force);
  }

  async #reign(): Promise<TxnReign> {
    const { door } = this.#options;
    return (door().now() ?? (await door().next())).transactions;
  }

  /** In the turn in which it is appended. Throws where a member could not read it. */
  #checkReadable(): void {
    const { applied, unready } = this.#options;
    // Who has one has read one: a node that could not would have stopped.
    const missing = applied.txns.isEmpty ? unready() : [];
    if (missing.length > 0) throw notReady(missing);
  }

  // ---- what every node shows -----------------------------------------------------------------------

  get(id: string): TxnView | null {
    const state = this.#options.applied.txns.get(id);
    return state === undefined ? null : viewOf(state, this.backendHash);
  }

  list({
    inDoubt,
    after,
    limit,
  }: {
    readonly inDoubt: boolean;
    readonly after: string | null;
    readonly limit: number;
  }): TxnsPage {
    const { txns } = this.#options.applied;
    const transactions: TxnView[] = [];
    for (const state of inDoubt ? txns.live(after) : txns.from(after)) {
      if (inDoubt && !isInDoubt(state)) continue;
      if (transactions.length >= limit) return { transactions, next: transactions.at(-1)!.header.id };
      transactions.push(viewOf(state, this.backendHash));
    }
    return { transactions, next: null };
  }

  stats(): TxnStats {
    const { applied, clock, door } = this.#options;
    const { txns } = applied;
    const reign = door().current?.transactions ?? null;
    const wallMs = clock.wallMs();
    let inDoubt = 0;
    let oldestInDoubtMs = 0;
    for (const state of txns.live(null)) {
      if (!isInDoubt(state)) continue;
      const openMs = reign?.openForMs(state.header.id) ?? wallMs - state.atMs;
      const doubtMs = openMs - state.header.timeoutMs;
      if (doubtMs <= 0) continue;
      inDoubt++;
      oldestInDoubtMs = Math.max(oldestInDoubtMs, doubtMs);
    }
    return {
      prepared: txns.prepared,
      inDoubt,
      oldestInDoubtMs,
      kept: txns.size,
      undelivered: txns.undeliveredJobs,
      decided: { ...this.#decided },
      staleTerms: this.#staleTerms,
    };
  }
}

function notReady(missing: readonly string[]): TenureError {
  const text = `Transactions are kept only where every node can read them, and ${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} of another release, or not connected since this leader started. Upgrade and start them all (one that never comes back is taken out with \`tenure member remove\`), and repeat this. Nothing was written.`;
  return new TenureError("NOT_SUPPORTED", text);
}
