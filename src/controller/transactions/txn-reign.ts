// Transactions under one leadership of this island: decides on the head, appends, and answers when that is committed. What it does of its own accord is
// in resolver.ts.
//
// What may be answered, and when: state/state-desk.ts. Of transactions that matters twice: "rolled back", or "unknown here", from a node that was deposed
// would let another island do the opposite of what its successor has written.

import { TenureError } from "../../core/kit/errors.ts";
import type { Random } from "../../core/kit/random.ts";
import type { JobSpec } from "../../core/jobs/model.ts";
import type { StateFold, StateHead, StateRecord } from "../../core/state/index.ts";
import {
  type BackendHash,
  decideDelivered,
  decideDropped,
  decideForce,
  decideOutcome,
  decideRecover,
  decideSettledKnown,
  decideTxn,
  type TxnAnswer,
  type TxnChanges,
  type TxnContext,
  type TxnDecision,
  type TxnEvent,
  type TxnPhase,
  type TxnRequest,
} from "../../core/txn/index.ts";
import type { IslandCalls, JobsDelivery } from "../../ports/transactions.ts";
import type { Batch } from "../state/appends.ts";
import { DECIDE_AGAIN_MAX } from "../state/limits.ts";
import { overloaded, type StateDesk } from "../state/state-desk.ts";
import { TXN_HOME_GONE_MS, TXN_RECOVERED_PAGE } from "./limits.ts";
import type { Asked } from "./inquiries.ts";
import { type HomesWord, Resolver } from "./resolver.ts";
import { lockedScopes } from "./views.ts";

/** What one leadership needs of this node. */
export interface TxnSurroundings {
  readonly self: BackendHash;
  /** Null: this node's coordinator is not open, or there is none. */
  readonly calls: () => IslandCalls | null;
  /** There never will be one. */
  readonly isAlone: () => boolean;
  readonly jobs: () => JobsDelivery | null;
  /** The term of the coordinators' leader, as this node has heard of it. */
  readonly observed: () => TxnContext["observed"];
  readonly newJobId: () => string;
  readonly problemOf: (spec: JobSpec) => string | null;
  /** Why nothing new is taken; null: it is. What was promised before goes on. */
  readonly refusesNew: () => TenureError | null;
  /** Throws where a member could not read such a record. */
  readonly checkReadable: () => void;
  /** Decided, and committed. */
  readonly onDecided: (outcome: "committed" | "rolled-back") => void;
}

export interface TxnReignOptions {
  readonly desk: StateDesk;
  readonly applied: StateFold;
  readonly around: TxnSurroundings;
  readonly random: Random;
  /** These scopes may be granted again, as the head has them. */
  readonly onFreed: (scopes: readonly string[]) => void;
}

type Decide = (context: TxnContext) => TxnDecision;

export class TxnReign {
  readonly #options: TxnReignOptions;
  readonly #desk: StateDesk;
  #resolver: Resolver;

  constructor(options: TxnReignOptions) {
    this.#options = options;
    this.#desk = options.desk;
    this.#resolver = this.#newResolver();
  }

  end(): void {
    this.#resolver.end();
  }

  applied(event: TxnEvent): void {
    this.#resolver.applied(event);
  }

  /** The applied state has jumped. */
  jumped(): void {
    this.#resolver.end();
    this.#resolver = this.#newResolver();
  }

  /** Other islands, or the jobs' log, can be reached from now on. */
  attached(): void {
    this.#resolver.attached();
  }

  openForMs(id: string): number | null {
    return this.#resolver.openForMs(id);
  }

  // ---- requests ------------------------------------------------------------------------------------

  async answer(request: TxnRequest): Promise<TxnAnswer> {
    this.#desk.admit();
    if (request.kind === "recover") return this.#recover(request);
    const answer = await this.#decide((context) => decideTxn(this.#desk.head, request, context));
    // Only a hint: home's own answer counts.
    if (request.kind === "rollback") void this.#resolver.askNow(request.header.id);
    return answer;
  }

  async #recover({ fence, after }: Extract<TxnRequest, { kind: "recover" }>): Promise<TxnAnswer> {
    const raised: TxnAnswer = { kind: "recovered", open: [], next: null };
    const answer = await this.#decide((context) => {
      const decision = decideRecover(this.#desk.head, fence, context);
      if (decision.kind === "refused") return { kind: "answer", answer: decision };
      return decision.kind === "record" ? { ...decision, answer: raised } : { kind: "answer", answer: raised };
    });
    // What is committed after the fence was raised: what was prepared before that is there, and no older term adds to it.
    const { applied, around } = this.#options;
    if (answer !== raised) return answer;
    const { code, message } = around.refusesNew() ?? {};
    const why = code === undefined || message === undefined ? {} : { refusesNew: { code, message } };
    return { kind: "recovered", ...applied.txns.openOf(around.self, after, TXN_RECOVERED_PAGE), ...why };
  }

  /** Null: it is unknown here. */
  async replay(id: string, force: HomesWord["phase"] | null): Promise<TxnPhase | null> {
    const desk = this.#desk;
    desk.admit();
    await desk.allSettled();
    const isGone = force === null ? true : this.#isHomeGone(id, force);
    // Home's own word comes first, where it can be heard.
    const said = await this.#resolver.askNow(id, true);
    if (force !== null) await this.#force(id, force, said, isGone);
    await desk.confirmed();
    await desk.allSettled();
    return this.#options.applied.txns.get(id)?.phase ?? null;
  }

  async #force(
    id: string,
    force: HomesWord["phase"],
    said: Asked | null,
    isGone: true | Promise<boolean | null>,
  ): Promise<void> {
    const isHomeGone = said === "silent" || said === null ? await isGone : null;
    // It is there, and may have decided, or decide in a moment, the other way.
    if (said === "refused" || isHomeGone === false) throw homeIsThere(id);
    await this.#own((context) => {
      const { head } = this.#desk;
      const isPrepared = head.txns.get(id)?.phase === "prepared";
      // Home's word is written: force has nothing to add, and would only end this island's report to home.
      if (said === "done" && !isPrepared) return [];
      const isAsked = said === "silent" || !isPrepared;
      if (!(isAsked && isHomeGone === true) && this.#homeOf(id, force) !== null) throw homeNotAsked(id);
      return decideForce(head, id, force, context);
    });
  }

  /** No node of it says anything. Null: this node can't tell. */
  async #isHomeGone(id: string, force: HomesWord["phase"]): Promise<boolean | null> {
    const { calls, isAlone } = this.#options.around;
    const home = this.#homeOf(id, force);
    if (home === null || isAlone()) return true;
    const isHeard = await calls()?.isHeard(home, TXN_HOME_GONE_MS);
    return isHeard === undefined || isHeard === null ? null : !isHeard;
  }

  /** Of what this force would end, the home that can be asked: under this island's own hash it is prepared here, or committed and to be reported. */
  #homeOf(id: string, force: HomesWord["phase"]): BackendHash | null {
    const { self } = this.#options.around;
    const state = this.#desk.head.txns.get(id);
    if (state === undefined || !state.header.participants.includes(self)) return null;
    const isReport = force === "committed" && state.phase === "committed" && !state.isSettled;
    return state.header.home !== self && (state.phase === "prepared" || isReport) ? state.header.home : null;
  }

  // ---- decisions -----------------------------------------------------------------------------------

  /** Decides, appends, and answers when that is committed. What rests on the head alone is a confirmed leader's, and on nothing that is given up. */
  async #decide(decide: Decide): Promise<TxnAnswer> {
    const desk = this.#desk;
    for (let attempt = 0; attempt < DECIDE_AGAIN_MAX; attempt++) {
      const written = this.#write(decide);
      if (written !== null) return written;
      await desk.confirmed();
      const decision = decide(this.#context(desk.appends.begin()));
      if (decision.kind === "answer" && (await this.#isSettled())) return decision.answer;
    }
    throw overloaded("what this rests on is written and given up, again and again");
  }

  /** In one turn. Null: nothing is to be written. */
  #write(decide: Decide): Promise<TxnAnswer> | null {
    const { appends } = this.#desk;
    const batch = appends.begin();
    const decision = decide(this.#context(batch));
    if (decision.kind === "answer") return null;
    return this.#send(batch, decision.changes).then(() => decision.answer);
  }

  /** Throws where such a record must not be appended now. */
  #send(batch: Batch, changes: StateRecord): Promise<void> {
    const { appends } = this.#desk;
    const { around, onFreed } = this.#options;
    const refusal = isNew(changes, around.self) ? around.refusesNew() : null;
    if (refusal !== null) throw refusal;
    around.checkReadable();
    const freed = this.#freedBy(changes);
    appends.add(batch, changes);
    appends.send(batch);
    onFreed(freed);
    return batch.done.then(() => {
      for (const change of changes) if (change.kind === "txn-decided") around.onDecided(change.outcome);
    });
  }

  #context(batch: Batch): TxnContext {
    const { around } = this.#options;
    const position = this.#desk.appends.positionIn(batch);
    return {
      self: around.self,
      atMs: this.#desk.wallMs(),
      place: this.#desk.head.placeOf(position),
      position,
      observed: around.observed(),
      newJobId: around.newJobId,
      problemOf: around.problemOf,
    };
  }

  /** False: something that the decision may rest on was given up. */
  async #isSettled(): Promise<boolean> {
    try {
      // A refusal may rest on any lock, and on how much room all the others leave.
      await this.#desk.allSettled();
      return true;
    } catch (error) {
      if (this.#desk.isOver || !this.#desk.leads) throw error;
      return false;
    }
  }

  /** Scopes that are held or locked, and will be no more. */
  #freedBy(changes: StateRecord): string[] {
    const { txns } = this.#desk.head;
    return changes.flatMap((change) => {
      if (change.kind === "resigned") return [change.scope];
      return change.kind === "txn-decided" ? lockedScopes(txns.get(change.header.id)?.operations ?? []) : [];
    });
  }

  // ---- the resolver's ------------------------------------------------------------------------------

  #newResolver(): Resolver {
    const { applied, around, random } = this.#options;
    const { self, calls, isAlone, jobs } = around;
    const head = (): StateHead<Batch> => this.#desk.head;
    return new Resolver({
      self,
      calls,
      isAlone,
      jobs,
      clock: this.#desk.clock,
      random,
      applied: applied.txns,
      actions: {
        decided: (id, word) => this.#own((context) => decideOutcome(head(), id, word, context)),
        delivered: (ids) => this.#own((context) => ids.flatMap((id) => decideDelivered(head(), id, context))),
        reported: (ids) => this.#own((context) => decideSettledKnown(head(), ids, context)),
        // By this leader's monotonic clock: what its wall clock says may be years off.
        expired: (id) => this.#own((context) => decideDropped(head(), [id], { atMs: expiredMs(head(), id, context) })),
      },
    });
  }

  /** One record in this turn: resolves when it is committed. Where there is nothing to do, when what that rests on is. */
  async #own(changesOf: (context: TxnContext) => TxnChanges): Promise<void> {
    const { appends } = this.#desk;
    this.#desk.admit();
    const batch = appends.begin();
    const changes = changesOf(this.#context(batch));
    if (changes.length === 0) return this.#desk.allSettled();
    await this.#send(batch, changes);
  }
}

/** It promises something, or decides to do it: what was promised before goes on, and so does what ends it. */
function isNew(changes: StateRecord, self: BackendHash): boolean {
  return changes.some((change) => {
    if (change.kind === "txn-decided") return change.outcome === "committed" && change.header.home === self;
    return change.kind === "txn-staged" || change.kind === "txn-prepared";
  });
}

function homeIsThere(id: string): TenureError {
  const text = `The home of transaction ${id} answers, and could not say at this moment what became of it, or record that it is done here (it elects a leader, or can't write); or what it said was not written here. Nothing was ended by force: repeat it. Force is for a home that is gone for good.`;
  return new TenureError("txn_pending", text);
}

function homeNotAsked(id: string): TenureError {
  const text = `This node could not ask the home of transaction ${id} yet: its coordinator is not open, or does not know the other islands. Nothing was ended by force: repeat it in a moment, or at another node of this island. Force is for a home that is gone for good.`;
  return new TenureError("txn_pending", text);
}

function expiredMs({ txns }: StateHead<Batch>, id: string, { atMs }: TxnContext): number {
  return Math.max(atMs, txns.get(id)?.atMs ?? 0);
}
