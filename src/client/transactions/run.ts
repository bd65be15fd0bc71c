// One transaction, until its outcome is known or the time is over.
//
// It is sent again with the same id and the same content, whatever became of the attempt before, to any node: the id decides, so this can't do it
// twice. A second id is never made here. Where an attempt may have arrived, only an outcome ends the matter: a refusal that comes after it is of that
// attempt alone, and what becomes of the first is unknown (trap 66).
//
//   asked ──200, txn_fanout_failed──▶ committed, rolled back
//     ▲ ├─tc_not_leader, and the leader's address is known──▶ asked there
//     │ ├─refused for now, silent, OUTCOME_UNKNOWN──▶ the next node ──all asked──▶ a pause ──time over──▶ unknown; refused where none can have arrived
//     │ └─refused for good──▶ refused; unknown where one before it may have arrived, here or in a process before this one (txn_expired)
//     └───────────────────────────┘

import { assertNever, type ErrorCode, ERRORS, TenureError } from "../../contract/errors.ts";
import { toCamel, toSnake } from "../../contract/snake-case.ts";
import { ATTEMPT_MS } from "../../contract/timeouts.ts";
import type { Caller, CallOptions } from "../caller.ts";
import { type Answer, exchange, jsonOf, reasonOf } from "../exchange.ts";
import { CALL_HOPS_MAX, TRANSACTION_CALL_MS } from "../limits.ts";
import { Pauses } from "../pauses.ts";
import { isFinal, isFinalAnswer } from "../race.ts";
import type { CommittedTransaction, TransactionOutcome, TransactionReason, TransactionRequest } from "./views.ts";

/** Where the last one was answered. */
export interface Preferred {
  url: string | undefined;
}

type Verdict =
  | { readonly kind: "outcome"; readonly outcome: TransactionOutcome }
  /** Nobody would take it. */
  | { readonly kind: "refused"; readonly error: TenureError }
  /** Not done, and may be done later, or elsewhere; `leader`: who would take it. `isHopeless`: not at this node, whenever. */
  | {
      readonly kind: "later";
      readonly error: TenureError;
      readonly leader?: unknown;
      readonly isHopeless?: boolean | undefined;
    }
  /** It may have arrived. `isSaid`: a server says so, and why; otherwise nobody has answered. */
  | { readonly kind: "unclear"; readonly error: TenureError; readonly isSaid: boolean };

export async function runTransaction(
  caller: Caller,
  request: TransactionRequest,
  options: CallOptions,
  preferred: Preferred,
  isNew = false,
): Promise<TransactionOutcome> {
  const { signal, timeoutMs = TRANSACTION_CALL_MS, attemptMs = ATTEMPT_MS } = options;
  signal?.throwIfAborted();
  const line = caller.line({ signal, timeoutMs });
  const call = { method: "POST", path: "/v1/txn", body: bodyOf(request) } as const;
  const pauses = new Pauses(timeoutMs);
  let unclear: TenureError | null = null;
  let isSaid = false;
  const end = (error: TenureError): TransactionOutcome => {
    if (!isNew && OF_THIS_REQUEST.has(error.code)) unclear ??= error;
    if (unclear !== null) {
      const code = error.code === "txn_expired" ? error.code : "OUTCOME_UNKNOWN";
      return { state: "unknown", id: request.id, request, code, why: unclear.message };
    }
    signal?.throwIfAborted();
    throw error;
  };
  let hops = 0;
  for (;;) {
    let last: TenureError | null = null;
    let isHopeless = true;
    let next: string | undefined;
    for (const url of inOrder(caller.addresses.all(), preferred.url)) {
      const attempt = { ...line, signal: AbortSignal.any([line.signal, AbortSignal.timeout(attemptMs)]) };
      const verdict = await verdictOf(await exchange(attempt, url, call), url, request);
      if (verdict.kind === "outcome") {
        preferred.url = url;
        return verdict.outcome;
      }
      if (verdict.kind === "refused") return end(verdict.error);
      if (preferred.url === url) preferred.url = undefined;
      // What a server has said of it is not replaced by a later silence, which knows less.
      if (verdict.kind === "unclear" && (verdict.isSaid || !isSaid)) ({ error: unclear, isSaid } = verdict);
      if (line.signal.aborted) return end(verdict.error);
      isHopeless &&= verdict.kind === "later" && verdict.isHopeless === true;
      last = verdict.error;
      next = verdict.kind === "later" ? caller.addresses.known(verdict.leader) : undefined;
      if (next !== undefined && next !== url && ++hops <= CALL_HOPS_MAX) break;
      next = undefined;
    }
    if (next !== undefined) {
      preferred.url = next;
      continue;
    }
    hops = 0;
    if (last !== null && (isHopeless || !(await pauses.take(line.signal)))) return end(last);
  }
}

function inOrder(urls: readonly string[], first: string | undefined): readonly string[] {
  return first === undefined || !urls.includes(first) ? urls : [first, ...urls.filter((url) => url !== first)];
}

function bodyOf({ id, ...rest }: TransactionRequest): object {
  return { txn_id: id, ...toSnake(rest) };
}

/**
 * Under an id that was kept it may have been committed before all the same: home has forgotten so much that it can't tell, or decides nothing now and was
 * asked by a coordinator that does not know of the former request.
 */
const OF_THIS_REQUEST: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["txn_expired", "DISK_FULL", "CLUSTER_PAUSED"]);

/** Retryable in general, but not within one call: an operator has to act. */
const FOR_GOOD: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["tc_rm_unavailable"]);

async function verdictOf(answer: Answer, url: string, request: TransactionRequest): Promise<Verdict> {
  switch (answer.kind) {
    case "ok":
      return await answered(answer.response, request);
    case "refused":
      return refused(answer, request);
    case "silent": {
      const { isSent, code, why, cause } = answer;
      if (isSent) return { kind: "unclear", error: unconfirmed(url, why, cause), isSaid: false };
      const error = new TenureError(code ?? "BACKEND_UNAVAILABLE", `can't reach ${url}: ${why}.`, { cause });
      return { kind: "later", error, isHopeless: code !== null && isFinal(code) };
    }
    default:
      return assertNever(answer, "answer");
  }
}

function refused(answer: Extract<Answer, { kind: "refused" }>, { id }: TransactionRequest): Verdict {
  const { code, message, fields } = answer;
  // Said only where home has recorded it.
  if (code === "txn_fanout_failed") {
    const reason = { code, message, backendHash: null };
    return { kind: "outcome", outcome: { state: "rolled-back", id, reason } };
  }
  const error = new TenureError(code, message);
  if (code === "OUTCOME_UNKNOWN") return { kind: "unclear", error, isSaid: true };
  if (code === "NOT_FOUND") {
    const text = "the servers know no transactions: they are of a release before these. Upgrade them.";
    return { kind: "refused", error: new TenureError("NOT_SUPPORTED", text, { cause: error }) };
  }
  const isOfNode = code === "UNAUTHENTICATED" && !isFinalAnswer(answer);
  if (isOfNode) return { kind: "later", error, isHopeless: true };
  if (!ERRORS[code].retryable || FOR_GOOD.has(code)) return { kind: "refused", error };
  return { kind: "later", error, leader: fields["leader_endpoint"] };
}

async function answered(response: Response, request: TransactionRequest): Promise<Verdict> {
  let why = "not the outcome of a transaction";
  try {
    const outcome = outcomeIn(await jsonOf(response), request.id);
    if (outcome !== null) return { kind: "outcome", outcome };
  } catch (error) {
    why = reasonOf(error);
  }
  const error = unconfirmed(response.url, `it answered ${response.status}, ${why}`, undefined);
  return { kind: "unclear", error, isSaid: false };
}

type Said = Omit<CommittedTransaction, "state" | "id" | "term"> & {
  readonly txnId: string;
  readonly state: string;
  readonly tcTerm: number;
  readonly reason: TransactionReason | null;
};

/** Null: it is none. */
function outcomeIn(body: unknown, id: string): TransactionOutcome | null {
  const { txnId, state, tcTerm, home, reason, participants } = (toCamel(body) ?? {}) as Partial<Said>;
  if (txnId !== id || !Array.isArray(participants)) return null;
  if (state === "committed" && home !== undefined && tcTerm !== undefined)
    return { state, id, term: tcTerm, home, participants: participants as CommittedTransaction["participants"] };
  if (state !== "rolled_back") return null;
  const unsaid = { code: "INTERNAL", message: "no reason was given", backendHash: null } as const;
  return { state: "rolled-back", id, reason: reason ?? unsaid };
}

function unconfirmed(url: string, why: string, cause: unknown): TenureError {
  const text = `${url} was asked and did not confirm (${why}): it may have been committed. The same id finds out, and never does it twice.`;
  return new TenureError("OUTCOME_UNKNOWN", text, { cause });
}
