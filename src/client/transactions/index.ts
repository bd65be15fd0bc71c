// Transactions over islands: all of it is committed, or nothing. What is to be done is collected first, and sent in one request under one id.
//
// The outcome is one of three, and is never guessed: committed, rolled back, unknown. An unknown one is asked about with the same id and content
// (`transactions.run`), which never does it twice.

import { refuseUnknownOptions, TenureError } from "../../contract/errors.ts";
import { type Caller, type CallOptions, readQuery } from "../caller.ts";
import {
  TRANSACTION_CALL_MS,
  TRANSACTION_PAGES_MAX,
  TRANSACTION_PAUSE_MS_MAX,
  TRANSACTION_PAUSE_MS_MIN,
} from "../limits.ts";
import { Collector, type Transaction } from "./collect.ts";
import { hashesOf } from "./islands.ts";
import { newTransactionId } from "./new-id.ts";
import { type Preferred, runTransaction } from "./run.ts";
import type {
  CommittedTransaction,
  RolledBackTransaction,
  TransactionOutcome,
  TransactionRequest,
  TransactionView,
  UnknownTransaction,
} from "./views.ts";

export interface TransactionOptions extends CallOptions {
  /**
   * The island whose record decides, as `on` takes one. Left out: that of the first `require`, else one that releases a scope, else any: the one with the
   * smallest hash.
   */
  readonly home?: string | undefined;
  /** How long islands may keep their locks before they ask home; 5 seconds. */
  readonly lockMs?: number | undefined;
  /** One that you keep, so that after a crash you can ask about it. Left out: a new one. */
  readonly id?: string | undefined;
  /**
   * How often to try, each time under a new id and with what the function collects anew, where others hold a lock (`txn_locked`); 1. All of them within
   * `timeoutMs`.
   */
  readonly attempts?: number | undefined;
}

export interface ClientTransactions {
  /** The same request as before is answered as before: committed once, however often it is run. */
  run(request: TransactionRequest, options?: CallOptions): Promise<TransactionOutcome>;
  /** As the island of this client's servers knows it. Null: it is unknown there, which says nothing about other islands. */
  get(id: string, options?: TransactionReadOptions): Promise<TransactionView | null>;
  /** By id, oldest first. In doubt: prepared and not decided, or decided there as home and not done everywhere. */
  list(options?: TransactionsQuery): AsyncGenerator<TransactionView, void, void>;
  /**
   * Has the island ask home now. `force` ends one whose home is gone for good: other islands may have ended it the other way, so look there first.
   * Null: it is unknown there.
   */
  replay(id: string, options?: ReplayOptions): Promise<TransactionView["state"] | null>;
}

export interface TransactionReadOptions extends CallOptions {
  /** "linearizable" (default): nothing that was decided before this call is missing. "local": as whichever node answers first has it, also while nobody leads. */
  readonly consistency?: "linearizable" | "local" | undefined;
}

export interface TransactionsQuery extends TransactionReadOptions {
  readonly inDoubt?: boolean | undefined;
}

export interface ReplayOptions extends CallOptions {
  readonly force?: "commit" | "rollback" | undefined;
}

export type Outcome<T> = (CommittedTransaction & { readonly result: T }) | RolledBackTransaction | UnknownTransaction;

export interface TransactionsPart {
  readonly transactions: ClientTransactions;
  /**
   * Runs the function, which only collects, then sends what it has collected, at once. `result`: what the function returns; handles of operations in it
   * have their results once the state is "committed".
   *
   * Rejects where it certainly was not done and never will be: refused as a request, or no node could be asked.
   */
  transaction<T>(collect: (t: Transaction) => T | Promise<T>, options?: TransactionOptions): Promise<Outcome<T>>;
}

const FORCED = { commit: "committed", rollback: "rolled_back" } as const;

const OPTIONS = {
  home: true,
  lockMs: true,
  id: true,
  attempts: true,
  signal: true,
  timeoutMs: true,
  attemptMs: true,
} as const satisfies Readonly<Record<keyof TransactionOptions, true>>;

export function transactionsOf(caller: Caller): TransactionsPart {
  const preferred: Preferred = { url: undefined };
  return {
    transaction: (collect, options = {}) => collected(caller, collect, options, preferred),
    transactions: {
      run: (request, options = {}) => runTransaction(caller, request, options, preferred),
      get: async (id, options = {}) => {
        try {
          return viewOf(await caller.readJson<Said>(`/v1/txn/${encodeURIComponent(id)}${queryOf(options)}`, options));
        } catch (error) {
          if (TenureError.is(error) && error.code === "txn_not_found") return null;
          throw error;
        }
      },
      list: (options = {}) => listed(caller, options),
      replay: async (id, { force, ...options } = {}) => {
        const body = { txn_id: id, ...(force !== undefined && { force: FORCED[force] }) };
        const request = { method: "POST", path: "/v1/txn/replay", body, isIdempotent: true } as const;
        try {
          return viewOf(await caller.bodyOf<Said>(await caller.mutate(request, options))).state;
        } catch (error) {
          if (TenureError.is(error) && error.code === "txn_not_found") return null;
          throw error;
        }
      },
    },
  };
}

async function collected<T>(
  caller: Caller,
  collect: (t: Transaction) => T | Promise<T>,
  options: TransactionOptions,
  preferred: Preferred,
): Promise<Outcome<T>> {
  // A misspelt one would be a default.
  refuseUnknownOptions("transaction", options, OPTIONS);
  const { home, lockMs, id, attempts = 1, signal, attemptMs, timeoutMs = TRANSACTION_CALL_MS } = options;
  if (id !== undefined && attempts > 1)
    throw new TenureError(
      "CONFIG_INVALID",
      "transaction: with an `id` of your own there is one attempt, because each has another id.",
    );
  const timeLeft = caller.timeLeft({ timeoutMs });
  for (let attempt = 1; ; attempt++) {
    const collector = new Collector();
    const result = await collect(collector);
    collector.close();
    const call = { signal, attemptMs, timeoutMs: timeLeft() };
    const hashOf = await hashesOf(caller, [...collector.islands, ...(home === undefined ? [] : [home])], call);
    const request: TransactionRequest = {
      id: id ?? newTransactionId(),
      ...(home !== undefined && { home: hashOf(home) }),
      ...(lockMs !== undefined && { timeoutMs: lockMs }),
      ...collector.request(hashOf),
    };
    const within = { ...call, timeoutMs: timeLeft() };
    const outcome = await runTransaction(caller, request, within, preferred, id === undefined);
    if (outcome.state === "committed") {
      collector.committed(outcome);
      return { ...outcome, result };
    }
    if (outcome.state === "unknown" || outcome.reason.code !== "txn_locked" || attempt >= attempts) return outcome;
    const pauseMs = pauseAfter(attempt);
    if (timeLeft() <= pauseMs) return outcome;
    await pause(pauseMs, signal);
  }
}

/** Jittered: whoever met at a lock does not meet there again. */
function pauseAfter(attempt: number): number {
  const ceilingMs = Math.min(TRANSACTION_PAUSE_MS_MAX, TRANSACTION_PAUSE_MS_MIN * 2 ** attempt);
  const [drawn = 0] = crypto.getRandomValues(new Uint32Array(1));
  return Math.ceil((ceilingMs * (1 + drawn / 2 ** 32)) / 2);
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted === true) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

/** As it is on the wire, in this spelling. */
type Said = Omit<TransactionView, "id" | "state" | "isSettled" | "isInDoubt"> & {
  readonly txnId: string;
  readonly state: Exclude<TransactionView["state"], "rolled-back"> | "rolled_back";
  readonly settled: boolean;
  readonly inDoubt: boolean;
};

function viewOf({ txnId: id, state, settled: isSettled, inDoubt: isInDoubt, ...rest }: Said): TransactionView {
  return { id, state: state === "rolled_back" ? "rolled-back" : state, ...rest, isSettled, isInDoubt };
}

function queryOf(
  { consistency = "linearizable" }: TransactionReadOptions,
  more: Readonly<Record<string, string>> = {},
): string {
  return readQuery({ consistency: consistency === "local" ? undefined : consistency }, more);
}

async function* listed(
  caller: Caller,
  { inDoubt = false, ...options }: TransactionsQuery,
): AsyncGenerator<TransactionView, void, void> {
  let after: string | null = null;
  for (let page = 0; page < TRANSACTION_PAGES_MAX; page++) {
    const query = queryOf(options, { ...(inDoubt && { in_doubt: "true" }), ...(after !== null && { after }) });
    const found: Page = await caller.readJson<Page>(`/v1/txn${query}`, options);
    yield* found.transactions.map((one) => viewOf(one));
    if (found.next === null) return;
    if (after !== null && found.next <= after) break;
    after = found.next;
  }
  throw new TenureError("BACKEND_UNSUPPORTED", "the server lists transactions without an end; is it a Tenure server?");
}

interface Page {
  readonly transactions: readonly Said[];
  readonly next: string | null;
}
