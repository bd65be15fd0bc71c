// The coordinator of transactions on one node: runs them while this node leads the coordinators, and forwards them, once, while another one does.
//
//   run, decide ──▶ runs here already? ──▶ joined
//        │          leads? ──▶ all islands registered? ──▶ an attempt (attempt.ts)
//        └─ another one leads ──▶ forwarded                 nobody ──▶ refused: nothing was done

import type { Random } from "../../../core/kit/random.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import { errorOfRollback } from "../../../core/txn/course.ts";
import type { BackendHash, TcFence, TxnAnswer, TxnReason, TxnRequest } from "../../../core/txn/model.ts";
import { operationsBytes } from "../../../core/txn/wire-operations.ts";
import { pause } from "../../../loops/time.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Logger } from "../../../ports/logger.ts";
import type {
  CoordinatorTerm,
  DeciderStats,
  IslandCalls,
  TxnBody,
  TxnCaller,
  TxnDecide,
  TxnDecider,
  TxnForward,
  TxnOutcome,
  TxnParticipant,
} from "../../../ports/transactions.ts";
import { Attempt } from "./attempt.ts";
import {
  TXN_APPLY_MS,
  TXN_BEGUN_MAX,
  TXN_FORWARD_EXTRA_MS,
  TXN_RECOVER_RETRY_MS_MIN,
  TXN_STAGE_WITHIN_MS,
} from "./limits.ts";
import { type DigestOf, planOf, stagedPlanOf, type TxnPlan } from "./plan.ts";
import { Recovery } from "./recovery.ts";
import { Room } from "./room.ts";
import { Undeciding } from "./undeciding.ts";
import {
  isBeingDecided,
  nobodyLeads,
  NotTheCoordinator,
  notStaged,
  otherBody,
  rolledBack,
  unregistered,
} from "./refusals.ts";

export interface DeciderOptions {
  readonly term: CoordinatorTerm;
  readonly calls: IslandCalls;
  readonly forward: TxnForward;
  /** This node's own island. */
  readonly own: Pick<TxnParticipant, "backendHash" | "get">;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Pick<Logger, "warn">;
  readonly digestOf: DigestOf;
}

type Asked = "commit" | "rollback";
type Decided = Awaited<ReturnType<TxnDecider["decide"]>>;

interface Running {
  readonly plan: TxnPlan;
  readonly asked: Asked;
  readonly outcome: Promise<TxnOutcome>;
}

export class Decider implements TxnDecider {
  readonly #options: DeciderOptions;
  /** Here, by id. What is forwarded is not among them: two nodes that take each other for the leader would wait for each other. */
  readonly #running = new Map<string, Running>();
  readonly #undeciding: Undeciding;
  /** Ids of which an attempt here has begun something, the latest. */
  readonly #begun = new Set<string>();
  readonly #outcomes = { committed: 0, "rolled-back": 0, unknown: 0, refused: 0 };
  readonly #roomToRun = new Room();
  readonly #roomToForward = new Room();
  #forwarded = 0;

  constructor(options: DeciderOptions) {
    this.#options = options;
    this.#undeciding = new Undeciding(options);
  }

  /** The work of one term, until it is over. */
  async lead(signal: AbortSignal): Promise<void> {
    const { term, calls, clock, random, logger } = this.#options;
    const isRunning = (id: string): boolean => this.#running.has(id);
    while (!signal.aborted) {
      const fence = term.fence();
      if (fence !== null) return new Recovery({ term, calls, clock, random, logger, isRunning }, fence, signal).run();
      await pause(clock, TXN_RECOVER_RETRY_MS_MIN, signal);
    }
  }

  async run(body: TxnBody, caller: TxnCaller): Promise<TxnOutcome> {
    const { digestOf, forward } = this.#options;
    const plan = planOf(body, caller.by, digestOf);
    const there = (endpoint: string, withinMs: number) => forward.run(endpoint, body, caller.by, withinMs);
    const leading = this.#leading(caller);
    if ("endpoint" in leading) return this.#forward(plan, leading.endpoint, there);
    const { fence } = leading;
    const outcome = await this.#here(plan, fence, "commit", (attempt) => attempt.commit());
    const code = errorOfRollback(outcome.reason);
    if (code !== null) throw rolledBack(outcome.id, code, outcome.reason);
    return outcome;
  }

  async decide(request: TxnDecide, caller: TxnCaller): Promise<Decided> {
    const { digestOf, forward, clock } = this.#options;
    const { id, state, expiresAtMs } = request;
    const wallMs = clock.wallMs();
    const plan = stagedPlanOf(request, caller.by, digestOf);
    const there = (endpoint: string, withinMs: number) => forward.decide(endpoint, request, caller.by, withinMs);
    const leading = this.#leading(caller);
    if ("endpoint" in leading) return this.#forward(plan, leading.endpoint, there);
    const { fence } = leading;
    if (state === "pending") return { id, state: this.#look(id, request.home) };
    const isLate = expiresAtMs !== null && expiresAtMs <= wallMs;
    const outcome =
      state === "commit" && !isLate
        ? await this.#here(plan, fence, "commit", (attempt) => attempt.commit())
        : await this.#here(plan, fence, "rollback", (attempt) => attempt.rollBack(isLate ? TOO_OLD : ASKED_FOR));
    return { id, state: outcome.state === "committed" ? "commit" : "rollback" };
  }

  async stage(target: BackendHash, request: Extract<TxnRequest, { kind: "stage" }>): Promise<TxnAnswer> {
    this.#mustBeRegistered([target, request.home]);
    const giveBack = this.#roomToForward.take(operationsBytes(request.operations));
    const answer = await this.#options.calls.call(target, request, TXN_STAGE_WITHIN_MS).finally(giveBack);
    if (answer === null) throw notStaged(target, request.id);
    return answer;
  }

  stats(): DeciderStats {
    return { outcomes: { ...this.#outcomes }, running: this.#running.size, forwarded: this.#forwarded };
  }

  /** In which term this node may act, or who leads. */
  #leading({ isForwarded }: TxnCaller): { readonly fence: TcFence } | { readonly endpoint: string } {
    const { term } = this.#options;
    const fence = term.fence();
    if (fence !== null) return { fence };
    if (!term.isLed()) throw nobodyLeads();
    const endpoint = term.leaderEndpoint();
    if (isForwarded || endpoint === null) throw new NotTheCoordinator(endpoint, NOT_HERE);
    return { endpoint };
  }

  async #forward<T>(
    { header, bytes }: TxnPlan,
    endpoint: string,
    send: (endpoint: string, withinMs: number) => Promise<T | null>,
  ): Promise<T> {
    const giveBack = this.#roomToForward.take(bytes);
    this.#forwarded++;
    try {
      const answer = await send(endpoint, header.timeoutMs + TXN_APPLY_MS + TXN_FORWARD_EXTRA_MS);
      if (answer === null) throw new NotTheCoordinator(endpoint, UNREACHABLE);
      return answer;
    } finally {
      giveBack();
    }
  }

  /** At most one attempt for one id: whoever asks for the same joins it. */
  #here(
    plan: TxnPlan,
    fence: TcFence,
    asked: Asked,
    begin: (attempt: Attempt) => Promise<TxnOutcome>,
  ): Promise<TxnOutcome> {
    const { id, digest, home } = plan.header;
    const running = this.#running.get(id);
    if (running !== undefined) {
      if (running.plan.header.digest !== digest || running.plan.header.home !== home) throw otherBody(id);
      if (running.asked !== asked) throw isBeingDecided(id);
      return running.outcome;
    }
    this.#mustBeRegistered([home, ...plan.others]);
    const giveBack = this.#roomToRun.take(plan.bytes);
    const { term, calls, clock } = this.#options;
    const context = { term, calls, clock, undeciding: this.#undeciding, isRepeated: this.#begun.has(id) };
    const attempt = new Attempt(context, plan, fence);
    const outcome = this.#counted(begin(attempt)).finally(() => {
      void attempt.prepared.then(giveBack);
      this.#running.delete(id);
      if (attempt.hasBegun) this.#remember(id);
    });
    this.#running.set(id, { plan, asked, outcome });
    return outcome;
  }

  async #counted(attempt: Promise<TxnOutcome>): Promise<TxnOutcome> {
    try {
      const outcome = await attempt;
      this.#outcomes[outcome.state]++;
      return outcome;
    } catch (error) {
      const isDefinite = TenureError.is(error) && error.code !== "OUTCOME_UNKNOWN";
      this.#outcomes[isDefinite ? "refused" : "unknown"]++;
      throw error;
    }
  }

  #remember(id: string): void {
    this.#begun.delete(id);
    this.#begun.add(id);
    const [oldest] = this.#begun;
    if (this.#begun.size > TXN_BEGUN_MAX && oldest !== undefined) this.#begun.delete(oldest);
  }

  #mustBeRegistered(islands: readonly BackendHash[]): void {
    const registered = this.#options.calls.islands();
    const missing = islands.filter((island) => !registered.includes(island));
    if (missing.length > 0) throw unregistered([...new Set(missing)]);
  }

  /** Only what is known here: whoever asked home would have it decided. */
  #look(id: string, home: BackendHash): Decided["state"] {
    const { own } = this.#options;
    if (this.#running.has(id) || home !== own.backendHash) return "pending";
    const phase = own.get(id)?.phase;
    if (phase === "committed") return "commit";
    return phase === "rolled-back" ? "rollback" : "pending";
  }
}

const NOT_HERE = "This node does not lead the transaction coordinators, and does not forward this call.";
const UNREACHABLE = "The leader of the transaction coordinators can't be reached from this node. Nothing was done.";
const TOO_OLD: TxnReason = {
  code: "txn_expired",
  message: "Its time was over before the decision.",
  backendHash: null,
};
const ASKED_FOR: TxnReason = { code: "BAD_REQUEST", message: "Its client asked for the rollback.", backendHash: null };
