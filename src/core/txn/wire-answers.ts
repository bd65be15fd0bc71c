// What an island and the coordinators' leader answer about transactions, in the names of the wire, and back.
//
// Invariant: an answer in which a field is missing or wrong is none. Fields that are not known here are passed over, so that a newer node is understood.
//
//   answerOf      what the island's leader says: done, or refused, which is definite
//   elsewhereOf   this node of the island can't say: another one may
//   neither       no answer: it may have been done, or may be done later

import type { TxnDecide, TxnOutcome } from "../../ports/transactions.ts";
import { assertNever } from "../kit/assert.ts";
import { type ErrorCode, ERRORS, TenureError } from "../kit/errors.ts";
import {
  API_URL_LENGTH_MAX,
  JOB_ID_BYTES_MAX,
  TXN_BATCH_MAX,
  TXN_BY_BYTES_MAX,
  TXN_OPERATIONS_MAX,
  TXN_PARTICIPANTS_MAX,
  TXN_TIMEOUT_MS_MAX,
  TXNS_PER_PAGE_MAX,
} from "../kit/limits.ts";
import { isBackendHash } from "./home.ts";
import { isTxnId } from "./id.ts";
import type { TxnAnswer, TxnHeader, TxnOpen, TxnPhase, TxnReason, TxnRequest, TxnResult } from "./model.ts";
import { headerBody, headerOf, isCode, reasonBody, reasonOf } from "./wire-calls.ts";

export interface TxnWireAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** Refusals of an island's leader, and of its node before it: this call has changed nothing. */
export const TXN_REFUSALS = [
  "txn_locked",
  "txn_conflict",
  "txn_expired",
  "txn_backend_mismatch",
  "txn_not_found",
  "tc_term_stale",
  "tc_cluster_mismatch",
  "VERSION_CONFLICT",
  "STALE_EPOCH",
  "QUOTA_EXCEEDED",
  "BAD_REQUEST",
  "PAYLOAD_TOO_LARGE",
  "OVERLOADED",
  "UNCOMMITTED_LIMIT",
  "DISK_FULL",
  "CLUSTER_PAUSED",
  "NOT_SUPPORTED",
  "missing_txn_id",
  "invalid_txn_id",
  "missing_operations",
  "invalid_operations",
  "missing_header",
  "invalid_header",
  "invalid_home",
  "invalid_require",
  "missing_backend_hash",
  "invalid_backend_hash",
  "tc_term_required",
  "invalid_term",
] as const satisfies readonly ErrorCode[];

const REFUSALS: ReadonlySet<string> = new Set(TXN_REFUSALS);
/** Of a node that can't say, or not now. */
const ELSEWHERE: ReadonlySet<string> = new Set<ErrorCode>([
  "NOT_LEADER",
  "ERR_NO_LEADER",
  "TRANSFER_IN_PROGRESS",
  "BACKEND_UNAVAILABLE",
  "tc_unavailable",
]);

const ENDPOINT = /^https?:\/\/[^\s/?#@\\]+\/?$/;
const STATES = {
  staged: "staged",
  prepared: "prepared",
  committed: "committed",
  rolled_back: "rolled-back",
} as const satisfies Readonly<Record<string, TxnPhase>>;
const SHOWN = {
  staged: "staged",
  prepared: "prepared",
  committed: "committed",
  "rolled-back": "rolled_back",
} as const satisfies Readonly<Record<TxnPhase, keyof typeof STATES>>;

// ---- between islands ----------------------------------------------------------------------------------

/** Of what was not refused: that is an error's body. */
export function answerBody(id: string | null, answer: Exclude<TxnAnswer, { readonly kind: "refused" }>): object {
  switch (answer.kind) {
    case "txn":
      return {
        txn_id: id,
        state: stateShown(answer.phase),
        results: answer.results.map((one) => resultBody(one)),
        reason: answer.reason && reasonBody(answer.reason),
      };
    case "settled":
      return { ids: answer.ids };
    case "recovered": {
      const { open, next, refusesNew } = answer;
      const why = refusesNew === undefined ? {} : { refuses_new: refusalBody(refusesNew) };
      return { open: open.map((one) => openBody(one)), next, ...why };
    }
    default:
      return assertNever(answer, "answerBody");
  }
}

/** Null: no answer to this request. */
export function answerOf(request: TxnRequest, { status, body }: TxnWireAnswer): TxnAnswer | null {
  if (!isObject(body)) return null;
  if (status !== 200) return refusalIn(status, body);
  switch (request.kind) {
    case "stage":
      return txnIn(request.id, body);
    case "prepare":
    case "commit":
    case "rollback":
    case "inquire":
      return txnIn(request.header.id, body);
    case "settled":
      return settledIn(request.ids, body);
    case "recover":
      return recoveredIn(body);
    default:
      return assertNever(request, "answerOf");
  }
}

/** Null: it does not say that. `leaderUrl` null: whoever leads is not known there, or it is about to change. */
export function elsewhereOf({ status, body }: TxnWireAnswer): { readonly leaderUrl: string | null } | null {
  if (!isObject(body) || codeIn(status, body, ELSEWHERE) === null) return null;
  const { leader_url: url } = body;
  return { leaderUrl: isEndpoint(url) ? url : null };
}

/** One for each of `count` calls, as if each had been answered alone. Null: no answer to so many. */
export function batchAnswersOf(count: number, { status, body }: TxnWireAnswer): readonly TxnWireAnswer[] | null {
  if (status !== 200 || !isObject(body)) return null;
  const { answers } = body;
  if (!Array.isArray(answers) || answers.length !== count) return null;
  const found: TxnWireAnswer[] = [];
  for (const one of answers as readonly unknown[]) {
    if (!isObject(one) || !isCount(one["status"])) return null;
    found.push({ status: one["status"], body: one["body"] });
  }
  return found;
}

function txnIn(id: string, body: Fields): TxnAnswer | null {
  const { txn_id: of, state } = body;
  const phase = phaseIn(state);
  const results = resultsIn(body["results"]);
  const reason = reasonIn(body["reason"]);
  if (of !== id || phase === undefined || results === null || reason === undefined) return null;
  return { kind: "txn", phase, results, reason };
}

function settledIn(asked: readonly string[], { ids }: Fields): TxnAnswer | null {
  if (!Array.isArray(ids) || ids.length > TXN_BATCH_MAX || !ids.every((id) => asked.includes(id as string)))
    return null;
  return { kind: "settled", ids: ids as readonly string[] };
}

function recoveredIn({ open, next, refuses_new: refuses }: Fields): TxnAnswer | null {
  // Older servers don't send it, and decide.
  const why = refuses === undefined ? null : reasonIn(refuses);
  if (why === undefined || (refuses !== undefined && why === null)) return null;
  if (!Array.isArray(open) || open.length > TXNS_PER_PAGE_MAX || !(next === null || isTxnId(next))) return null;
  const found: TxnOpen[] = [];
  for (const one of open as readonly unknown[]) {
    const read = openIn(one);
    if (read === null) return null;
    found.push(read);
  }
  const refusesNew = why === null ? {} : { refusesNew: { code: why.code, message: why.message } };
  return { kind: "recovered", open: found, next, ...refusesNew };
}

function refusalBody({ code, message }: Pick<TxnReason, "code" | "message">): object {
  const { backend_hash: _, ...body } = reasonBody({ code, message, backendHash: null });
  return body;
}

function openBody({ header, phase, waitsFor }: TxnOpen): object {
  return { txn: headerBody(header), state: SHOWN[phase], waits_for: waitsFor };
}

function openIn(value: unknown): TxnOpen | null {
  if (!isObject(value)) return null;
  const header = headerIn(value["txn"]);
  const phase = phaseIn(value["state"]);
  const { waits_for: waitsFor } = value;
  if (header === null || !(phase === "prepared" || phase === "committed") || !isHashes(waitsFor)) return null;
  return { header, phase, waitsFor };
}

function headerIn(value: unknown): TxnHeader | null {
  if (!isObject(value)) return null;
  const { txn_id: id, home_backend_hash: home, participants, digest, timeout_ms: timeoutMs, by } = value;
  if (!isTxnId(id) || !isBackendHash(home) || !isHashes(participants) || !isBackendHash(digest)) return null;
  if (!isCount(timeoutMs) || timeoutMs > TXN_TIMEOUT_MS_MAX || !isText(by, TXN_BY_BYTES_MAX)) return null;
  return headerOf({ txn_id: id, home_backend_hash: home, participants, digest, timeout_ms: timeoutMs, by });
}

function refusalIn(status: number, body: Fields): TxnAnswer | null {
  const code = codeIn(status, body, REFUSALS);
  const { message } = body;
  return code === null || typeof message !== "string" ? null : { kind: "refused", code, message };
}

// ---- for clients --------------------------------------------------------------------------------------

export function outcomeBody({ id, state, term, home, reason, participants }: TxnOutcome): object {
  return {
    txn_id: id,
    state: SHOWN[state],
    tc_term: term,
    home,
    reason: reason && reasonBody(reason),
    participants: participants.map((one) => ({
      backend_hash: one.backendHash,
      state: one.state === "rolled-back" ? "rolled_back" : one.state,
      results: one.results.map((result) => resultBody(result)),
    })),
  };
}

/** Null: no outcome of this transaction. */
export function outcomeOf(id: string, { status, body }: TxnWireAnswer): TxnOutcome | null {
  if (status !== 200 || !isObject(body)) return null;
  const { txn_id: of, tc_term: term, home, participants } = body;
  const state = phaseIn(body["state"]);
  const reason = reasonIn(body["reason"]);
  if (of !== id || !(state === "committed" || state === "rolled-back")) return null;
  if (!isCount(term) || !isBackendHash(home) || reason === undefined) return null;
  if (!Array.isArray(participants) || participants.length > TXN_PARTICIPANTS_MAX) return null;
  const found = (participants as readonly unknown[]).map((one) => participantIn(one));
  return found.includes(null) ? null : { id, state, term, home, reason, participants: found as Participants };
}

type Participants = TxnOutcome["participants"];

function participantIn(value: unknown): Participants[number] | null {
  if (!isObject(value)) return null;
  const { backend_hash: backendHash, state } = value;
  const results = resultsIn(value["results"]);
  if (!isBackendHash(backendHash) || results === null) return null;
  if (state === "rolled_back") return { backendHash, state: "rolled-back", results };
  return state === "applied" || state === "pending" ? { backendHash, state, results } : null;
}

interface Decided {
  readonly id: string;
  readonly state: TxnDecide["state"];
}

export function decidedBody({ id, state }: Decided): object {
  return { txn_id: id, state };
}

/** Null: no answer about this transaction. */
export function decidedOf(id: string, { status, body }: TxnWireAnswer): Decided | null {
  if (status !== 200 || !isObject(body) || body["txn_id"] !== id) return null;
  const { state } = body;
  return state === "pending" || state === "commit" || state === "rollback" ? { id, state } : null;
}

/**
 * An error of the registry that a node answered. Null: it is none. One of its node alone, which says nothing of the transaction (it is
 * stopping, is no coordinator, does not know the caller), is an error too: whoever forwards tells it on.
 */
export function errorOf({ status, body }: TxnWireAnswer): TxnWireError | null {
  if (!isObject(body)) return null;
  const { error, message, leader_endpoint: endpoint } = body;
  if (!isCode(error) || status !== ERRORS[error].http || typeof message !== "string") return null;
  return new TxnWireError(error, message, isEndpoint(endpoint) ? endpoint : null);
}

export class TxnWireError extends TenureError {
  /** Of tc_not_leader: who leads the coordinators. */
  readonly leaderEndpoint: string | null;

  constructor(code: ErrorCode, message: string, leaderEndpoint: string | null) {
    super(code, message);
    this.leaderEndpoint = leaderEndpoint;
  }
}

// ---- parts --------------------------------------------------------------------------------------------

export function stateShown(phase: TxnPhase | null): keyof typeof STATES | "unknown" {
  return phase === null ? "unknown" : SHOWN[phase];
}

export function resultBody({ version, epoch, jobId }: TxnResult): object {
  return {
    ...(version === null ? {} : { version }),
    ...(epoch === null ? {} : { epoch }),
    ...(jobId === null ? {} : { job_id: jobId }),
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** Undefined: it is none. */
function phaseIn(state: unknown): TxnPhase | null | undefined {
  if (state === "unknown") return null;
  return typeof state === "string" && Object.hasOwn(STATES, state) ? STATES[state as keyof typeof STATES] : undefined;
}

function resultsIn(value: unknown): readonly TxnResult[] | null {
  if (!Array.isArray(value) || value.length > TXN_OPERATIONS_MAX) return null;
  const results: TxnResult[] = [];
  for (const one of value as readonly unknown[]) {
    if (!isObject(one)) return null;
    const { version = null, epoch = null, job_id: jobId = null } = one;
    if (!(version === null || isCount(version)) || !(epoch === null || isCount(epoch))) return null;
    if (!(jobId === null || isText(jobId, JOB_ID_BYTES_MAX))) return null;
    results.push({ version, epoch, jobId });
  }
  return results;
}

/** Undefined: it is none. */
function reasonIn(value: unknown): TxnReason | null | undefined {
  if (value === null) return null;
  if (!isObject(value)) return undefined;
  const { code, message, backend_hash: backendHash = null } = value;
  if (typeof code !== "string" || typeof message !== "string") return undefined;
  if (!(backendHash === null || isBackendHash(backendHash))) return undefined;
  return reasonOf({ code, message, backend_hash: backendHash });
}

/** Null: another error, or none. */
function codeIn(status: number, { error }: Fields, among: ReadonlySet<string>): ErrorCode | null {
  return isCode(error) && among.has(error) && status === ERRORS[error].http ? error : null;
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown, lengthMax: number): value is string {
  return typeof value === "string" && value !== "" && value.length <= lengthMax;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function isHashes(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= TXN_PARTICIPANTS_MAX && value.every(isBackendHash);
}

function isEndpoint(value: unknown): value is string {
  return isText(value, API_URL_LENGTH_MAX) && ENDPOINT.test(value);
}
