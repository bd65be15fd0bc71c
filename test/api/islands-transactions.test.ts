// What GET /v1/islands has of transactions that wait: as much as a person needs who has a key and no certificate, and never more than a page of it.

import { afterEach, beforeEach, expect, it } from "vitest";
import { ROUTES, shape } from "../../src/contract/index.ts";
import { createClient } from "../../src/entry/client.ts";
import type { TxnParticipant, TxnStats, TxnView } from "../../src/ports/transactions.ts";
import { startApi, type TestApi } from "./test-api.ts";
import { TestCoordinators } from "./test-coordinators.ts";

const HOME = "a".repeat(64);
const OWN = "b".repeat(64);
const OTHER = "c".repeat(64);
const NONE: TxnStats = {
  prepared: 0,
  inDoubt: 0,
  oldestInDoubtMs: 0,
  kept: 9,
  undelivered: 0,
  decided: { committed: 3, "rolled-back": 0 },
  staleTerms: 0,
};

function viewOf(at: number, change: Partial<TxnView> = {}): TxnView {
  const id = `01980000-0000-7000-8000-${String(at).padStart(12, "0")}`;
  return {
    header: { id, home: HOME, participants: [HOME, OWN], digest: "", timeoutMs: 5_000, by: "mover" },
    phase: "prepared",
    atMs: 1_700_000_000_000 + at,
    locks: ["value orders/cursor"],
    results: [],
    reason: null,
    undelivered: 0,
    waitsFor: [HOME],
    isSettled: false,
    isInDoubt: true,
    ...change,
  };
}

/** Nothing else of it is asked. */
function transactionsOf(views: readonly TxnView[], stats: Partial<TxnStats>): TxnParticipant {
  const shown: Pick<TxnParticipant, "list" | "stats"> = {
    stats: () => ({ ...NONE, ...stats }),
    list: ({ inDoubt, limit }) => {
      expect(inDoubt).toBe(true);
      const transactions = views.slice(0, limit);
      return { transactions, next: views.length > limit ? transactions.at(-1)!.header.id : null };
    },
  };
  return shown as TxnParticipant;
}

let coordinators: TestCoordinators;
beforeEach(() => {
  coordinators = new TestCoordinators({});
});
afterEach(() => coordinators.coordinator.stop());

async function shown(api: TestApi): Promise<unknown> {
  const { status, json } = await api.call("GET", "/v1/islands", undefined, "viewer-key");
  expect(status).toBe(200);
  expect(shape(ROUTES.islands.answer).check(json)).toEqual({ ok: true, value: json });
  return json?.["transactions"];
}

it("names what waits, for whom, and what is locked meanwhile", async () => {
  const prepared = viewOf(1);
  const decided = viewOf(2, { phase: "committed", locks: [], waitsFor: [OTHER] });
  const transactions = transactionsOf([prepared, decided], {
    prepared: 1,
    inDoubt: 1,
    oldestInDoubtMs: 40_000.5,
    undelivered: 2,
  });
  await using api = await startApi({ coordinators, transactions });
  expect(await shown(api)).toEqual({
    prepared: 1,
    in_doubt: 1,
    oldest_in_doubt_ms: 40_000.5,
    undelivered_jobs: 2,
    waiting: [
      {
        txn_id: prepared.header.id,
        home: HOME,
        phase: "prepared",
        at_ms: prepared.atMs,
        timeout_ms: 5_000,
        locks: ["value orders/cursor"],
        locks_count: 1,
        waits_for: [HOME],
      },
      {
        txn_id: decided.header.id,
        home: HOME,
        phase: "committed",
        at_ms: decided.atMs,
        timeout_ms: 5_000,
        locks: [],
        locks_count: 0,
        waits_for: [OTHER],
      },
    ],
    is_all: true,
  });
  const { transactions: view } = await createClient({ urls: [api.url], key: "viewer-key" }).coordinators.islands();
  expect(view?.waiting[1]).toMatchObject({ txnId: decided.header.id, waitsFor: [OTHER], locksCount: 0 });
});

it("of very many, and of one that locks very much, the first ones", async () => {
  const locks = Array.from({ length: 64 }, (_, at) => `value ${String(at).padStart(2, "0")}${"ä".repeat(127)}`);
  const many = Array.from({ length: 4_096 }, (_, at) => viewOf(at, { locks }));
  await using api = await startApi({
    coordinators,
    transactions: transactionsOf(many, { prepared: 4_096, inDoubt: 4_096 }),
  });
  const found = (await shown(api)) as { waiting: { locks: string[]; locks_count: number }[]; is_all: boolean };
  expect(found.waiting).toHaveLength(50);
  expect(found.waiting[0]).toMatchObject({ locks: locks.slice(0, 8), locks_count: 64 });
  expect(found.is_all).toBe(false);
  expect(JSON.stringify(found).length).toBeLessThan(128 * 1_024);
});

it("is null of a node that keeps none", async () => {
  await using api = await startApi({ coordinators });
  expect(await shown(api)).toBeNull();
});
