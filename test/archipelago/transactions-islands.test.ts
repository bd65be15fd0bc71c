// Two islands of three servers each: an island's own failover keeps what it has promised, decided and is still to deliver.

import { randomUUIDv7 } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ArmedServer, plantPoints } from "../chaos/txn-kills.ts";
import type { TxnPoint } from "../chaos/txn-points.ts";
import { ISLANDS_START_MS, PATIENT_MS, type TestIsland, TestIslands } from "./test-islands.ts";
import { put, TestTransactions } from "./test-transactions.ts";

const LIMIT_MS = 6 * PATIENT_MS;

let islands: TestIslands;
let transactions: TestTransactions;

beforeAll(async () => {
  islands = await TestIslands.make({ islands: 2, nodes: 3 });
  plantPoints(islands);
  for (const island of islands.all) island.start();
  await islands.settled(ISLANDS_START_MS);
  transactions = await TestTransactions.of(islands);
}, ISLANDS_START_MS);

afterAll(() => islands?.end(), PATIENT_MS);

function nodesOf(island: "i1" | "i2"): readonly TestIsland[] {
  return islands.all.filter(({ id }) => id.startsWith(island));
}

/** The node that leads the island's own log. */
async function leaderOf(island: "i1" | "i2"): Promise<TestIsland> {
  let found: TestIsland | undefined;
  await islands.until(`a leader of ${island}`, PATIENT_MS, async () => {
    for (const one of nodesOf(island)) if ((await one.node.view())?.role === "LEADER") found = one;
    return found !== undefined;
  });
  return found!;
}

it.each<TxnPoint>(["before-append", "after-append", "before-deliver", "after-deliver", "before-settled"])(
  "queue and state over a failover: the island's leader is killed at %s, and its successor has the value, the scope and the job, once",
  async (point) => {
    const victim = await leaderOf("i2");
    const armed = await ArmedServer.arm(victim, point);
    const name = `moved-${point}`;
    const id = randomUUIDv7();
    const txn = {
      txn_id: id,
      timeout_ms: 5_000,
      home: transactions.hash("i1n1"),
      at: {
        i1n1: [put(name, "left")],
        i2n1: [
          put(name, "there"),
          { op: "scope.acquire", scope: name, session: id, identity: id, ttl_ms: 600_000 },
          { op: "job.submit", job: { kind: name, payload: { id } } },
        ],
      },
    };
    let last: unknown;
    await islands
      .until("the transaction to be committed", PATIENT_MS, async () => {
        const asked = islands.running.find((one) => one !== victim)!;
        const { body } = (await transactions.run(asked, txn).catch(() => null)) ?? {};
        last = body ?? last;
        // An attempt that was rolled back stays so: it is asked for under another id.
        if (body?.state === "rolled_back" || body?.error === "txn_fanout_failed") txn.txn_id = randomUUIDv7();
        return body?.state === "committed";
      })
      .catch((error: unknown) => {
        throw new Error(`${JSON.stringify(last)}\n${(error as Error).message}`);
      });
    await islands.until(`${victim.id} to be killed`, PATIENT_MS, () => armed.isKilled);
    const next = await leaderOf("i2");
    expect(next).not.toBe(victim);
    await islands.until("the job", PATIENT_MS, async () => {
      const { body } = await next.call<{ jobs?: object[] }>(`/v1/jobs?kind=${name}`, {}, transactions.certificate);
      return body.jobs?.length === 1;
    });
    victim.start();
    await islands.settled();
    await islands.until("nothing to be in doubt", PATIENT_MS, async () => {
      return (await transactions.inDoubt(islands.all)).length === 0;
    });
    expect(await transactions.everywhere(nodesOf("i1"), name)).toEqual({ i1n1: "left", i1n2: "left", i1n3: "left" });
    expect(await transactions.everywhere(nodesOf("i2"), name)).toEqual({ i2n1: "there", i2n2: "there", i2n3: "there" });
    for (const one of nodesOf("i2")) {
      const { body } = await one.call<{ jobs: object[] }>(`/v1/jobs?kind=${name}`, {}, transactions.certificate);
      expect(body.jobs).toHaveLength(1);
      const scope = await one.call(`/v1/scopes/${name}`, {}, transactions.certificate);
      expect(scope.body["holder"]).toMatchObject({ identity: id });
    }
  },
  LIMIT_MS,
);
