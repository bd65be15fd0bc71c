// An island for tests: its applied state, its leader's head, and a log of records between them. Decides with the production code.

import { type TcFence, type TxnAnswer, type TxnContext, type TxnHeader } from "../txn/index.ts";
import {
  type BackendHash,
  decideTxn,
  type TxnChange,
  type TxnOperation,
  type TxnReason,
  type TxnRequest,
  type TxnRequire,
} from "../txn/index.ts";
import { wholeOf } from "../kit/pieces.ts";
import { seededRandom } from "../kit/random.ts";
import { newTxnId } from "../txn/test-ids.ts";
import { encodeRecord, StateFold, StateHead, type StateRecord } from "./index.ts";

/** 2027-01-01. */
export const NOW_MS = 1_798_761_600_000;
const CLUSTER = "coordinators";
export const REASON: TxnReason = { code: "txn_locked", message: "another one was first", backendHash: null };
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const random = seededRandom("ids of test islands");

/** Of the island with this letter, "a" to "f". */
export function hashOf(letter: string): BackendHash {
  return letter.repeat(64);
}

export function fence(term = 1, changes: Partial<TcFence> = {}): TcFence {
  return { clusterId: CLUSTER, term, recoveredBy: null, ...changes };
}

/** `participants`: letters. */
export function header(home: string, participants: string, changes: Partial<TxnHeader> = {}): TxnHeader {
  return {
    id: newTxnId(NOW_MS, random),
    home: hashOf(home),
    participants: participants.split("").map(hashOf),
    digest: "0d".repeat(32),
    timeoutMs: 5_000,
    by: "client",
    ...changes,
  };
}

export function put(name: string, text = "1", ifVersion: number | null = null): TxnOperation {
  return { kind: "value-put", name, data: new TextEncoder().encode(text), ifVersion };
}

export function acquire(scope: string, session = "s"): TxnOperation {
  return { kind: "scope-acquire", scope, session, identity: "i", metadata: {}, ttlMs: 1_000 };
}

export function release(scope: string, epoch: number): TxnOperation {
  return { kind: "scope-release", scope, epoch };
}

type JobSpec = Extract<TxnOperation, { readonly kind: "job-submit" }>["spec"];

export function job(changes: Partial<JobSpec> = {}): TxnOperation {
  const spec: JobSpec = {
    kind: "build",
    payload: { a: 1 },
    queue: "default",
    labels: {},
    platform: null,
    priority: 0,
    notBeforeMs: null,
    attemptsMax: 3,
    lossesMax: 3,
    backoff: { baseMs: 1, maxMs: 2 },
    timeoutMs: null,
    retentionMs: 1,
    concurrency: null,
    ...changes,
  };
  return { kind: "job-submit", spec };
}

export class Island {
  readonly self: BackendHash;
  readonly fold: StateFold;
  readonly head: StateHead<null>;
  /** Records that were appended, and applied or not. */
  readonly log: Uint8Array[] = [];
  nowMs = NOW_MS;
  observed: TxnContext["observed"] = null;
  problemOf: TxnContext["problemOf"] = () => null;
  readonly #underWay: StateRecord[] = [];
  #applied = 0;
  #jobs = 0;

  constructor(letter: string, fold = new StateFold(), from = 0) {
    this.self = hashOf(letter);
    this.fold = fold;
    this.head = new StateHead(fold);
    this.#applied = from;
    this.log.length = from;
  }

  get context(): TxnContext {
    const position = this.log.length + 1;
    const { self, nowMs: atMs, observed, problemOf } = this;
    const newJobId = (): string => `job-${++this.#jobs}`;
    return { self, atMs, position, place: this.head.placeOf(position), observed, newJobId, problemOf };
  }

  // ---- calls, as they are decided and written at once ----------------------------------------------------

  call(request: Exclude<TxnRequest, { readonly kind: "recover" }>): TxnAnswer {
    const decision = decideTxn(this.head, request, this.context);
    if (decision.kind === "record") this.write(decision.changes);
    return decision.answer;
  }

  prepare(of: TxnHeader, operations: readonly TxnOperation[] | null, by = fence()): TxnAnswer {
    return this.call({ kind: "prepare", header: of, operations, fence: by });
  }

  commit(
    of: TxnHeader,
    operations: readonly TxnOperation[] | null = null,
    require: readonly TxnRequire[] = [],
    by = fence(),
  ): TxnAnswer {
    return this.call({ kind: "commit", header: of, operations, require, fence: by });
  }

  rollback(of: TxnHeader, by = fence()): TxnAnswer {
    return this.call({ kind: "rollback", header: of, reason: REASON, fence: by });
  }

  inquire(of: TxnHeader): TxnAnswer {
    return this.call({ kind: "inquire", header: of });
  }

  stage(of: TxnHeader, operations: readonly TxnOperation[], expiresInMs = 10_000): TxnAnswer {
    const { id, home, by } = of;
    return this.call({ kind: "stage", id, home, by, operations, expiresInMs });
  }

  settled(from: BackendHash, ...ids: readonly string[]): TxnAnswer {
    return this.call({ kind: "settled", from, ids });
  }

  // ---- the log ---------------------------------------------------------------------------------------------

  /** Appended, and applied. Of no changes: nothing. */
  write(changes: readonly TxnChange[]): void {
    this.append(changes);
    this.applyAll();
  }

  append(changes: readonly TxnChange[]): void {
    if (changes.length === 0) return;
    const record: StateRecord = changes;
    this.log.push(encodeRecord(record));
    for (const change of record) this.head.push(change, this.log.length, null);
    this.#underWay.push(record);
  }

  /** False: all of it is applied. */
  applyNext(): boolean {
    const record = this.#underWay.shift();
    if (record === undefined) return false;
    const position = ++this.#applied;
    this.fold.apply({ position, epoch: 1, data: this.log[position - 1]! });
    for (const change of record) this.head.applied(change, position);
    return true;
  }

  applyAll(): void {
    while (this.applyNext());
  }

  /** What is not applied was refused by the log. */
  giveUp(): void {
    this.#underWay.length = 0;
    this.log.length = this.#applied;
    this.head.clear();
  }

  get underWay(): number {
    return this.#underWay.length;
  }

  get snapshot(): Uint8Array {
    return wholeOf(this.fold.snapshot());
  }

  // ---- others -----------------------------------------------------------------------------------------------

  grant(scope: string, session = "holder"): number {
    this.write([{ kind: "granted", scope, session, identity: "i", metadata: {}, ttlMs: 1_000, atMs: this.nowMs }]);
    return this.fold.scopes.get(scope)!.hold!.epoch;
  }

  put(name: string, text = "1"): void {
    const data = new TextEncoder().encode(text);
    this.write([{ kind: "value-put", name, data, fence: null, atMs: this.nowMs }]);
  }

  text(name: string): string | null {
    const state = this.fold.values.get(name);
    return state === undefined ? null : decoder.decode(state.data);
  }
}
