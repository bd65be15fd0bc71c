// The bank of `chaos txn`: accounts on every island and workloads that are somewhere, clients that transfer and move, and what the islands show of both once
// the clients are silent (txn-books.ts).
//
//   opened ──▶ (clients work ──▶ they end what they have begun ──▶ all is known ──▶ nothing is in doubt ──▶ audited) …
//
// A client that is told nothing asks again with the same id, at whichever island, and in the end hears how it ended: until somebody says so, a request that is
// still on its way may do it. Some transactions are made to fail.

import { randomUUIDv7 } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../src/core/kit/random.ts";
import type { TestIsland, TestIslands } from "../archipelago/test-islands.ts";
import {
  put,
  type ShownValue,
  type TestOperation,
  type TestTransactions,
  type TestTxn,
} from "../archipelago/test-transactions.ts";
import { waitFor } from "../servers/index.ts";
import type { TenureAnswer } from "../servers/tenure-node.ts";
import { type Account, type IslandBook, moveId, placeOfAccount, placesOfMove, type Workload } from "./txn-books.ts";
import type { TxnJudge, TxnTold } from "./txn-judge.ts";

const ACCOUNTS = 6;
const BALANCE = 1_000;
const WORKLOADS = ["work-1", "work-2"];
const TELLERS = 4;
const CALL_MS_MAX = 6_000;
const TIMEOUT_MS = 1_000;
const TRIES = 5;
const AGAIN_MS = 150;
const RESOLVED_MS_MAX = 60_000;
const THINK_MS_MAX = 20;
const SCOPE_TTL_MS = 600_000;
const EVENTS_PER_PAGE = 1_000;
/** It was rolled back, whichever call is answered so. */
const ROLLED_BACK = ["txn_fanout_failed"];
const WORDS_MAX = 200;
const REFUSED = [
  "tc_unavailable",
  "tc_not_leader",
  "tc_rm_unavailable",
  "txn_fanout_failed",
  "txn_expired",
  "OVERLOADED",
];

export interface TxnBankOptions {
  readonly islands: TestIslands;
  readonly transactions: TestTransactions;
  readonly judge: TxnJudge;
  readonly random: Random;
}

interface Read<T> {
  readonly version: number;
  readonly value: T;
}

export class TxnBank {
  readonly workloads = WORKLOADS;
  readonly sum: number;
  moved = 0;
  /** Nothing was done, as they were told at once: nobody coordinated. */
  refused = 0;
  /** Of which nobody knew how they had ended, while faults struck. */
  resolved = 0;
  readonly #options: TxnBankOptions;
  readonly #accounts: readonly (readonly [TestIsland, string])[];
  /** By island: the last event that was read. */
  readonly #sequences = new Map<string, number>();
  /** By name: what nobody knows. */
  readonly #open = new Map<string, TestTxn>();
  #isOpen = false;
  #clients: Promise<unknown> = Promise.resolve();

  constructor(options: TxnBankOptions) {
    this.#options = options;
    const names = Array.from({ length: ACCOUNTS }, (_, at) => `acct-${at + 1}`);
    this.#accounts = options.islands.all.flatMap((island) => names.map((name) => [island, name] as const));
    this.sum = this.#accounts.length * BALANCE;
  }

  async open(): Promise<void> {
    const { islands, transactions } = this.#options;
    const account: Account = { round: 0, balance: BALANCE, ids: [] };
    for (const [island, name] of this.#accounts)
      await this.#done(island, `/v1/values/${name}`, "PUT", { value: account });
    const first = islands.all[0]!;
    for (const workload of WORKLOADS) {
      const holder = moveId("start", first.id);
      const asked = { session: holder, identity: holder, ttl_ms: SCOPE_TTL_MS, wait_ms: 0 };
      const operator = await islands.issue("operator", "chaos");
      const acquired = await first.call(`/v1/scopes/${workload}/acquire`, { body: asked }, operator);
      if (acquired.body["granted"] !== true) throw new Error(`no scope: ${JSON.stringify(acquired.body)}`);
      const value: Workload = { round: 0, moves: [], holder };
      await this.#done(first, `/v1/values/${workload}`, "PUT", { value });
    }
    if (transactions.hashes.size !== islands.all.length) throw new Error("an island of more than one node");
  }

  begin(round: number): void {
    this.#isOpen = true;
    const tellers = Array.from({ length: TELLERS }, () => this.#client(() => this.#transfer(round)));
    const movers = WORKLOADS.map((workload) => this.#client(() => this.#move(workload, round)));
    this.#clients = Promise.all([...tellers, ...movers]);
  }

  /** They end what they have begun. */
  async end(): Promise<void> {
    this.#isOpen = false;
    await this.#clients;
  }

  /** Until somebody says how it ended, of each that nobody knows. All islands run. */
  async resolve(): Promise<void> {
    for (const [name, txn] of this.#open) {
      await waitFor(
        `how ${name} ended`,
        async () => (await this.#askOnce(name, txn, false)).told !== "unknown",
        RESOLVED_MS_MAX,
      );
      this.resolved++;
    }
    this.#open.clear();
  }

  /** Of every island; each must answer. */
  read(): Promise<readonly IslandBook[]> {
    return Promise.all(this.#options.islands.all.map((island) => this.#book(island)));
  }

  // ---- clients ------------------------------------------------------------------------------------------

  async #client(work: () => Promise<void>): Promise<void> {
    while (this.#isOpen) {
      await work().catch((error: unknown) => {
        // An island that is down can't be read.
        if (!isGone(error)) throw error;
      });
      await sleep(this.#options.random.below(THINK_MS_MAX));
    }
  }

  /** From one account to one or two others, mostly of other islands. */
  async #transfer(round: number): Promise<void> {
    const { random } = this.#options;
    const chosen = this.#choose();
    const found = await Promise.all(chosen.map(([island, name]) => this.#value<Account>(island, name)));
    const read = found.filter((one) => one !== null);
    if (read.length < chosen.length) return;
    const id = randomUUIDv7();
    const amount = 1 + random.below(10);
    const fails = random.chance(0.1) ? random.below(chosen.length) : -1;
    const at: Record<string, TestOperation[]> = {};
    chosen.forEach(([island, name], n) => {
      const { version, value } = read[n]!;
      const change = n === 0 ? -amount * (chosen.length - 1) : amount;
      const ids = value.round === round ? value.ids : [];
      const next: Account = { round, balance: value.balance + change, ids: [...ids, id] };
      (at[island.id] ??= []).push(put(name, next, n === fails ? version + 1_000_000 : version));
    });
    await this.#ask(
      id,
      chosen.map(([island, name]) => placeOfAccount(island.id, name)),
      { txn_id: id, timeout_ms: TIMEOUT_MS, at },
    );
  }

  /** Of three different islands, of two accounts anywhere. */
  #choose(): readonly (readonly [TestIsland, string])[] {
    const { random } = this.#options;
    const all = shuffled(this.#accounts, random);
    if (random.chance(0.6)) return all.slice(0, 2);
    return [...new Map(all.map((one) => [one[0].id, one])).values()].slice(0, 3);
  }

  async #move(workload: string, round: number): Promise<void> {
    const { islands, random, transactions } = this.#options;
    const places = await Promise.all(
      islands.all.map(async (island) => ({ island, read: await this.#value<Workload>(island, workload) })),
    );
    const here = places.filter(({ read }) => read !== null);
    // More than one is for the audit to find.
    if (here.length !== 1) return;
    const { island: from, read } = here[0]!;
    const to = random.pick(islands.all.filter((one) => one !== from));
    const { body: scope } = await from.call<{ readonly epoch?: number }>(
      `/v1/scopes/${workload}`,
      { limitMs: CALL_MS_MAX },
      transactions.certificate,
    );
    if (scope.epoch === undefined) return;
    const id = randomUUIDv7();
    const move = moveId(id, to.id);
    const moves = read!.value.round === round ? read!.value.moves : [];
    const value: Workload = { round, moves: [...moves, move], holder: move };
    const required = random.chance(0.1) ? scope.epoch + 1_000 : scope.epoch;
    const told = await this.#ask(move, placesOfMove(to.id), {
      txn_id: id,
      timeout_ms: TIMEOUT_MS,
      require: [{ backend_hash: transactions.hash(from), scope: workload, epoch: required }],
      at: {
        [from.id]: [
          { op: "scope.release", scope: workload, epoch: scope.epoch },
          { op: "value.delete", name: workload, if_version: read!.version },
        ],
        [to.id]: [
          { op: "scope.acquire", scope: workload, session: move, identity: move, ttl_ms: SCOPE_TTL_MS },
          put(workload, value, 0),
          { op: "job.submit", job: { kind: "move", payload: { move } } },
        ],
      },
    });
    if (told === "commit") this.moved++;
  }

  /** Told to the judge each time. */
  async #ask(name: string, places: readonly string[], txn: TestTxn): Promise<TxnTold> {
    const { judge, random } = this.#options;
    judge.start(name, places);
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const { told, isRefused } = await this.#askOnce(name, txn, attempt === 0);
      if (isRefused) {
        this.refused++;
        await sleep(AGAIN_MS);
      }
      if (told !== "unknown") {
        // Now and then it is asked once more, though it is known. What was refused would be done now.
        if (!isRefused && random.chance(0.05)) await this.#askOnce(name, txn, false);
        return told;
      }
      await sleep(AGAIN_MS);
    }
    this.#open.set(name, txn);
    return "unknown";
  }

  async #askOnce(name: string, txn: TestTxn, isFirst: boolean): Promise<Heard> {
    const { islands, judge, random, transactions } = this.#options;
    const island = random.pick(islands.running.length === 0 ? islands.all : islands.running);
    const answer = await transactions.run(island, txn, CALL_MS_MAX).catch((error: unknown) => {
      if (!isGone(error)) throw error;
      return error as Error;
    });
    const heard = heardIn(answer, isFirst);
    const words = answer instanceof Error ? answer.message : JSON.stringify(answer.body).slice(0, WORDS_MAX);
    judge.tell(name, heard.told, `${island.id}: ${words}`);
    return heard;
  }

  // ---- reading ------------------------------------------------------------------------------------------

  /** Null: there is none, or a transaction is about to change it. */
  async #value<T>(island: TestIsland, name: string): Promise<Read<T> | null> {
    const { certificate } = this.#options.transactions;
    const answer = await island.call<ShownValue>(`/v1/values/${name}`, { limitMs: CALL_MS_MAX }, certificate);
    const { version, value, pending_txn: pending } = answer.body;
    return answer.status !== 200 || (pending ?? null) !== null ? null : { version, value: value as T };
  }

  async #book(island: TestIsland): Promise<IslandBook> {
    const { values } = await this.#got<{ readonly values: readonly ShownValue[] }>(island, "/v1/values");
    const { scopes } = await this.#got<{ readonly scopes: readonly ShownScope[] }>(island, "/v1/scopes");
    const of = <T>(prefix: string): Map<string, Read<T>> =>
      new Map(
        values
          .filter(({ name }) => name.startsWith(prefix))
          .map(({ name, version, value }) => [name, { version, value: value as T }]),
      );
    const held = scopes.flatMap(({ scope, holder }) =>
      holder !== null && WORKLOADS.includes(scope) ? [[scope, holder.identity] as const] : [],
    );
    return {
      island: island.id,
      accounts: of<Account>("acct-"),
      workloads: of<Workload>("work-"),
      holders: new Map(held),
      submitted: await this.#submitted(island),
    };
  }

  async #submitted(island: TestIsland): Promise<readonly string[]> {
    const moves: string[] = [];
    for (;;) {
      const after = this.#sequences.get(island.id) ?? 0;
      const path = `/api/events/since/${after}?limit=${EVENTS_PER_PAGE}`;
      const { events, throughSequence } = await this.#got<EventsPage>(island, path);
      for (const { eventType, payload } of events)
        if (eventType === "build:submitted") moves.push(payload.spec?.payload?.move ?? "of nobody");
      this.#sequences.set(island.id, throughSequence);
      if (events.length < EVENTS_PER_PAGE) return moves;
    }
  }

  async #got<T extends object>(island: TestIsland, path: string): Promise<T> {
    const { status, body } = await island.call<T>(path, {}, this.#options.transactions.certificate);
    if (status !== 200) throw new Error(`${island.id} answered ${path} with ${status}: ${JSON.stringify(body)}`);
    return body;
  }

  async #done(island: TestIsland, path: string, method: "PUT", body: object): Promise<void> {
    const answer = await island.call(path, { method, body }, this.#options.transactions.certificate);
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  }
}

interface ShownScope {
  readonly scope: string;
  readonly holder: { readonly identity: string } | null;
}

interface EventsPage {
  readonly events: readonly {
    readonly eventType: string;
    readonly payload: { readonly spec?: { readonly payload?: { readonly move?: string } | null } };
  }[];
  readonly throughSequence: number;
}

interface Told {
  readonly state?: string;
  readonly error?: string;
}

interface Heard {
  readonly told: TxnTold;
  /** Nothing was done: it would be done if it were asked for once more. */
  readonly isRefused: boolean;
}

/** A refusal is one of this call: what an earlier one has done, or may do, is another matter. */
function heardIn(answer: TenureAnswer<Told> | Error, isFirst: boolean): Heard {
  if (answer instanceof Error) return { told: "unknown", isRefused: false };
  const { state, error = "" } = answer.body;
  if (answer.status === 200) return { told: state === "committed" ? "commit" : "rollback", isRefused: false };
  if (ROLLED_BACK.includes(error)) return { told: "rollback", isRefused: false };
  const isRefused = isFirst && REFUSED.includes(error);
  return { told: isRefused ? "rollback" : "unknown", isRefused };
}

/** Nobody answered: down, cut off, too slow, or killed meanwhile. */
function isGone(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error.name === "TimeoutError" || error.name === "AbortError") return true;
  const { code } = error as { readonly code?: unknown };
  return typeof code === "string" && /^(?:E[A-Z]+|UND_|ABORT_ERR)/.test(code);
}

function shuffled<T>(all: readonly T[], random: Random): readonly T[] {
  const left = [...all];
  return all.map(() => left.splice(random.below(left.length), 1)[0]!);
}
