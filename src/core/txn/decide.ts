// Calls about transactions: what happens at this island, if anything. Pure: the same state and call give the same decision, and the caller makes it
// true by appending the record before anything else is decided. So what home checks (the fence, the epochs that are required, locks and versions) is
// checked in the record that decides.
//
// - What is decided never changes, whoever asks. An unknown id up to the horizon may have been decided, and is never decided again.
// - Only home decides by itself. Elsewhere a commit follows home's; what is prepared waits for home however long that takes.
// - A refusal says that this call has changed nothing.

import { assertNever } from "../kit/assert.ts";
import { TXN_BATCH_MAX } from "../kit/limits.ts";
import { requireProblem, roomNow, roomOf, roomProblem, statesProblem } from "./effects.ts";
import type { TxnSettledEvent } from "./events.ts";
import { fenceWord } from "./fence.ts";
import { isBackendHash } from "./home.ts";
import { isTxnId } from "./id.ts";
import { TXNS_STAGED_MAX } from "./limits.ts";
import type { TcFence, TxnAnswer, TxnHeader, TxnOperation, TxnRequest, TxnState } from "./model.ts";
import { areSameOperations, operationsProblem, type Refusal } from "./operations.ts";
import {
  answered,
  asIs,
  committed,
  refused,
  rolledBack,
  rolledBackAs,
  type TxnChange,
  type TxnContext,
  type TxnDecision,
} from "./outcome.ts";
import {
  ageProblem,
  aheadProblem,
  bytesProblem,
  clockProblem,
  conflict,
  horizonProblem,
  isForgotten,
  notHere,
  notStaged,
  openProblem,
  overloaded,
  undecided,
} from "./refusals.ts";
import { fenceProblem, headerProblem, stageProblem } from "./requests.ts";
import { isSameTxn } from "./txn-state.ts";
import type { TxnsView } from "./view.ts";

type RequestOf<Kind extends TxnRequest["kind"]> = Extract<TxnRequest, { readonly kind: Kind }>;

export function decideTxn(
  view: TxnsView,
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
  view: TxnsView,
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
  view: TxnsView,
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
  view: TxnsView,
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
  view: TxnsView,
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
  view: TxnsView,
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
  view: TxnsView,
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
function decideInquire(view: TxnsView, { header }: RequestOf<"inquire">, context: TxnContext): TxnDecision {
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

function decideSettled(view: TxnsView, { from, ids }: RequestOf<"settled">, { self, atMs }: TxnContext): TxnDecision {
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

function decideStage(view: TxnsView, request: RequestOf<"stage">, context: TxnContext): TxnDecision {
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
  view: TxnsView,
  fence: TcFence,
  { atMs, observed }: Pick<TxnContext, "atMs" | "observed">,
): RecoverDecision {
  const problem = fenceProblem(fence);
  if (problem !== null) return { kind: "refused", ...problem };
  const word = fenceWord(view.txns.fence, fence, observed);
  if (word.kind === "refused") return word;
  return word.kind === "same" ? { kind: "nothing" } : { kind: "record", changes: [{ kind: "txn-fence", fence, atMs }] };
}
