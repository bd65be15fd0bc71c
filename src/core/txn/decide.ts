// Calls about transactions: what happens at this island, if anything. Pure: the same state and call give the same decision, and the caller makes it
// true by appending the record before anything else is decided. So what home checks (the fence, the epochs that are required, locks and versions) is
// checked in the record that decides.
//
// - What is decided never changes, whoever asks. An unknown id up to the horizon may have been decided, and is never decided again.
// - Only home decides by itself. Elsewhere a commit follows home's; what is prepared waits for home however long that takes.
// - A refusal says that this call has changed nothing.

import { assertNever } from "../kit/assert.ts";
import type { JobSpec } from "../jobs/model.ts";
import { TXN_AGE_MS_MAX, TXN_AHEAD_MS_MAX, TXN_BATCH_MAX } from "../kit/limits.ts";
import type { ScopeEvent } from "../scopes/index.ts";
import type { ValueEvent } from "../values/index.ts";
import {
  effectsOf,
  type EffectsContext,
  requireProblem,
  roomNow,
  roomOf,
  roomProblem,
  statesProblem,
} from "./effects.ts";
import type { TxnDecidedEvent, TxnEvent, TxnSettledEvent } from "./events.ts";
import { fenceWord } from "./fence.ts";
import { isBackendHash } from "./home.ts";
import { createdMs, isTxnId } from "./id.ts";
import { TXNS_AHEAD_MAX, TXNS_BYTES_MAX, TXNS_OPEN_MAX, TXNS_STAGED_MAX } from "./limits.ts";
import type {
  BackendHash,
  TcFence,
  TxnAnswer,
  TxnHeader,
  TxnOperation,
  TxnReason,
  TxnRequest,
  TxnResult,
  TxnState,
} from "./model.ts";
import { areSameOperations, operationsProblem, type Refusal } from "./operations.ts";
import { clippedReason, fenceProblem, headerProblem, stageProblem } from "./requests.ts";
import { isSameTxn, operationsBytes } from "./txn-state.ts";
import type { TxnView } from "./view.ts";

export interface TxnContext {
  /** This island. */
  readonly self: BackendHash;
  /** Wall time of this leader. */
  readonly atMs: number;
  /** Of the record that this decision may make: `placeOf(position)`. */
  readonly place: number;
  readonly position: number;
  /** What this node's own coordinator knows of a leader; null: it has none, or knows of none. */
  readonly observed: { readonly clusterId: string; readonly term: number } | null;
  readonly newJobId: () => string;
  /** Why nobody can do such a job; null: somebody can. All that core/jobs refuses is named here. */
  readonly problemOf: (spec: JobSpec) => string | null;
}

export type TxnChange = TxnEvent | ValueEvent | ScopeEvent;

export type TxnDecision =
  /** One record; the answer is given when it is committed. */
  | { readonly kind: "record"; readonly changes: readonly TxnChange[]; readonly answer: TxnAnswer }
  /** Nothing is to be written. It rests on the head: what is under way is committed before it is given, and this node is confirmed to lead. */
  | { readonly kind: "answer"; readonly answer: TxnAnswer };

type RequestOf<Kind extends TxnRequest["kind"]> = Extract<TxnRequest, { readonly kind: Kind }>;

export function decideTxn(
  view: TxnView,
  request: Exclude<TxnRequest, { readonly kind: "recover" }>,
  context: TxnContext,
): TxnDecision {
  switch (request.kind) {
    case "stage":
      return decideStage(view, request, context);
    case "settled":
      return decideSettled(view, request, context);
    case "prepare":
    case "commit":
    case "rollback": {
      const problem = headerProblem(request.header) ?? fenceProblem(request.fence);
      return problem === null ? decideFenced(view, request, context) : refused(problem);
    }
    case "inquire": {
      const problem = headerProblem(request.header);
      return problem === null ? decideInquire(view, request, context) : refused(problem);
    }
    default:
      return assertNever(request, "call about a transaction");
  }
}

/** What a coordinator asks for in its term. */
function decideFenced(
  view: TxnView,
  request: RequestOf<"prepare" | "commit" | "rollback">,
  context: TxnContext,
): TxnDecision {
  const { header, fence } = request;
  const isHome = header.home === context.self;
  if (!isHome && !header.participants.includes(context.self)) return refused(notHere(header.id, context.self));
  const word = fenceWord(view.txns.fence, fence, context.observed);
  if (word.kind === "refused") return refused(word);
  const state = view.txns.get(header.id);
  if (state !== undefined && !isSameTxn(state, header)) return refused(conflict(header.id));
  if (state?.phase === "committed" || state?.phase === "rolled-back") {
    // Also where nothing else is written: from this answer on nobody of a lower term is heard.
    if (word.kind === "same" || (request.kind === "rollback" && !isHome)) return answered(state);
    return { kind: "record", changes: [{ kind: "txn-fence", fence, atMs: context.atMs }], answer: asIs(state) };
  }
  switch (request.kind) {
    case "prepare":
      return decidePrepare(view, request, state, { ...context, isRaised: word.kind === "raised" });
    case "commit":
      return isHome ? decideHome(view, request, state, context) : decideCommit(view, request, state, context);
    case "rollback":
      return isHome ? decideRollback(view, request, state, context) : answered(state);
    default:
      return assertNever(request, "call of a coordinator");
  }
}

// ---- at an island that is not home -----------------------------------------------------------------------

function decidePrepare(
  view: TxnView,
  { header, operations: sent, fence }: RequestOf<"prepare">,
  state: TxnState | undefined,
  context: TxnContext & { readonly isRaised: boolean },
): TxnDecision {
  const { self, atMs, problemOf } = context;
  if (header.home === self)
    return refused({ code: "invalid_home", message: "This island is home: it decides, and prepares nothing." });
  if (state?.phase === "prepared") {
    if (!context.isRaised) return answered(state);
    return { kind: "record", changes: [{ kind: "txn-fence", fence, atMs }], answer: asIs(state) };
  }
  const staged = state?.operations ?? null;
  if (staged !== null && sent !== null) return refused(conflict(header.id));
  const operations = sent ?? staged;
  const problem =
    (state === undefined ? ageProblem(view, header.id, atMs) : null) ??
    (operations === null ? notStaged(header.id) : operationsProblem(operations, problemOf)) ??
    openProblem(view, operations ?? [], state) ??
    statesProblem(view, operations ?? []);
  if (problem !== null || operations === null) return refused(problem ?? notStaged(header.id));
  const reserved = roomOf(view, operations);
  const full = roomProblem(view, reserved);
  if (full !== null) return refused(full);
  return {
    kind: "record",
    changes: [{ kind: "txn-prepared", header, operations, reserved, fence, atMs }],
    answer: { kind: "txn", phase: "prepared", results: [], reason: null },
  };
}

/** Home has decided it. What was promised can be done. */
function decideCommit(
  view: TxnView,
  { header, fence }: RequestOf<"commit">,
  state: TxnState | undefined,
  context: TxnContext,
): TxnDecision {
  if (state?.phase === "prepared") return committed(view, state.header, state.operations, { ...context, fence });
  const age = state === undefined ? horizonProblem(view, header.id) : null;
  const message = `Transaction ${header.id} is not prepared at this island.`;
  return refused(age ?? { code: "txn_not_found", message });
}

// ---- at home -----------------------------------------------------------------------------------------------

/** The decision: either way it is one record, unless the call itself is refused. */
function decideHome(
  view: TxnView,
  request: RequestOf<"commit">,
  state: TxnState | undefined,
  context: TxnContext,
): TxnDecision {
  const { header, fence } = request;
  const untold =
    state === undefined ? (horizonProblem(view, header.id) ?? aheadProblem(view, header.id, context)) : null;
  if (untold !== null) return refused(untold);
  const operations = operationsAtHome(request, state, context);
  // What this clock says of its age is written down: by another one it may be fine, and this call may come again.
  const problem =
    (state === undefined ? clockProblem(header.id, context.atMs) : null) ??
    (Array.isArray(operations) ? homeProblem(view, request, operations, state) : (operations as Refusal));
  if (problem !== null) return rolledBack(header, { ...problem, backendHash: null }, { ...context, fence });
  return committed(view, header, operations as readonly TxnOperation[], { ...context, fence });
}

/** None: home has no part in it but the decision. */
function operationsAtHome(
  { header, operations: sent }: RequestOf<"commit">,
  state: TxnState | undefined,
  { self, problemOf }: TxnContext,
): readonly TxnOperation[] | Refusal {
  const staged = state?.operations ?? null;
  if (staged !== null && sent !== null) return conflict(header.id);
  const operations = sent ?? staged ?? [];
  if (header.participants.includes(self)) {
    if (sent === null && staged === null) return notStaged(header.id);
    return operationsProblem(operations, problemOf) ?? operations;
  }
  if (operations.length === 0) return operations;
  return { code: "invalid_operations", message: "Home has operations, and is not among the participants." };
}

function homeProblem(
  view: TxnView,
  { header, require }: RequestOf<"commit">,
  operations: readonly TxnOperation[],
  state: TxnState | undefined,
): Refusal | null {
  const isOpen =
    header.participants.some((one) => one !== header.home) || operations.some(({ kind }) => kind === "job-submit");
  return (
    requireProblem(view, require) ??
    (isOpen ? openProblem(view, operations, state) : null) ??
    statesProblem(view, operations) ??
    roomProblem(view, roomNow(view, operations))
  );
}

function decideRollback(
  view: TxnView,
  { header, reason, fence }: RequestOf<"rollback">,
  state: TxnState | undefined,
  context: TxnContext,
): TxnDecision {
  // It may have been committed, and done everywhere: whoever asks again must not hear that it was not.
  const untold =
    state === undefined ? (horizonProblem(view, header.id) ?? aheadProblem(view, header.id, context)) : null;
  return untold === null ? rolledBack(header, reason, { ...context, fence }) : refused(untold);
}

/**
 * By an island that has prepared it. What home does not know nobody has committed, and from now on nobody will: a commit is not forgotten before all
 * have done it. Also of an id that is made in the future, by this leader's clock: another island has prepared it by its own.
 */
function decideInquire(view: TxnView, { header }: RequestOf<"inquire">, context: TxnContext): TxnDecision {
  const { id } = header;
  if (header.home !== context.self) return refused(notHere(id, context.self));
  const state = view.txns.get(id);
  if (state === undefined && isForgotten(view, id)) return { kind: "answer", answer: rolledBackAs(undecided(id)) };
  const full = state === undefined ? aheadProblem(view, id, context) : null;
  if (full !== null) return refused(full);
  if (state === undefined || state.phase === "staged")
    return rolledBack(header, undecided(id), { ...context, fence: null });
  if (isSameTxn(state, header)) return answered(state);
  // Under this id home has another one, for good: this one was never committed here, and never will be.
  return { kind: "answer", answer: rolledBackAs({ ...conflict(id), backendHash: null }) };
}

function decideSettled(view: TxnView, { from, ids }: RequestOf<"settled">, { self, atMs }: TxnContext): TxnDecision {
  if (!isBackendHash(from)) return refused({ code: "invalid_backend_hash", message: "from is no backend hash." });
  if (ids.length > TXN_BATCH_MAX || !ids.every(isTxnId))
    return refused({ code: "invalid_txn_id", message: `Send at most ${TXN_BATCH_MAX} ids of transactions.` });
  const changes = [...new Set(ids)].flatMap((id): readonly TxnSettledEvent[] => {
    const state = view.txns.get(id);
    if (state?.phase !== "committed" || state.isSettled || state.header.home !== self) return [];
    const { home, participants } = state.header;
    if (from === home || !participants.includes(from) || state.settledBy.includes(from)) return [];
    return [{ kind: "txn-settled", id, by: from, atMs }];
  });
  const answer: TxnAnswer = { kind: "settled", ids };
  return changes.length === 0 ? { kind: "answer", answer } : { kind: "record", changes, answer };
}

// ---- at any island -----------------------------------------------------------------------------------------

function decideStage(view: TxnView, request: RequestOf<"stage">, context: TxnContext): TxnDecision {
  const { id, home, by, operations, expiresInMs } = request;
  const wrong = stageProblem(request) ?? operationsProblem(operations, context.problemOf);
  if (wrong !== null) return refused(wrong);
  const state = view.txns.get(id);
  if (state !== undefined) {
    const isOther = state.header.home !== home;
    if (isOther || (state.phase === "staged" && !areSameOperations(state.operations, operations)))
      return refused(conflict(id));
    return answered(state);
  }
  const problem =
    ageProblem(view, id, context.atMs) ??
    (view.txns.staged >= TXNS_STAGED_MAX ? overloaded(`${TXNS_STAGED_MAX} transactions are staged`) : null) ??
    bytesProblem(view, operations, undefined);
  if (problem !== null) return refused(problem);
  const header: TxnHeader = { id, home, participants: [], digest: "", timeoutMs: 0, by };
  return {
    kind: "record",
    changes: [{ kind: "txn-staged", header, operations, atMs: context.atMs + expiresInMs }],
    answer: { kind: "txn", phase: "staged", results: [], reason: null },
  };
}

export type RecoverDecision =
  /** One record. */
  | { readonly kind: "record"; readonly changes: readonly TxnChange[] }
  /** It was raised before. */
  | { readonly kind: "nothing" }
  | ({ readonly kind: "refused" } & Refusal);

/** Of `recover`: raises the fence. What is open is then read from the applied state (`TxnsFold.openOf`). */
export function decideRecover(
  view: TxnView,
  fence: TcFence,
  { atMs, observed }: Pick<TxnContext, "atMs" | "observed">,
): RecoverDecision {
  const problem = fenceProblem(fence);
  if (problem !== null) return { kind: "refused", ...problem };
  const word = fenceWord(view.txns.fence, fence, observed);
  if (word.kind === "refused") return word;
  return word.kind === "same" ? { kind: "nothing" } : { kind: "record", changes: [{ kind: "txn-fence", fence, atMs }] };
}

// ---- what the leader of this island does by itself -----------------------------------------------------------

/** The changes of one record; none of them: there is nothing to do. */
export type TxnChanges = readonly TxnChange[];

/** Home has answered what it has decided about one that is prepared here. */
export function decideOutcome(
  view: TxnView,
  id: string,
  outcome: { readonly phase: "committed" | "rolled-back"; readonly reason: TxnReason | null },
  context: EffectsContext,
): TxnChanges {
  const state = view.txns.get(id);
  if (state?.phase !== "prepared") return [];
  const { reason } = outcome;
  const { header, operations } = state;
  const decision =
    outcome.phase === "committed"
      ? committed(view, header, operations, { ...context, fence: null, reason })
      : rolledBack(header, reason ?? undecided(id), { ...context, fence: null });
  return decision.kind === "record" ? decision.changes : [];
}

/**
 * An operator's word for one that is prepared here, and whose home is gone for good. `committed` of one that is committed here, and waits for nothing
 * but reports to or from an island that is gone: it waits no longer.
 */
export function decideForce(
  view: TxnView,
  id: string,
  phase: "committed" | "rolled-back",
  context: EffectsContext,
): TxnChanges {
  const state = view.txns.get(id);
  if (state?.phase === "committed" && phase === "committed" && !state.isSettled && state.outbox.length === 0)
    return [{ kind: "txn-settled", id, by: null, atMs: context.atMs }];
  const message = "An operator has decided it at this island, because its home could not be asked.";
  return decideOutcome(view, id, { phase, reason: { code: "OUTCOME_UNKNOWN", message, backendHash: null } }, context);
}

/** Its jobs are in the jobs' log. */
export function decideDelivered(view: TxnView, id: string, { atMs }: Pick<TxnContext, "atMs">): TxnChanges {
  return (view.txns.get(id)?.outbox ?? []).length === 0 ? [] : [{ kind: "txn-delivered", id, atMs }];
}

/** Home knows that these are done here. At most TXN_BATCH_MAX. */
export function decideSettledKnown(
  view: TxnView,
  ids: readonly string[],
  { atMs, self }: Pick<TxnContext, "atMs" | "self">,
): TxnChanges {
  return [...new Set(ids)].flatMap((id): TxnChanges => {
    const state = view.txns.get(id);
    if (state?.phase !== "committed" || state.isSettled || state.outbox.length > 0) return [];
    return state.header.home === self ? [] : [{ kind: "txn-settled", id, by: null, atMs }];
  });
}

/** Of these, those that are staged and have expired. At most TXN_BATCH_MAX. */
export function decideDropped(view: TxnView, ids: readonly string[], { atMs }: Pick<TxnContext, "atMs">): TxnChanges {
  return [...new Set(ids)].flatMap((id): TxnChanges => {
    const state = view.txns.get(id);
    return state?.phase === "staged" && state.atMs <= atMs ? [{ kind: "txn-dropped", id, atMs }] : [];
  });
}

// ---- records and answers -------------------------------------------------------------------------------------

type Deciding = EffectsContext & { readonly fence: TcFence | null; readonly reason?: TxnReason | null };

function committed(
  view: TxnView,
  header: TxnHeader,
  operations: readonly TxnOperation[],
  context: Deciding,
): TxnDecision {
  const { changes, results, outbox } = effectsOf(view, operations, context);
  const { fence, atMs } = context;
  const reason = context.reason ? clippedReason(context.reason) : null;
  const event: TxnDecidedEvent = {
    kind: "txn-decided",
    header,
    outcome: "committed",
    results,
    outbox,
    reason,
    fence,
    atMs,
  };
  return { kind: "record", changes: [event, ...changes], answer: { kind: "txn", phase: "committed", results, reason } };
}

function rolledBack(header: TxnHeader, why: TxnReason, { fence, atMs }: Pick<Deciding, "fence" | "atMs">): TxnDecision {
  const reason = clippedReason(why);
  const nothing: readonly TxnResult[] = [];
  const rest = { results: nothing, outbox: [], reason, fence, atMs };
  const event: TxnDecidedEvent = { kind: "txn-decided", header, outcome: "rolled-back", ...rest };
  return { kind: "record", changes: [event], answer: rolledBackAs(reason) };
}

function rolledBackAs(reason: TxnReason): TxnAnswer {
  return { kind: "txn", phase: "rolled-back", results: [], reason };
}

function asIs(state: TxnState | undefined): TxnAnswer {
  if (state === undefined) return { kind: "txn", phase: null, results: [], reason: null };
  return { kind: "txn", phase: state.phase, results: state.results, reason: state.reason };
}

function answered(state: TxnState | undefined): TxnDecision {
  return { kind: "answer", answer: asIs(state) };
}

function refused({ code, message }: Refusal): TxnDecision {
  return { kind: "answer", answer: { kind: "refused", code, message } };
}

// ---- refusals --------------------------------------------------------------------------------------------------

/** Of one that is unknown here. */
function ageProblem(view: TxnView, id: string, atMs: number): Refusal | null {
  return horizonProblem(view, id) ?? clockProblem(id, atMs);
}

/** By this leader's clock. */
function clockProblem(id: string, atMs: number): Refusal | null {
  const madeMs = createdMs(id);
  if (madeMs < atMs - TXN_AGE_MS_MAX)
    return { code: "txn_expired", message: `Transaction ${id} was made more than 12 hours ago. Make a new one.` };
  if (madeMs <= atMs + TXN_AHEAD_MS_MAX) return null;
  return { code: "invalid_txn_id", message: `By the id, transaction ${id} is made in the future. Check the clocks.` };
}

function horizonProblem(view: TxnView, id: string): Refusal | null {
  if (!isForgotten(view, id)) return null;
  const message = `This island has forgotten transactions as late as ${id}, and can't tell whether it was decided. Make a new one.`;
  return { code: "txn_expired", message };
}

/** It would be written down, and there are too many of these: whoever asks is told nothing of it, for by another clock it may be fine. */
function aheadProblem(view: TxnView, id: string, { atMs }: Pick<TxnContext, "atMs">): Refusal | null {
  const fromMs = atMs + TXN_AHEAD_MS_MAX;
  if (createdMs(id) <= fromMs || view.txns.settledFrom(fromMs + 1) < TXNS_AHEAD_MAX) return null;
  return overloaded(
    `${TXNS_AHEAD_MAX} rollbacks of ids that are made in the future are kept: check the clocks of clients`,
  );
}

function isForgotten({ txns }: TxnView, id: string): boolean {
  return txns.horizon !== null && id <= txns.horizon;
}

function openProblem(view: TxnView, operations: readonly TxnOperation[], state: TxnState | undefined): Refusal | null {
  const { prepared, unsettled } = view.txns;
  if (prepared + unsettled >= TXNS_OPEN_MAX)
    return overloaded(`${TXNS_OPEN_MAX} transactions are prepared, or committed and not done everywhere`);
  return bytesProblem(view, operations, state);
}

/** `state`: where they are staged, they are counted already. */
function bytesProblem(view: TxnView, operations: readonly TxnOperation[], state: TxnState | undefined): Refusal | null {
  const counted = state === undefined ? 0 : operationsBytes(state.operations);
  if (view.txns.bytes - counted + operationsBytes(operations) <= TXNS_BYTES_MAX) return null;
  return overloaded(`transactions that are not done have ${TXNS_BYTES_MAX} bytes`);
}

function overloaded(why: string): Refusal {
  return { code: "OVERLOADED", message: `At this island ${why}. Retry in a moment.` };
}

function conflict(id: string): Refusal {
  return { code: "txn_conflict", message: `Under the id ${id} this island knows another transaction. Make a new id.` };
}

function notStaged(id: string): Refusal {
  return { code: "txn_not_found", message: `No operations of transaction ${id} are staged at this island.` };
}

function notHere(id: string, self: BackendHash): Refusal {
  return { code: "txn_backend_mismatch", message: `Transaction ${id} has no part at this island, which is ${self}.` };
}

function undecided(id: string): TxnReason {
  return { code: "txn_expired", message: `Transaction ${id} was not decided in its time.`, backendHash: null };
}
