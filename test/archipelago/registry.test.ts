// The registry at real islands: a change is with everybody or with nobody, also where one of them fails in between, and whoever is not the leader passes
// it on.

import { afterAll, beforeAll, expect, it } from "vitest";
import type { TenureAnswer } from "../servers/index.ts";
import { ISLANDS_START_MS, PATIENT_MS, type TestIsland, TestIslands } from "./test-islands.ts";

const LIMIT_MS = 4 * PATIENT_MS;

let islands: TestIslands;

beforeAll(async () => {
  islands = await TestIslands.start();
}, ISLANDS_START_MS);

afterAll(() => islands?.end(), PATIENT_MS);

const hashOf = (digit: string): string => digit.repeat(64);

function change(verb: "register" | "unregister", at: TestIsland, hash: string): Promise<TenureAnswer> {
  // One endpoint is of one island: each has its own.
  const body = { backend_hash: hash, endpoint: `https://${hash.slice(0, 8)}` };
  return at.call(`/v1/tc/rm/${verb}`, { body, limitMs: PATIENT_MS });
}

/** Which of those that run show it, as one text. */
async function shownAt(hash: string): Promise<string> {
  const views = await islands.views();
  const has = views.filter(({ registry }) => registry.some((one) => one.backend_hash === hash));
  return has.map(({ self }) => self.identity).join();
}

const shownBy = (hash: string, ids: string): Promise<void> =>
  islands.until(`${hash.slice(0, 4)}… at ${ids || "nobody"}`, PATIENT_MS, async () => (await shownAt(hash)) === ids);

it("replication: a change at the leader, and one that a follower forwards, is shown by all", async () => {
  const { island } = await islands.leader();
  const [follower] = await islands.followers();
  expect(await change("register", island, hashOf("a"))).toMatchObject({ status: 200 });
  await shownBy(hashOf("a"), "i1,i2,i3");
  expect(await change("register", follower!, hashOf("b"))).toMatchObject({ status: 200 });
  await shownBy(hashOf("b"), "i1,i2,i3");
  // Again: nothing changes.
  expect(await change("register", follower!, hashOf("b"))).toMatchObject({ status: 200 });
  expect(await change("unregister", follower!, hashOf("b"))).toMatchObject({ status: 200 });
  await shownBy(hashOf("b"), "");
});

it(
  "failure and recovery: while a listed island does not answer a change is refused and shown by nobody, and then it is made",
  async () => {
    const { island } = await islands.leader();
    const [silent, other] = await islands.followers();
    silent!.node.stop();
    const refused = await change("register", island, hashOf("c"));
    const views = await Promise.all([island.view(), other!.view()]);
    silent!.node.cont();
    expect(refused).toMatchObject({ status: 502, body: { error: "tc_rm_replication_failed", missing: [silent!.url] } });
    for (const view of views) expect(view!.registry.map((one) => one.backend_hash)).not.toContain(hashOf("c"));
    await islands.settled();
    expect(await shownAt(hashOf("c"))).toBe("");
    expect(await change("register", (await islands.leader()).island, hashOf("c"))).toMatchObject({ status: 200 });
    await shownBy(hashOf("c"), "i1,i2,i3");
  },
  LIMIT_MS,
);

it(
  "an island that was away while the registry changed shows what the others show when it is back",
  async () => {
    const [away] = await islands.followers();
    expect(await away!.leave()).toMatchObject({ status: 200 });
    const { island } = await islands.leader();
    // It is in nobody's way: it left.
    expect(await change("register", island, hashOf("d"))).toMatchObject({ status: 200 });
    expect(await away!.announce()).toMatchObject({ status: 200 });
    await shownBy(hashOf("d"), "i1,i2,i3");
    await islands.settled();
  },
  LIMIT_MS,
);

it(
  "forwarding: with the leader gone a follower makes no change, and the next leader makes it",
  async () => {
    const { island } = await islands.leader();
    const [follower] = await islands.followers();
    await island.node.kill9();
    const refused = await change("register", follower!, hashOf("e"));
    // 502: by then another one leads, and the island that was killed is still listed.
    expect(["tc_not_leader", "tc_unavailable", "OUTCOME_UNKNOWN", "tc_rm_replication_failed"]).toContain(
      refused.body["error"],
    );
    island.start();
    await islands.settled();
    expect(await shownAt(hashOf("e"))).toBe("");
    expect(await change("register", follower!, hashOf("e"))).toMatchObject({ status: 200 });
    await shownBy(hashOf("e"), "i1,i2,i3");
  },
  LIMIT_MS,
);
