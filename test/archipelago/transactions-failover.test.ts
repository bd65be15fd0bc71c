// Three islands lose the coordinator of transactions at named moments, its majority, and the way to each other: what was told holds, and what was not told is
// the same everywhere.

import { randomUUIDv7 } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { ArmedServer, plantPoints } from "../chaos/txn-kills.ts";
import type { TxnPoint } from "../chaos/txn-points.ts";
import type { TenureAnswer } from "../servers/tenure-node.ts";
import { ISLANDS_START_MS, PATIENT_MS, type TestIsland, TestIslands } from "./test-islands.ts";
import { put, TestTransactions, type TestTxn, type TxnReply } from "./test-transactions.ts";

const LIMIT_MS = 6 * PATIENT_MS;
const TIMEOUT_MS = 2_000;
const AGAIN_MS = 50;

let islands: TestIslands;
let transactions: TestTransactions;

beforeAll(async () => {
  islands = await TestIslands.make({ isProxied: true });
  plantPoints(islands);
  for (const island of islands.all) island.start();
  await islands.settled(ISLANDS_START_MS);
  transactions = await TestTransactions.of(islands);
}, ISLANDS_START_MS);

afterAll(() => islands?.end(), PATIENT_MS);

/** Whatever a test that failed has left behind. */
beforeEach(async () => {
  for (const island of islands.all) island.start();
  await islands.settled();
}, PATIENT_MS);

function onAll(name: string, value: unknown): TestTxn & { readonly txn_id: string } {
  const at = Object.fromEntries(islands.all.map(({ id }) => [id, [put(name, value)]]));
  return { txn_id: randomUUIDv7(), timeout_ms: TIMEOUT_MS, at };
}

function same(value: unknown): object {
  return Object.fromEntries(islands.all.map(({ id }) => [id, value]));
}

async function quiet(): Promise<void> {
  await islands.settled();
  await islands.until("nothing to be in doubt", PATIENT_MS, async () => {
    return (await transactions.inDoubt(islands.all)).length === 0;
  });
}

/** Asked again with the same id until somebody says how it ended. */
async function ended(island: TestIsland, txn: TestTxn): Promise<TxnReply> {
  let last: TxnReply | undefined;
  const isEnd = ({ state, error = "" }: TxnReply): boolean => state !== undefined || error === "txn_fanout_failed";
  const heard = islands.until(`how ${txn.txn_id} ended`, PATIENT_MS, async () => {
    last = (await transactions.run(island, txn).catch(() => null))?.body ?? last;
    return last !== undefined && isEnd(last);
  });
  await heard.catch((error: unknown) => {
    throw new Error(`the last answer: ${JSON.stringify(last)}\n${(error as Error).message}`);
  });
  return last!;
}

/** Killed there, while it coordinates a transaction over all three; everything runs again afterwards. */
async function killedAt(point: TxnPoint, name: string): Promise<{ txn: TestTxn; killed: TestIsland }> {
  const { island: killed } = await islands.leader();
  const armed = await ArmedServer.arm(killed, point);
  const txn = onAll(name, point);
  const answer = await transactions.run(killed, txn).catch(() => null);
  expect(answer?.body).toBeUndefined();
  await islands.until(`${killed.id} to be gone`, PATIENT_MS, () => armed.isGone);
  expect(armed.isKilled).toBe(true);
  return { txn, killed };
}

it(
  "non-leader forward with the leader unavailable: the client hears that nothing was done, or that nobody knows; the next leader does it",
  async () => {
    const { island, term } = await islands.leader();
    const others = islands.all.filter((one) => one !== island);
    const [follower] = others;
    await island.node.kill9();
    const at = Object.fromEntries(others.map(({ id }) => [id, [put("unavailable", 1)]]));
    const txn: TestTxn = { txn_id: randomUUIDv7(), timeout_ms: TIMEOUT_MS, at };
    const first = await transactions.run(follower!, txn);
    expect(["tc_unavailable", "tc_not_leader", "OUTCOME_UNKNOWN"], JSON.stringify(first.body)).toContain(
      first.body.error,
    );
    const reply = await ended(follower!, txn);
    expect(reply.state).toBe("committed");
    expect(reply.tc_term).toBeGreaterThan(term);
    island.start();
    await quiet();
  },
  LIMIT_MS,
);

it.each<[TxnPoint, "committed" | "rolled back" | "either"]>([
  ["before-prepare", "rolled back"],
  ["all-prepared", "rolled back"],
  ["home-committed", "committed"],
  ["before-commit-others", "committed"],
  ["first-applied", "committed"],
  ["before-answer", "committed"],
])(
  "decision fan-out interrupted: the coordinator is killed at %s; without asking again, it is %s everywhere",
  async (point, expected) => {
    const name = `interrupted-${point}`;
    const { txn, killed } = await killedAt(point, name);
    // Home is perhaps the island that was killed: nobody can know the decision before it is back.
    killed.start();
    await quiet();
    const found = await transactions.everywhere(islands.all, name);
    expect(found).toEqual(same(expected === "committed" ? point : null));
    const reply = await ended(islands.all[0]!, txn);
    // What nobody has ever prepared is done now, as it was asked for.
    if (expected === "committed") expect(reply.state).toBe("committed");
    await quiet();
    expect(await transactions.everywhere(islands.all, name)).toEqual(same(reply.state === "committed" ? point : null));
  },
  LIMIT_MS,
);

it(
  "apply with term fencing (stale term rejected): what a leader says in a term that is over is refused by every island, also after a restart",
  async () => {
    const { island, term } = await islands.leader();
    await island.node.kill9();
    const next = await islands.leader(island);
    island.start();
    await quiet();
    const view = (await next.island.view())!;
    const staleTo = (target: TestIsland, tc_term: number, tc_cluster_id: string): Promise<TenureAnswer<TxnReply>> => {
      const hashes = islands.all.map((one) => transactions.hash(one)).toSorted();
      const header = { txn_id: randomUUIDv7(), digest: "0".repeat(64), timeout_ms: TIMEOUT_MS, by: "test" };
      const body = {
        target_backend_hash: transactions.hash(target),
        tc_term,
        tc_cluster_id,
        txn: {
          ...header,
          home_backend_hash: hashes.find((one) => one !== transactions.hash(target)),
          participants: hashes,
        },
        operations: [put("stale", tc_term)],
      };
      return target.call<TxnReply>("/v1/txn/prepare", { body }, island);
    };
    const cluster = view.self.tc_cluster_id!;
    for (const target of islands.all) {
      expect((await staleTo(target, term, cluster)).body.error).toBe("tc_term_stale");
      expect((await staleTo(target, next.term + 1, `${cluster}0`)).body.error).toBe("tc_cluster_mismatch");
    }
    // All of them at once: what they refuse by is on their disks.
    await Promise.all(islands.all.map(({ node }) => node.kill9()));
    for (const one of islands.all) one.start();
    for (const target of islands.all) {
      await islands.until(`${target.id} to answer`, PATIENT_MS, async () => (await target.view()) !== null);
      await islands.until(`${target.id} to refuse`, PATIENT_MS, async () => {
        const { body } = await staleTo(target, term, cluster);
        if (body.state !== undefined) throw new Error(`${target.id} took a call of the term ${term}: ${body.state}`);
        return body.error === "tc_term_stale";
      });
    }
    await quiet();
    expect(await transactions.everywhere(islands.all, "stale")).toEqual(same(null));
  },
  LIMIT_MS,
);

it(
  "leader failover over several islands with transactions under way: each is everywhere or nowhere, as its client was told",
  async () => {
    const lanes = 6;
    const told = new Map<string, TxnReply | null>();
    const over = new AbortController();
    const client = async (lane: number): Promise<void> => {
      for (let n = 0; !over.signal.aborted; n++) {
        const name = `under-way-${lane}-${n}`;
        const island = islands.all[(lane + n) % islands.all.length]!;
        told.set(name, null);
        const answer = await transactions.run(island, onAll(name, lane)).catch(() => null);
        if (answer !== null) told.set(name, answer.body);
        // Nobody coordinates for a while.
        if (answer?.status !== 200) await sleep(AGAIN_MS);
      }
    };
    const clients = Promise.all(Array.from({ length: lanes }, (_, lane) => client(lane)));
    const committed = (): number => [...told.values()].filter((one) => one?.state === "committed").length;
    try {
      for (let kills = 0; kills < 3; kills++) {
        const before = committed();
        await islands.until("some to be committed", PATIENT_MS, () => committed() > before + lanes);
        const { island } = await islands.leader();
        await island.node.kill9();
        await islands.leader(island);
        island.start();
        await islands.settled();
      }
    } finally {
      over.abort();
      await clients;
    }
    await quiet();
    for (const [name, reply] of told) {
      const found = Object.values(await transactions.everywhere(islands.all, name));
      expect(new Set(found).size, `${name}: ${JSON.stringify(found)}`).toBe(1);
      const isThere = found[0] !== null;
      if (reply?.state === "committed") expect(isThere, name).toBe(true);
      const isDefinite = ["txn_fanout_failed", "tc_unavailable", "tc_not_leader"].includes(reply?.error ?? "");
      if (reply?.state === "rolled_back" || isDefinite)
        expect(isThere, `${name}: ${JSON.stringify(reply)}`).toBe(false);
    }
  },
  LIMIT_MS,
);

it(
  "quorum loss during a transaction: it ends everywhere alike, nobody coordinates meanwhile, and what was told holds",
  async () => {
    const { island } = await islands.leader();
    const others = islands.all.filter((one) => one !== island);
    for (const { node } of others) node.stop();
    const txn = onAll("without-quorum", 1);
    let first: TenureAnswer<TxnReply>;
    try {
      first = await transactions.run(island, txn);
      expect(["txn_fanout_failed", "OUTCOME_UNKNOWN"], JSON.stringify(first.body)).toContain(first.body.error);
      await islands.until(
        "the leader to step down",
        PATIENT_MS,
        async () => (await island.view())?.acts_in_term === null,
      );
      const second = await transactions.run(island, onAll("without-quorum-2", 1));
      expect(["tc_unavailable", "tc_not_leader"], JSON.stringify(second.body)).toContain(second.body.error);
    } finally {
      for (const { node } of others) node.cont();
    }
    await quiet();
    const found = Object.values(await transactions.everywhere(islands.all, "without-quorum"));
    expect(new Set(found).size).toBe(1);
    if (first.body.error === "txn_fanout_failed") expect(found[0]).toBeNull();
    const reply = await ended(island, txn);
    await quiet();
    expect(await transactions.everywhere(islands.all, "without-quorum")).toEqual(
      same(reply.state === "committed" ? 1 : null),
    );
    if (first.body.error === "txn_fanout_failed") expect(reply.state).not.toBe("committed");
    expect(await transactions.everywhere(islands.all, "without-quorum-2")).toEqual(same(null));
  },
  LIMIT_MS,
);
