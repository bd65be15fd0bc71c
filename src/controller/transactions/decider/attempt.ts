// One attempt to bring a transaction to its end: ① ② ③ of core/txn/course.ts, with their times. It may be the second one for this transaction, here or at
// another coordinator, and another may run at this moment: each call may be repeated, and home has one record.
//
// Invariants: the term is asked before each call, and none is made behind a closed gate or in another term; nothing is sent to the others of a decision
// before home has answered with it.

import type { TenureError } from "../../../core/kit/errors.ts";
import {
  type AfterCommit,
  afterCommit,
  type AfterHome,
  afterHome,
  type AfterPrepare,
  afterPrepare,
  type Heard,
  isCommitted,
} from "../../../core/txn/course.ts";
import type { BackendHash, TcFence, TxnAnswer, TxnReason, TxnRequest, TxnResult } from "../../../core/txn/model.ts";
import { sleep, within } from "../../../loops/time.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { CoordinatorTerm, IslandCalls, TxnOutcome } from "../../../ports/transactions.ts";
import { TXN_APPLY_MS, TXN_CALL_AGAIN_MS, TXN_CALL_MS, TXN_HOME_PART, TXN_PREPARE_PART } from "./limits.ts";
import type { TxnPlan } from "./plan.ts";
import { isSameFence } from "./same-fence.ts";
import { notBegun, rolledBack, unknown } from "./refusals.ts";
import type { Undeciding } from "./undeciding.ts";

export interface AttemptContext {
  readonly term: Pick<CoordinatorTerm, "fence">;
  readonly calls: Pick<IslandCalls, "call">;
  readonly clock: Clock;
  /** Each attempt corrects it. */
  readonly undeciding: Undeciding;
  /** A former attempt under this id has begun something, as far as this node knows. */
  readonly isRepeated: boolean;
}

export class Attempt {
  readonly #context: AttemptContext;
  readonly #plan: TxnPlan;
  readonly #fence: TcFence;
  readonly #startedMs: number;
  /** Of ①: what has been heard, and until it has. */
  readonly #heard = new Map<BackendHash, Heard>();
  readonly #preparing = new Map<BackendHash, Promise<Heard>>();
  /** Nothing more is prepared. */
  #isRollback = false;
  #hasBegun = false;

  constructor(context: AttemptContext, plan: TxnPlan, fence: TcFence) {
    this.#context = context;
    this.#plan = plan;
    this.#fence = fence;
    this.#startedMs = context.clock.monotonicMs();
  }

  /** Something was sent that may change an island. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** No island is asked to prepare any more: nothing holds the operations. Never rejects. */
  get prepared(): Promise<unknown> {
    return Promise.all(this.#preparing.values());
  }

  /** Rejects with OUTCOME_UNKNOWN, with home's definite refusal, or where home decides nothing now and this has begun nothing: with home's reason. */
  async commit(): Promise<TxnOutcome> {
    const refusal = await this.#refusalOfHome();
    if (refusal !== null) {
      if (!this.#context.isRepeated) throw notBegun(this.#plan.header, refusal);
      // Home may have committed it before, and says so; and a rollback may have room where nothing new has.
      return this.rollBack(refusal);
    }
    this.#hasBegun = true;
    const prepared = await this.#prepare();
    if (prepared.kind === "rollback") return this.rollBack(prepared.reason);
    if (prepared.kind !== "commit")
      throw this.#unknown(prepared.kind === "stop" ? prepared.why : "it was not prepared");
    const { home } = this.#plan.header;
    const heard = await this.#ask(home, this.#commitOf(home), this.#untilMs);
    const after = afterHome(home, "commit", heard);
    return after.kind === "rollback" ? this.rollBack(after.reason) : this.#end(after);
  }

  /** As `commit`: it may be that it is committed. */
  async rollBack(reason: TxnReason): Promise<TxnOutcome> {
    this.#isRollback = true;
    this.#hasBegun = true;
    const { header } = this.#plan;
    const request = { kind: "rollback", header, reason, fence: this.#fence } as const;
    const untilMs = Math.max(this.#untilMs, this.#nowMs + TXN_APPLY_MS);
    const after = afterHome(header.home, "rollback", await this.#ask(header.home, request, untilMs));
    return this.#end(after, reason);
  }

  get #nowMs(): number {
    return this.#context.clock.monotonicMs();
  }

  /** From then on islands ask home by themselves. */
  get #untilMs(): number {
    return this.#startedMs + this.#plan.header.timeoutMs;
  }

  /** Null: home decides, as far as is known. One that was silent may answer in a moment. */
  async #refusalOfHome(): Promise<TxnReason | null> {
    const { undeciding, clock } = this.#context;
    const { header, others } = this.#plan;
    if (others.length === 0) return null;
    let note = undeciding.of(header.home);
    if (note?.isSilent === true) {
      await within(clock, header.timeoutMs * TXN_HOME_PART, note.question, null);
      note = undeciding.of(header.home);
    }
    if (!this.#mayAct) throw this.#unknown(`${TERM_OVER}; ${NOT_BEGUN}`);
    if (note === null) return null;
    if (note.why.kind === "unknown") throw this.#unknown(`${note.why.why}; ${NOT_BEGUN}`);
    const { code, message } = note.why;
    return { code, message, backendHash: null };
  }

  async #prepare(): Promise<AfterPrepare> {
    const { header, others, operations } = this.#plan;
    const untilMs = this.#startedMs + header.timeoutMs * TXN_PREPARE_PART;
    const { promise, resolve } = Promise.withResolvers<AfterPrepare>();
    const judge = (): void => {
      const after = afterPrepare(others, this.#heard);
      if (after.kind !== "wait") resolve(after);
    };
    for (const island of others) {
      const request = {
        kind: "prepare",
        header,
        operations: operations.get(island) ?? null,
        fence: this.#fence,
      } as const;
      const heard = this.#ask(island, request, untilMs);
      this.#preparing.set(island, heard);
      void heard.then((said) => {
        this.#heard.set(island, said);
        judge();
      });
    }
    judge();
    const after = await promise;
    // A process that stood still meanwhile: the islands are about to ask home, and would find nothing.
    return after.kind === "commit" && this.#nowMs > untilMs ? { kind: "rollback", reason: TOO_LATE } : after;
  }

  #commitOf(island: BackendHash): TxnRequest {
    const { header, require, operations } = this.#plan;
    const isHome = island === header.home;
    const own = operations.get(island);
    return {
      kind: "commit",
      header,
      operations: isHome ? (own === undefined ? [] : own) : null,
      require: isHome ? require : [],
      fence: this.#fence,
    };
  }

  async #end(after: AfterHome, asked: TxnReason | null = null): Promise<TxnOutcome> {
    const { header } = this.#plan;
    switch (after.kind) {
      case "committed":
        return this.#outcome("committed", null, await this.#apply(after.results));
      case "rolled-back": {
        // Of one that home has forgotten it knows no reason any more.
        const reason = after.reason ?? asked;
        this.#hint(reason ?? TOO_LATE);
        const states = this.#plan.others.concat(header.home).map((island) => [island, ROLLED_BACK] as const);
        return this.#outcome("rolled-back", reason, new Map(states));
      }
      case "refused":
        this.#hint({ code: after.code, message: after.message, backendHash: null });
        throw rolledBack(header.id, after.code, after);
      default:
        throw this.#unknown(after.kind === "unknown" ? after.why : after.reason.message);
    }
  }

  /** ③ What does not answer in time asks home by itself. Its commit is on its way for longer than the client waits: locks end with it. */
  async #apply(atHome: readonly TxnResult[]): Promise<ReadonlyMap<BackendHash, AfterCommit>> {
    const { header, others } = this.#plan;
    const { clock } = this.#context;
    const untilMs = this.#nowMs + TXN_CALL_MS;
    const states = new Map<BackendHash, AfterCommit>([[header.home, { state: "applied", results: atHome }]]);
    await Promise.all(
      others.map(async (island) => {
        const before = this.#heard.get(island);
        const asked = isCommitted(before)
          ? Promise.resolve(before)
          : this.#ask(island, this.#commitOf(island), untilMs);
        const heard = await within(clock, TXN_APPLY_MS, asked, "silent" as const);
        states.set(island, afterCommit(heard));
      }),
    );
    return states;
  }

  /** So that locks are freed at once: each island that may have prepared asks home now. After its own answer, or it would ask too early. */
  #hint(reason: TxnReason): void {
    const { header } = this.#plan;
    for (const [island, preparing] of this.#preparing) {
      void preparing.then((heard) => {
        if (typeof heard === "object" && heard.kind === "refused") return;
        if (!this.#mayAct) return;
        const request = { kind: "rollback", header, reason, fence: this.#fence } as const;
        void this.#context.calls.call(island, request, TXN_CALL_MS);
      });
    }
  }

  /** Repeated within its time: all of them may be. */
  async #ask(island: BackendHash, request: TxnRequest, untilMs: number): Promise<Heard> {
    const { calls, clock } = this.#context;
    for (;;) {
      if (!this.#mayAct) return "lost";
      const leftMs = untilMs - this.#nowMs;
      if (leftMs <= 0) return this.#noted(island, null);
      const answer = await calls.call(island, request, Math.min(leftMs, TXN_CALL_MS));
      if (answer !== null) return this.#noted(island, answer);
      if (request.kind === "prepare" && this.#isRollback) return "silent";
      await sleep(clock, Math.min(TXN_CALL_AGAIN_MS, Math.max(0, untilMs - this.#nowMs)));
    }
  }

  #noted(island: BackendHash, answer: TxnAnswer | null): Heard {
    const heard = answer ?? "silent";
    this.#context.undeciding.note(island, this.#fence, heard, island === this.#plan.header.home);
    return heard;
  }

  get #mayAct(): boolean {
    return isSameFence(this.#context.term.fence(), this.#fence);
  }

  #outcome(
    state: TxnOutcome["state"],
    reason: TxnReason | null,
    states: ReadonlyMap<BackendHash, AfterCommit>,
  ): TxnOutcome {
    const { header, operations } = this.#plan;
    const participants = [...operations.keys()].map((island) => {
      return { backendHash: island, ...(states.get(island) ?? PENDING) };
    });
    return { id: header.id, state, term: this.#fence.term, home: header.home, reason, participants };
  }

  #unknown(why: string): TenureError {
    return unknown(this.#plan.header.id, why);
  }
}

const TERM_OVER = "this node leads the coordinators no longer";
const NOT_BEGUN = "this request has begun nothing, and a former one of the same id may have";
const PENDING: AfterCommit = { state: "pending", results: [] };
const ROLLED_BACK: AfterCommit = { state: "rolled-back", results: [] };
const TOO_LATE: TxnReason = {
  code: "txn_fanout_failed",
  message: "Its islands had prepared it too late.",
  backendHash: null,
};
