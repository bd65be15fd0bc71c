// An island's part of transactions, and what decides them, as scripts: what was asked is kept, and each test says what is answered.

import { TenureError } from "../../src/core/kit/errors.ts";
import type { BackendHash, TxnAnswer, TxnHeader, TxnPhase, TxnRequest } from "../../src/core/txn/model.ts";
import type {
  DeciderStats,
  TxnBody,
  TxnCaller,
  TxnDecide,
  TxnDecider,
  TxnOutcome,
  TxnParticipant,
  TxnsPage,
  TxnStats,
  TxnView,
} from "../../src/ports/transactions.ts";
import type { TestCluster } from "./test-cluster.ts";

export const HERE = "b".repeat(64);
export const THERE = "c".repeat(64);
export const TXN = "01890000-0000-7000-8000-000000000001";
export const CLIENT = "spiffe://tenure/tc/payments";

export const HEADER: TxnHeader = {
  id: TXN,
  home: THERE,
  participants: [HERE, THERE],
  digest: "d".repeat(64),
  timeoutMs: 5_000,
  by: CLIENT,
};

/** The id that is so many after the first. */
export function txnId(at: number): string {
  return `${TXN.slice(0, -8)}${at.toString(16).padStart(8, "0")}`;
}

export function viewOf(more: Partial<TxnView> = {}): TxnView {
  return {
    header: HEADER,
    phase: "prepared",
    atMs: 1_700_000_000_000,
    locks: ["value orders/cursor"],
    results: [],
    reason: null,
    undelivered: 0,
    waitsFor: [],
    isSettled: false,
    isInDoubt: true,
    ...more,
  };
}

export class TestParticipant implements TxnParticipant {
  readonly backendHash = HERE;
  readonly asked: TxnRequest[] = [];
  readonly replayed: (readonly [id: string, force: string | null])[] = [];
  views: TxnView[] = [];
  /** Throws what the port may reject with. */
  says: (request: TxnRequest) => TxnAnswer = prepared;
  readonly #cluster: TestCluster | undefined;

  constructor(cluster?: TestCluster) {
    this.#cluster = cluster;
  }

  async answer(request: TxnRequest): Promise<TxnAnswer> {
    this.#mustLead();
    this.asked.push(request);
    await Promise.resolve();
    return this.says(request);
  }

  get(id: string): TxnView | null {
    return this.views.find(({ header }) => header.id === id) ?? null;
  }

  list({ inDoubt, after, limit }: Parameters<TxnParticipant["list"]>[0]): TxnsPage {
    const all = this.views.filter(({ header, isInDoubt }) => header.id > (after ?? "") && (isInDoubt || !inDoubt));
    const transactions = all.slice(0, limit);
    return { transactions, next: all.length > limit ? transactions.at(-1)!.header.id : null };
  }

  async replay(id: string, force: "committed" | "rolled-back" | null): Promise<TxnPhase | null> {
    this.#mustLead();
    this.replayed.push([id, force]);
    return this.get(id) === null ? null : (force ?? "prepared");
  }

  stats(): TxnStats {
    const none = { prepared: 0, inDoubt: 0, oldestInDoubtMs: 0, kept: 0, undelivered: 0, staleTerms: 0 };
    return { ...none, decided: { committed: 0, "rolled-back": 0 } };
  }

  #mustLead(): void {
    if (this.#cluster?.role === "STANDBY") throw new TenureError("NOT_LEADER", "this node does not lead");
  }
}

/** To each request what may be answered to it. */
export function prepared(request: TxnRequest): TxnAnswer {
  switch (request.kind) {
    case "settled":
      return { kind: "settled", ids: request.ids };
    case "recover":
      return { kind: "recovered", open: [{ header: HEADER, phase: "prepared", waitsFor: [] }], next: null };
    case "stage":
      return { kind: "txn", phase: "staged", results: [], reason: null };
    default:
      return { kind: "txn", phase: "prepared", results: [], reason: null };
  }
}

export class TestDecider implements TxnDecider {
  readonly asked: (readonly [TxnBody | TxnDecide, TxnCaller])[] = [];
  readonly staged: (readonly [BackendHash, TxnRequest])[] = [];
  /** Throws what the port may reject with. */
  before: () => void = () => {};
  outcome: (body: TxnBody) => Partial<TxnOutcome> = () => ({});
  decided: TxnDecide["state"] = "commit";
  stages: TxnAnswer = { kind: "txn", phase: "staged", results: [], reason: null };

  async run(body: TxnBody, caller: TxnCaller): Promise<TxnOutcome> {
    this.asked.push([body, caller]);
    await Promise.resolve();
    this.before();
    const participants = body.participants.map(({ backendHash, operations }) => ({
      backendHash,
      state: "applied" as const,
      results: operations.map(() => ({ version: 7, epoch: null, jobId: null })),
    }));
    return { id: body.id, state: "committed", term: 3, home: HERE, reason: null, participants, ...this.outcome(body) };
  }

  async decide(request: TxnDecide, caller: TxnCaller): Promise<{ id: string; state: TxnDecide["state"] }> {
    this.asked.push([request, caller]);
    await Promise.resolve();
    this.before();
    return { id: request.id, state: this.decided };
  }

  async stage(target: BackendHash, request: TxnRequest): Promise<TxnAnswer> {
    this.staged.push([target, request]);
    await Promise.resolve();
    this.before();
    return this.stages;
  }

  stats(): DeciderStats {
    const outcomes = { committed: 0, "rolled-back": 0, unknown: 0, refused: 0 };
    return { outcomes, running: 0, forwarded: 0 };
  }
}
