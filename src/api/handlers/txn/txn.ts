// The routes of transactions over islands: what clients ask of whoever decides, what islands ask of each other, and what a person looks at.

import { type Route, ROUTES, specOf, type TXN_ROUTES, TXNS_SHOWN_PER_PAGE_MAX } from "../../../contract/index.ts";
import { canonicalJson } from "../../../core/events/index.ts";
import { INTEGER_MAX, TXN_BYTES_MAX } from "../../../core/kit/limits.ts";
import type { BackendHash, TxnAnswer, TxnOperation, TxnRequest } from "../../../core/txn/model.ts";
import { answerBody, decidedBody, outcomeBody, resultBody, stateShown } from "../../../core/txn/wire-answers.ts";
import {
  type BatchedBody,
  type BatchedCall,
  batchedOf,
  reasonBody,
  recoverOf,
  stageOf,
  txnBodyOf,
  txnDecideOf,
} from "../../../core/txn/wire-calls.ts";
import { type OperationReaders, operationsBytes } from "../../../core/txn/wire-operations.ts";
import type { TxnDecider, TxnParticipant, TxnView } from "../../../ports/transactions.ts";
import { checked } from "../../checked.ts";
import { PAGE_CHARACTERS_MAX } from "../../limits.ts";
import { answerTo, Refusal } from "../../refusal.ts";
import type { Answer, Call, Handlers, Service } from "../handler.ts";
import { beFresh } from "../reads.ts";
import type { Caller } from "../../traffic/callers.ts";
import { mustBeOf } from "./txn-reporter.ts";
import { noPart, notByForce, otherIsland, toldOn, tooLarge, txnCallerOf, unknownHere } from "./txn-refusals.ts";

type Ids = keyof typeof TXN_ROUTES;
type Job = Parameters<typeof specOf>[0];

const encoder = new TextEncoder();
const READERS: OperationReaders<Job> = {
  data: (value) => encoder.encode(canonicalJson(value, INTEGER_MAX)),
  spec: specOf,
};

export function txnHandlers(service: Service): Pick<Handlers, Ids> {
  return {
    txn: (call) => run(service, call),
    stageTxn: (call) => stage(service, call),
    decideTxn: (call) => decide(service, call),
    prepareTxn: ({ caller, body }) => one(service, caller, { call: "prepare", body }),
    commitTxn: ({ caller, body }) => one(service, caller, { call: "commit", body }),
    rollbackTxn: ({ caller, body }) => one(service, caller, { call: "rollback", body }),
    inquireTxn: ({ caller, body }) => one(service, caller, { call: "inquire", body }),
    settledTxns: ({ caller, body }) => one(service, caller, { call: "settled", body }),
    recoverTxns: ({ body }) => answer(service, body.target_backend_hash, recoverOf(body)),
    batchTxns: (call) => batch(service, call),
    replayTxn: (call) => replay(service, call),
    txns: (call) => list(service, call),
    txnById: async ({ params: { id }, query }) => {
      const transactions = participant(service);
      await beFresh(service, query);
      const found = transactions.get(id);
      if (found === null) throw unknownHere(id);
      return { body: shown(found) };
    },
  };
}

function participant({ transactions, nodeId }: Service): TxnParticipant {
  if (transactions === undefined) throw noPart(nodeId);
  return transactions;
}

function decider({ txnDecider, nodeId }: Service): TxnDecider {
  if (txnDecider === undefined) throw noPart(nodeId);
  return txnDecider;
}

// ---- what clients ask ---------------------------------------------------------------------------------

async function run(service: Service, call: Call<"txn">): Promise<Answer> {
  const decides = decider(service);
  const body = txnBodyOf(call.body, READERS);
  const bytes = mustFit(body.participants.flatMap(({ operations }) => operations));
  const outcome = await answerOrRefusal(decides.run({ ...body, bytes }, txnCallerOf(call)));
  return { body: outcomeBody(outcome) };
}

/** A call that was forwarded is for this island; else whoever decides knows the way to the one that is meant. */
async function stage(service: Service, call: Call<"stageTxn">): Promise<Answer> {
  const { by, isForwarded } = txnCallerOf(call);
  const target = call.body.target_backend_hash;
  if (isForwarded) return answer(service, target, stageOf(call.body, by, READERS));
  const decides = decider(service);
  const request = stageOf(call.body, by, READERS);
  mustFit(request.operations);
  return answered(request, await answerOrRefusal(decides.stage(target, request)));
}

async function decide(service: Service, call: Call<"decideTxn">): Promise<Answer> {
  const decided = await answerOrRefusal(decider(service).decide(txnDecideOf(call.body), txnCallerOf(call)));
  return { body: decidedBody(decided) };
}

async function answerOrRefusal<T>(result: Promise<T>): Promise<T> {
  try {
    return await result;
  } catch (error) {
    throw toldOn(error);
  }
}

function mustFit(operations: readonly TxnOperation[]): number {
  const bytes = operationsBytes(operations);
  if (bytes > TXN_BYTES_MAX) throw tooLarge(bytes, TXN_BYTES_MAX);
  return bytes;
}

// ---- what islands ask ---------------------------------------------------------------------------------

async function one(service: Service, caller: Caller, batched: BatchedBody<Job>): Promise<Answer> {
  if (batched.call === "settled") mustBeOf(batched.body.from_backend_hash, caller, service.coordinators);
  return answer(service, batched.body.target_backend_hash, batchedOf(batched, READERS));
}

async function answer(service: Service, target: BackendHash, request: TxnRequest): Promise<Answer> {
  const island = participant(service);
  if (target !== island.backendHash) throw otherIsland(target, island.backendHash);
  if ("operations" in request) mustFit(request.operations ?? []);
  return answered(request, await island.answer(request));
}

function answered(request: TxnRequest, said: TxnAnswer): Answer {
  if (said.kind === "refused") throw new Refusal(said.code, said.message);
  return { body: answerBody(idOf(request), said) };
}

function idOf(request: TxnRequest): string | null {
  if (request.kind === "stage") return request.id;
  return "header" in request ? request.header.id : null;
}

const ROUTE_OF = {
  prepare: ROUTES.prepareTxn,
  commit: ROUTES.commitTxn,
  rollback: ROUTES.rollbackTxn,
  inquire: ROUTES.inquireTxn,
  settled: ROUTES.settledTxns,
} as const satisfies Readonly<Record<BatchedCall, Route>>;

/**
 * They begin in their order; what is wrong with one of them is its own answer, a fault too: the others have changed something, and must be answered. To
 * read all of them may take a tenth of a second (1 MiB of small arrays): each begins when the slice of a turn has room for it.
 */
async function batch(service: Service, call: Call<"batchTxns">): Promise<Answer> {
  const { body, enterTurn, gone } = call;
  const { backendHash } = participant(service);
  const target = body.target_backend_hash;
  if (target !== backendHash) throw otherIsland(target, backendHash);
  const answers: Promise<Answer>[] = [];
  for (const request of body.requests) {
    // Also where it may go on at once: what the one before has begun is decided in a microtask, and counts for this slice.
    await enterTurn();
    // Whoever sent them has given them up, and sends them again.
    if (gone.aborted) break;
    answers.push(oneOf(service, call, request));
  }
  return { body: { answers: await Promise.all(answers) } };
}

type Batched = Call<"batchTxns">["body"]["requests"][number];

/** Never rejects. */
async function oneOf(
  service: Service,
  { caller, onFault }: Call<"batchTxns">,
  { call, body: sent }: Batched,
): Promise<Answer> {
  try {
    const { body: wanted, fieldErrors }: Route = ROUTE_OF[call];
    const asked = { call, body: checked(wanted, sent, "the body", fieldErrors) } as BatchedBody<Job>;
    return { status: 200, body: (await one(service, caller, asked)).body };
  } catch (error) {
    const refused = answerTo(error, "writing", false, () => service.cluster.view());
    if (refused.isFault) onFault(error);
    return { status: refused.status, body: { ...refused.body, detail: refused.body.message } };
  }
}

// ---- for people ---------------------------------------------------------------------------------------

async function replay(service: Service, { caller, body }: Call<"replayTxn">): Promise<Answer> {
  const { txn_id: id, force } = body;
  const isOperator = caller.how === "certificate" && caller.identity?.kind === "operator";
  if (force !== undefined && !isOperator) throw notByForce(caller.name);
  const forced = force === undefined ? null : force === "committed" ? "committed" : "rolled-back";
  const phase = await participant(service).replay(id, forced);
  if (phase === null) throw unknownHere(id);
  return { body: { txn_id: id, state: stateShown(phase) } };
}

async function list(service: Service, { query, inTurn }: Call<"txns">): Promise<Answer> {
  const transactions = participant(service);
  await beFresh(service, query);
  const { in_doubt: inDoubt = false, after = null, limit = TXNS_SHOWN_PER_PAGE_MAX } = query;
  return inTurn(async () => {
    const page = transactions.list({ inDoubt, after, limit });
    const rows: string[] = [];
    let characters = 0;
    for (const view of page.transactions) {
      if (characters >= PAGE_CHARACTERS_MAX) break;
      const row = JSON.stringify(shown(view));
      characters += row.length;
      rows.push(row);
    }
    const next = rows.length === page.transactions.length ? page.next : page.transactions[rows.length - 1]!.header.id;
    const body = `{"transactions":[${rows.join(",")}],"next":${JSON.stringify(next)}}`;
    return { body, contentType: "application/json; charset=utf-8" };
  });
}

function shown({ header, phase, atMs, locks, results, reason, ...view }: TxnView): object {
  return {
    txn_id: header.id,
    home: header.home,
    participants: header.participants,
    timeout_ms: header.timeoutMs,
    by: header.by,
    state: stateShown(phase),
    at_ms: atMs,
    locks,
    results: results.map((result) => resultBody(result)),
    reason: reason && reasonBody(reason),
    undelivered: view.undelivered,
    waits_for: view.waitsFor,
    settled: view.isSettled,
    in_doubt: view.isInDoubt,
  };
}
