// What islands ask of each other about transactions, and what clients ask, as calls of /v1/txn in the names of the wire, and back. Both ends use these
// functions and those of wire-answers.ts: the routes read what the driver writes, and the other way around.
//
// Bodies are checked before they come here, and unknown fields refused (contract/txn): what is recorded is what was understood.

import type { TxnBody, TxnDecide } from "../../ports/transactions.ts";
import { assertNever } from "../kit/assert.ts";
import { type ErrorCode, ERRORS } from "../kit/errors.ts";
import { TXN_MESSAGE_BYTES_MAX, UTF8_BYTES_PER_UNIT_MAX } from "../kit/limits.ts";
import { homeOf } from "./home.ts";
import { TXN_CALL_BYTES_MAX, TXN_ID_BYTES_MAX, TXN_REQUIRE_BYTES_MAX } from "./limits.ts";
import type { BackendHash, TcFence, TxnHeader, TxnOperation, TxnReason, TxnRequest, TxnRequire } from "./model.ts";
import {
  type OperationBody,
  operationBody,
  operationOf,
  type OperationReaders,
  operationsBytes,
} from "./wire-operations.ts";

export interface TxnWireCall {
  readonly method: "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
}

/** A call that is sent together with others, to one island. */
export type BatchedRequest = Exclude<TxnRequest, { readonly kind: "stage" | "recover" }>;
export type BatchedCall = BatchedRequest["kind"];

export interface HeaderBody {
  readonly txn_id: string;
  readonly home_backend_hash: string;
  readonly participants: readonly string[];
  readonly digest: string;
  readonly timeout_ms: number;
  readonly by: string;
}

export interface ReasonBody {
  readonly code: string;
  readonly message: string;
  readonly backend_hash?: string | null;
}

interface TargetBody {
  readonly target_backend_hash: string;
}

interface FenceBody {
  readonly tc_cluster_id: string;
  readonly tc_term: number;
  readonly recovered_by?: string;
}

interface OfTxn extends TargetBody {
  readonly txn: HeaderBody;
}

/** Absent: those that were staged. */
interface OperationsBody<Job> {
  readonly operations?: readonly OperationBody<Job>[];
}

export interface StageBody<Job> extends TargetBody {
  readonly txn_id: string;
  readonly home_backend_hash: string;
  readonly operations: readonly OperationBody<Job>[];
  readonly expires_in_ms: number;
}

export type PrepareBody<Job> = OfTxn & FenceBody & OperationsBody<Job>;
export interface CommitBody<Job> extends OfTxn, FenceBody, OperationsBody<Job> {
  readonly require?: readonly TxnRequire[];
}
export interface RollbackBody extends OfTxn, FenceBody {
  readonly reason: ReasonBody;
}
export type InquireBody = OfTxn;
export interface SettledBody extends TargetBody {
  readonly from_backend_hash: string;
  readonly ids: readonly string[];
}
export interface RecoverBody extends TargetBody, FenceBody {
  readonly after?: string | null;
}

export type BatchedBody<Job> =
  | { readonly call: "prepare"; readonly body: PrepareBody<Job> }
  | { readonly call: "commit"; readonly body: CommitBody<Job> }
  | { readonly call: "rollback"; readonly body: RollbackBody }
  | { readonly call: "inquire"; readonly body: InquireBody }
  | { readonly call: "settled"; readonly body: SettledBody };

/** What a client asks for. */
export interface ClientBody<Job> {
  readonly txn_id: string;
  readonly home?: string | null;
  readonly timeout_ms?: number | null;
  readonly require?: readonly { readonly backend_hash: string; readonly scope: string; readonly epoch: number }[];
  readonly participants: readonly {
    readonly backend_hash: string;
    readonly operations: readonly OperationBody<Job>[];
  }[];
}

export interface DecideBody {
  readonly txn_id: string;
  readonly home_backend_hash?: string | null;
  readonly state: TxnDecide["state"];
  readonly participants: readonly string[];
  /** Seconds. */
  readonly expires_at_unix?: number | null;
}

/** In lower case, as they arrive. A server says for whom it calls; nobody else is believed. */
export const ON_BEHALF_OF_HEADER = "x-tenure-on-behalf-of";
/** A call with it is forwarded no further. */
export const TXN_FORWARDED_HEADER = "x-tenure-tc-forwarded";

const PATH = "/v1/txn";

// ---- between islands ----------------------------------------------------------------------------------

export function requestCall(target: BackendHash, request: TxnRequest): TxnWireCall {
  const call = post(`${PATH}/${request.kind}`, requestBody(target, request));
  // Else it would go from node to node.
  return request.kind === "stage" ? { ...call, headers: forwardedFor(request.by) } : call;
}

/** At most TXN_BATCH_MAX, whose bytes together (`requestBytes`) are at most TXN_BATCH_BYTES_MAX. */
export function batchCall(target: BackendHash, requests: readonly BatchedRequest[]): TxnWireCall {
  const calls = requests.map((request) => ({ call: request.kind, body: requestBody(target, request) }));
  return post(`${PATH}/batch`, { target_backend_hash: target, requests: calls });
}

/** What its body has as JSON, about and at most. */
export function requestBytes(request: TxnRequest): number {
  switch (request.kind) {
    case "stage":
    case "prepare":
      return TXN_CALL_BYTES_MAX + operationsBytes(request.operations ?? []);
    case "commit":
      return (
        TXN_CALL_BYTES_MAX + request.require.length * TXN_REQUIRE_BYTES_MAX + operationsBytes(request.operations ?? [])
      );
    case "rollback":
    case "inquire":
    case "recover":
      return TXN_CALL_BYTES_MAX;
    case "settled":
      return TXN_CALL_BYTES_MAX + request.ids.length * TXN_ID_BYTES_MAX;
    default:
      return assertNever(request, "requestBytes");
  }
}

export function stageOf<Job>(body: StageBody<Job>, by: string, readers: OperationReaders<Job>): StageRequest {
  const { txn_id: id, home_backend_hash: home, expires_in_ms: expiresInMs } = body;
  return {
    kind: "stage",
    id,
    home,
    by,
    operations: body.operations.map((one) => operationOf(one, readers)),
    expiresInMs,
  };
}

type StageRequest = Extract<TxnRequest, { readonly kind: "stage" }>;

export function batchedOf<Job>(batched: BatchedBody<Job>, readers: OperationReaders<Job>): BatchedRequest {
  switch (batched.call) {
    case "prepare": {
      const { body } = batched;
      return {
        kind: "prepare",
        header: headerOf(body.txn),
        operations: operationsOf(body, readers),
        fence: fenceOf(body),
      };
    }
    case "commit": {
      const { body } = batched;
      return {
        kind: "commit",
        header: headerOf(body.txn),
        operations: operationsOf(body, readers),
        require: (body.require ?? []).map(({ scope, epoch }) => ({ scope, epoch })),
        fence: fenceOf(body),
      };
    }
    case "rollback": {
      const { body } = batched;
      return { kind: "rollback", header: headerOf(body.txn), reason: reasonOf(body.reason), fence: fenceOf(body) };
    }
    case "inquire":
      return { kind: "inquire", header: headerOf(batched.body.txn) };
    case "settled":
      return { kind: "settled", from: batched.body.from_backend_hash, ids: batched.body.ids };
    default:
      return assertNever(batched, "batchedOf");
  }
}

export function recoverOf(body: RecoverBody): Extract<TxnRequest, { readonly kind: "recover" }> {
  return { kind: "recover", fence: fenceOf(body), after: body.after ?? null };
}

function requestBody(target: BackendHash, request: TxnRequest): object {
  const where = { target_backend_hash: target };
  switch (request.kind) {
    case "stage": {
      const { id, home, operations, expiresInMs } = request;
      const about = { txn_id: id, home_backend_hash: home, ...where };
      return { ...about, operations: operations.map((one) => operationBody(one)), expires_in_ms: expiresInMs };
    }
    case "prepare":
      return { ...where, ...fenceBody(request.fence), txn: headerBody(request.header), ...operationsBody(request) };
    case "commit": {
      const { fence, header, require } = request;
      return { ...where, ...fenceBody(fence), txn: headerBody(header), require, ...operationsBody(request) };
    }
    case "rollback": {
      const { fence, header, reason } = request;
      return { ...where, ...fenceBody(fence), txn: headerBody(header), reason: reasonBody(reason) };
    }
    case "inquire":
      return { ...where, txn: headerBody(request.header) };
    case "settled":
      return { ...where, from_backend_hash: request.from, ids: request.ids };
    case "recover":
      return { ...where, ...fenceBody(request.fence), ...(request.after === null ? {} : { after: request.after }) };
    default:
      return assertNever(request, "requestBody");
  }
}

// ---- of clients ---------------------------------------------------------------------------------------

/** As the coordinators' leader is asked, by a node to which a client came. */
export function forwardedRun(body: TxnBody, by: string): TxnWireCall {
  const { id, home, timeoutMs, require, participants } = body;
  const client: ClientBody<object> = {
    txn_id: id,
    ...(home === null ? {} : { home }),
    ...(timeoutMs === null ? {} : { timeout_ms: timeoutMs }),
    require: require.map(({ backendHash, scope, epoch }) => ({ backend_hash: backendHash, scope, epoch })),
    participants: participants.map(({ backendHash, operations }) => ({
      backend_hash: backendHash,
      operations: operations.map((one) => operationBody(one)),
    })),
  };
  return { ...post(PATH, client), headers: forwardedFor(by) };
}

export function forwardedDecide({ id, home, state, participants, expiresAtMs }: TxnDecide, by: string): TxnWireCall {
  const expires = expiresAtMs === null ? {} : { expires_at_unix: Math.ceil(expiresAtMs / 1_000) };
  const body: DecideBody = { txn_id: id, home_backend_hash: home, state, participants, ...expires };
  return { ...post(`${PATH}/decide`, body), headers: forwardedFor(by) };
}

export function txnBodyOf<Job>(body: ClientBody<Job>, readers: OperationReaders<Job>): TxnBody {
  return {
    id: body.txn_id,
    home: body.home ?? null,
    timeoutMs: body.timeout_ms ?? null,
    require: (body.require ?? []).map(({ backend_hash: backendHash, scope, epoch }) => ({ backendHash, scope, epoch })),
    participants: body.participants.map(({ backend_hash: backendHash, operations }) => ({
      backendHash,
      operations: operations.map((one) => operationOf(one, readers)),
    })),
  };
}

/** Without a home: of what was staged nothing is known here, so it is the smallest participant. */
export function txnDecideOf(body: DecideBody): TxnDecide {
  const { txn_id: id, state, participants, expires_at_unix: expires = null } = body;
  const named = participants.map((backendHash) => ({ backendHash, operations: [] }));
  const home = homeOf({ home: body.home_backend_hash ?? null, require: [], participants: named }) ?? "";
  return { id, home, state, participants, expiresAtMs: expires === null ? null : expires * 1_000 };
}

// ---- parts --------------------------------------------------------------------------------------------

export function headerBody({ id, home, participants, digest, timeoutMs, by }: TxnHeader): HeaderBody {
  return { txn_id: id, home_backend_hash: home, participants, digest, timeout_ms: timeoutMs, by };
}

export function headerOf(body: HeaderBody): TxnHeader {
  const { txn_id: id, home_backend_hash: home, participants, digest, timeout_ms: timeoutMs, by } = body;
  return { id, home, participants, digest, timeoutMs, by };
}

export function reasonBody({ code, message, backendHash }: TxnReason): Required<ReasonBody> {
  return { code, message: shortened(message), backend_hash: backendHash };
}

/** A code of a later release is one that nobody here can tell from a fault. */
export function reasonOf({ code, message, backend_hash: backendHash = null }: ReasonBody): TxnReason {
  return { code: isCode(code) ? code : "INTERNAL", message: shortened(message), backendHash };
}

export function isCode(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(ERRORS, code);
}

const MESSAGE_LENGTH = Math.floor(TXN_MESSAGE_BYTES_MAX / UTF8_BYTES_PER_UNIT_MAX);

/** Half of a pair would be no text any more. */
function shortened(message: string): string {
  const text = message.length <= MESSAGE_LENGTH ? message : `${message.slice(0, MESSAGE_LENGTH - 1)}…`;
  return text.toWellFormed();
}

function fenceBody({ clusterId, term, recoveredBy }: TcFence): FenceBody {
  return {
    tc_cluster_id: clusterId,
    tc_term: term,
    ...(recoveredBy === null ? {} : { recovered_by: recoveredBy }),
  };
}

function fenceOf({ tc_cluster_id: clusterId, tc_term: term, recovered_by: recoveredBy }: FenceBody): TcFence {
  return { clusterId, term, recoveredBy: recoveredBy ?? null };
}

function operationsBody({ operations }: OfOperations): OperationsBody<object> {
  return operations === null ? {} : { operations: operations.map((one) => operationBody(one)) };
}

interface OfOperations {
  readonly operations: readonly TxnOperation[] | null;
}

function operationsOf<Job>({ operations }: OperationsBody<Job>, readers: OperationReaders<Job>) {
  return operations === undefined ? null : operations.map((one) => operationOf(one, readers));
}

function forwardedFor(by: string): Readonly<Record<string, string>> {
  return { [TXN_FORWARDED_HEADER]: "1", [ON_BEHALF_OF_HEADER]: by };
}

function post(path: string, body: object): TxnWireCall {
  return { method: "POST", path, headers: {}, body };
}
