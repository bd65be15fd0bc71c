// Transactions over five islands, as a client asks for them at any of these: committed everywhere, or nowhere, with the reason.

import { randomUUIDv7 } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ISLANDS_START_MS, PATIENT_MS, type TestIsland, TestIslands } from "./test-islands.ts";
import { put, TestTransactions } from "./test-transactions.ts";

const LIMIT_MS = 4 * PATIENT_MS;

let islands: TestIslands;
let transactions: TestTransactions;

beforeAll(async () => {
  islands = await TestIslands.start({ islands: 5 });
  transactions = await TestTransactions.of(islands);
}, ISLANDS_START_MS);

afterAll(() => islands?.end(), PATIENT_MS);

/** Each of them says the same. */
function everywhere(value: unknown, those: readonly TestIsland[] = islands.all): object {
  return Object.fromEntries(those.map(({ id }) => [id, value]));
}

it(
  "non-leader forwarding success: a node that does not lead the coordinators forwards it to the one that does",
  async () => {
    const { term } = await islands.leader();
    const [follower, other] = await islands.followers();
    const at = { [follower!.id]: [put("forwarded", 1)], [other!.id]: [put("forwarded", 2)] };
    const { status, body } = await transactions.run(follower!, { at });
    expect([status, body.state, body.tc_term], JSON.stringify(body)).toEqual([200, "committed", term]);
    expect(body.participants!.map(({ state }) => state)).toEqual(["applied", "applied"]);
    expect(await transactions.everywhere([follower!, other!], "forwarded")).toEqual({
      [follower!.id]: 1,
      [other!.id]: 2,
    });
  },
  LIMIT_MS,
);

it(
  "fan-out to many: five islands write values, take scopes and get jobs in one transaction; once more with the same id, it is done no second time",
  async () => {
    const { island } = await islands.leader();
    const id = randomUUIDv7();
    const operations = [
      put("many", "there"),
      put("many/other", [1, 2, 3]),
      { op: "scope.acquire", scope: "many", session: id, identity: "many", ttl_ms: 600_000 },
      { op: "job.submit", job: { kind: "many", payload: { id } } },
    ];
    const txn = { txn_id: id, at: Object.fromEntries(islands.all.map((one) => [one.id, operations])) };
    const first = await transactions.run(island, txn);
    expect(first.body.state, JSON.stringify(first.body)).toBe("committed");
    expect(first.body.participants).toHaveLength(5);
    for (const { state, results } of first.body.participants!) {
      expect(state).toBe("applied");
      expect(results).toMatchObject([
        { version: expect.any(Number) },
        { version: expect.any(Number) },
        { epoch: expect.any(Number) },
        { job_id: expect.any(String) },
      ]);
    }
    const again = await transactions.run((await islands.followers())[0]!, txn);
    expect(again.body.state, JSON.stringify(again.body)).toBe("committed");
    const byIsland = (reply: typeof first): object =>
      Object.fromEntries(reply.body.participants!.map(({ backend_hash: hash, results }) => [hash, results]));
    expect(byIsland(again)).toEqual(byIsland(first));
    await islands.until("nothing to be in doubt", PATIENT_MS, async () => {
      return (await transactions.inDoubt(islands.all)).length === 0;
    });
    expect(await transactions.everywhere(islands.all, "many")).toEqual(everywhere("there"));
    for (const one of islands.all) {
      const { body: jobs } = await one.call<{ jobs: object[] }>("/v1/jobs?kind=many", {}, transactions.certificate);
      expect(jobs.jobs).toHaveLength(1);
      const { body: scope } = await one.call("/v1/scopes/many", {}, transactions.certificate);
      expect(scope["holder"]).toMatchObject({ identity: "many" });
    }
  },
  LIMIT_MS,
);

it(
  "what one island refuses, all of them leave undone, whichever refuses; the reason says which one and why",
  async () => {
    const { island } = await islands.leader();
    for (const refusing of islands.all.slice(0, 3)) {
      const at = Object.fromEntries(
        islands.all.map((one) => [one.id, [put("refused", one.id, one === refusing ? 7 : 0)]]),
      );
      const { status, body } = await transactions.run(island, { at });
      expect([status, body.state], JSON.stringify(body)).toEqual([200, "rolled_back"]);
      expect(body.reason?.code).toBe("VERSION_CONFLICT");
      expect([transactions.hash(refusing), null]).toContain(body.reason?.backend_hash);
      expect(body.participants!.map(({ state }) => state)).toEqual(islands.all.map(() => "rolled_back"));
      expect(await transactions.everywhere(islands.all, "refused")).toEqual(everywhere(null));
    }
    // Nothing is locked: the next one takes the same names.
    await islands.until("nothing to be in doubt", PATIENT_MS, async () => {
      return (await transactions.inDoubt(islands.all)).length === 0;
    });
    const at = Object.fromEntries(islands.all.map((one) => [one.id, [put("refused", "not now", 0)]]));
    expect((await transactions.run(island, { at })).body.state).toBe("committed");
  },
  LIMIT_MS,
);

it(
  "a workload moves with its scope, its state and its job; with an epoch that is over it does not, and neither does any of it",
  async () => {
    const [from, to] = islands.all;
    const operator = await islands.issue("operator", "test");
    const asked = { session: "s", identity: "work", ttl_ms: 600_000, wait_ms: 0 };
    const { body: held } = await from!.call<{ epoch: number }>("/v1/scopes/work/acquire", { body: asked }, operator);
    const cursor = await from!.call<{ version: number }>(
      "/v1/values/cursor",
      { method: "PUT", body: { value: 41 } },
      transactions.certificate,
    );
    const move = (epoch: number) => ({
      require: [{ backend_hash: transactions.hash(from!), scope: "work", epoch }],
      at: {
        [from!.id]: [
          { op: "scope.release", scope: "work", epoch: held.epoch },
          { op: "value.delete", name: "cursor", if_version: cursor.body.version },
        ],
        [to!.id]: [
          { op: "scope.acquire", scope: "work", session: "t", identity: "moved", ttl_ms: 600_000 },
          put("cursor", 41, 0),
          { op: "job.submit", job: { kind: "work", payload: { from: 41 } } },
        ],
      },
    });
    const stale = await transactions.run(to!, move(held.epoch + 1));
    expect([stale.body.state, stale.body.reason?.code], JSON.stringify(stale.body)).toEqual([
      "rolled_back",
      "STALE_EPOCH",
    ]);
    expect(await transactions.everywhere([from!, to!], "cursor")).toEqual({ [from!.id]: 41, [to!.id]: null });
    await islands.until("nothing to be in doubt", PATIENT_MS, async () => {
      return (await transactions.inDoubt(islands.all)).length === 0;
    });
    const moved = await transactions.run(to!, move(held.epoch));
    expect(moved.body.state, JSON.stringify(moved.body)).toBe("committed");
    expect(await transactions.everywhere([from!, to!], "cursor")).toEqual({ [from!.id]: null, [to!.id]: 41 });
    const holders = await Promise.all(
      [from!, to!].map(async (one) => (await one.call("/v1/scopes/work", {}, transactions.certificate)).body["holder"]),
    );
    expect(holders).toMatchObject([null, { identity: "moved" }]);
    await islands.until("the job", PATIENT_MS, async () => {
      const { body } = await to!.call<{ jobs: object[] }>("/v1/jobs?kind=work", {}, transactions.certificate);
      return body.jobs.length === 1;
    });
  },
  LIMIT_MS,
);
