// What a transaction is to do, as the user's function collects it, and the results of each operation after its commit. Nothing is sent here.

import { refuseUnknownOptions, TenureError } from "../../contract/errors.ts";
import { jsonMistake } from "../../contract/json-value.ts";
import { VALUE_BYTES_MAX } from "../../contract/limits.ts";
import type { Json } from "../../core/kit/json.ts";
import type { JobRequest } from "../job-views.ts";
import type { CommittedTransaction, TransactionOperation, TransactionRequest, TransactionResult } from "./views.ts";

/** Reading it throws TX_MISUSED before the transaction is committed. */
interface OperationHandle {
  /** Decided, but its island has not answered yet: its results are not known here. */
  readonly isPending: boolean;
}

export interface PutHandle extends OperationHandle {
  /** Null: pending. */
  readonly version: number | null;
}

export interface DeleteHandle extends OperationHandle {
  /** Null: there was nothing to delete, or it is pending. */
  readonly version: number | null;
}

export interface SubmitHandle extends OperationHandle {
  /** Null: pending. */
  readonly jobId: string | null;
}

export interface AcquireHandle extends OperationHandle {
  /** Null: pending. The lease runs from the commit on. */
  readonly epoch: number | null;
}

export interface VersionCondition {
  /** Only where the value has this version; 0: only where there is none. */
  readonly ifVersion?: number | undefined;
}

export interface TransactionAcquire {
  readonly session: string;
  readonly identity: string;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  readonly ttlMs: number;
}

/** At most one operation of each value and of each scope. */
export interface TransactionIsland {
  put(name: string, value: Json, condition?: VersionCondition): PutHandle;
  delete(name: string, condition?: VersionCondition): DeleteHandle;
  /** Only where the value has this version; 0: only where there is none. */
  check(name: string, version: number): void;
  submit(job: JobRequest): SubmitHandle;
  /** Only while this epoch is held. */
  release(scope: string, epoch: number): void;
  /** Only while nobody holds it. */
  acquire(scope: string, hold: TransactionAcquire): AcquireHandle;
}

export interface Transaction {
  /** An island, by its backend hash, or by the URL under which it is registered. */
  on(island: string): TransactionIsland;
  /** Only while this epoch of this scope is held, when it is decided: at home, and home is this island. */
  require(island: string, scope: string, epoch: number): void;
}

const CONDITION = { ifVersion: true } as const satisfies Readonly<Record<keyof VersionCondition, true>>;
const ACQUIRE = {
  session: true,
  identity: true,
  metadata: true,
  ttlMs: true,
} as const satisfies Readonly<Record<keyof TransactionAcquire, true>>;

export class Collector implements Transaction {
  readonly #operations = new Map<string, { readonly operation: TransactionOperation; readonly handle: Handle }[]>();
  readonly #require: { readonly island: string; readonly scope: string; readonly epoch: number }[] = [];
  #isClosed = false;

  /** As they were given, each once. */
  get islands(): readonly string[] {
    return [...new Set([...this.#operations.keys(), ...this.#require.map(({ island }) => island)])];
  }

  on(island: string): TransactionIsland {
    const add = (operation: TransactionOperation): Handle => this.#add(island, operation);
    return {
      put: (name, value, condition = {}) => {
        refuseUnknownOptions("put", condition, CONDITION);
        const mistake = jsonMistake(value, VALUE_BYTES_MAX);
        if (mistake !== null)
          throw new TenureError("BAD_REQUEST", `value ${mistake}. Nothing was sent.`, { field: "value" });
        return add({ op: "value.put", name, value, ...condition });
      },
      delete: (name, condition = {}) => {
        refuseUnknownOptions("delete", condition, CONDITION);
        return add({ op: "value.delete", name, ...condition });
      },
      check: (name, version) => void add({ op: "value.check", name, ifVersion: version }),
      submit: (job) => add({ op: "job.submit", job }),
      release: (scope, epoch) => void add({ op: "scope.release", scope, epoch }),
      acquire: (scope, hold) => {
        refuseUnknownOptions("acquire", hold, ACQUIRE);
        return add({ op: "scope.acquire", scope, ...hold });
      },
    };
  }

  require(island: string, scope: string, epoch: number): void {
    this.#open();
    this.#require.push({ island, scope, epoch });
  }

  /** Nothing is added any more. */
  close(): void {
    this.#isClosed = true;
    if (this.#operations.size === 0)
      throw new TenureError(
        "BAD_REQUEST",
        "the transaction has no operation: there is nothing to commit. Nothing was sent.",
      );
  }

  /** `hashOf`: of each of `islands`. */
  request(hashOf: (island: string) => string): Pick<TransactionRequest, "require" | "participants"> {
    const participants = new Map<string, TransactionOperation[]>();
    for (const [island, operations] of this.#operations) {
      const backendHash = hashOf(island);
      const all = participants.get(backendHash) ?? [];
      participants.set(backendHash, all);
      for (const { operation, handle } of operations) {
        handle.place(backendHash, all.length);
        all.push(operation);
      }
    }
    return {
      ...(this.#require.length > 0 && {
        require: this.#require.map(({ island, scope, epoch }) => ({ backendHash: hashOf(island), scope, epoch })),
      }),
      participants: [...participants].map(([backendHash, operations]) => ({ backendHash, operations })),
    };
  }

  committed(outcome: CommittedTransaction): void {
    for (const operations of this.#operations.values()) for (const { handle } of operations) handle.committed(outcome);
  }

  #add(island: string, operation: TransactionOperation): Handle {
    this.#open();
    const handle = new Handle();
    const known = this.#operations.get(island);
    if (known === undefined) this.#operations.set(island, [{ operation, handle }]);
    else known.push({ operation, handle });
    return handle;
  }

  #open(): void {
    if (this.#isClosed)
      throw misused("it was sent already, so nothing can be added: await everything inside of the function");
  }
}

class Handle implements PutHandle, DeleteHandle, SubmitHandle, AcquireHandle {
  #place: { readonly backendHash: string; readonly operation: number } | null = null;
  #result: { readonly of: TransactionResult | null } | null = null;

  get isPending(): boolean {
    return this.#of === null;
  }

  get version(): number | null {
    return this.#of?.version ?? null;
  }

  get epoch(): number | null {
    return this.#of?.epoch ?? null;
  }

  get jobId(): string | null {
    return this.#of?.jobId ?? null;
  }

  place(backendHash: string, operation: number): void {
    this.#place = { backendHash, operation };
  }

  committed({ participants }: CommittedTransaction): void {
    const island = participants.find(({ backendHash }) => backendHash === this.#place?.backendHash);
    this.#result = { of: island?.results[this.#place?.operation ?? 0] ?? null };
  }

  get #of(): TransactionResult | null {
    if (this.#result !== null) return this.#result.of;
    throw misused("it has no results: it is not committed. Look at the outcome's state first");
  }
}

function misused(why: string): TenureError {
  return new TenureError("TX_MISUSED", `client.transaction: ${why}.`);
}
