// Three server processes that are killed, frozen and told to end, while clients write: what was acknowledged stays, and
// somebody leads again. The steps share one cluster; each leaves it whole.

import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { CLIENT_KEY, startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";
import { ask, freshScope, Ledger } from "./test-ledger.ts";

let cluster: TenureCluster;
let ledger: Ledger;

beforeAll(async () => {
  cluster = await startTenureCluster();
  ledger = new Ledger(cluster);
}, 120_000);

afterAll(() => cluster?.end());

/** Whole again, and nothing that anybody was promised is missing. */
async function expectWhole(): Promise<void> {
  await cluster.steady();
  expect(await ledger.lost()).toEqual([]);
}

async function followers(): Promise<string[]> {
  const leader = await cluster.leader();
  return cluster.nodes.map(({ id }) => id).filter((id) => id !== leader);
}

test("three processes form one cluster from their configurations alone", async () => {
  const views = await Promise.all(cluster.nodes.map((node) => node.view()));
  expect(new Set(views.map((view) => view?.cluster_id)).size).toBe(1);
  for (const view of views) {
    const members = view?.members.map(({ node_id, kind }) => `${node_id} ${kind}`).toSorted();
    expect(members).toEqual(["n1 voter", "n2 voter", "n3 voter"]);
  }
  await ledger.write();
  await expectWhole();
});

test("kill -9 of the leader under load loses no acknowledged grant, and epochs go on growing", async () => {
  ledger.begin();
  await ledger.progress();
  const old = await cluster.leader();
  const { term = 0 } = (await cluster.node(old).view()) ?? {};
  const before = ledger.highestEpoch;
  await cluster.node(old).kill9();
  const next = await cluster.waitForLeader(old);
  await ledger.progress();
  await ledger.rest();
  expect((await cluster.node(next).view())?.term).toBeGreaterThan(term);
  expect(await ledger.write()).toBeGreaterThan(before);
  cluster.node(old).start();
  await expectWhole();
});

test("kill -9 of all three at once under load loses no acknowledged grant, and epochs go on growing", async () => {
  const terms = (await Promise.all(cluster.nodes.map((node) => node.view()))).map((view) => view?.term ?? 0);
  ledger.begin();
  await ledger.progress();
  await Promise.all(cluster.nodes.map((node) => node.kill9()));
  const before = ledger.highestEpoch;
  for (const node of cluster.nodes) node.start();
  await ledger.progress();
  await ledger.rest();
  expect(await ledger.write()).toBeGreaterThan(before);
  await expectWhole();
  expect((await cluster.node(await cluster.leader()).view())?.term).toBeGreaterThan(Math.max(...terms));
});

test.for(["SIGTERM", "SIGINT"] as const)(
  "%s to the leader under load hands leadership over first: exit 0, and no client sends a write more than twice",
  async (signal) => {
    await ledger.write();
    ledger.begin(1);
    await ledger.progress();
    ledger.worstTries = 0;
    ledger.refusals.length = 0;
    const old = cluster.node(await cluster.leader());
    const { term = 0 } = (await old.view()) ?? {};
    expect(await old.term(signal)).toBe(0);
    await cluster.waitForLeader(old.id);
    await ledger.progress();
    await ledger.rest();
    expect({ tries: ledger.worstTries, told: ledger.refusals }).toMatchObject({ tries: expect.toSatisfy(atMostTwo) });
    const views = await Promise.all(cluster.nodes.map((node) => node.view()));
    const won = views.flatMap((view) => view?.elections ?? []).filter((one) => one.result === "won" && one.term > term);
    expect(won.toSorted((a, b) => a.term - b.term)[0]).toMatchObject({ reason: "transfer" });
    old.start();
    await expectWhole();
  },
);

function atMostTwo(tries: number): boolean {
  return tries <= 2;
}

test("kill -9 of a follower: writes go on, the leader alerts; it comes back, catches up, and the alert is over", async () => {
  const leader = cluster.node(await cluster.leader());
  const victim = cluster.node((await followers())[0]!);
  const alerts = async (): Promise<string[]> =>
    ((await leader.view())?.alerts ?? []).map(({ name, node_id }) => `${name} ${node_id}`);
  await victim.kill9();
  for (let write = 0; write < 10; write++) await ledger.write();
  await waitFor("the alert", async () => (await alerts()).includes(`follower_unresponsive ${victim.id}`), 10_000);
  expect(await leader.call("/healthz", { key: CLIENT_KEY })).toMatchObject({
    status: 200,
    body: { status: "degraded" },
  });
  const { commit = 0 } = (await leader.view()) ?? {};
  victim.start();
  await waitFor("the follower to catch up", async () => ((await victim.view())?.applied ?? 0) >= commit);
  await waitFor("the alert to end", async () => !(await alerts()).includes(`follower_unresponsive ${victim.id}`));
  await expectWhole();
});

test("a frozen leader is followed by another; thawed it steps down, and grants nothing that the cluster has not", async () => {
  const old = cluster.node(await cluster.leader());
  onTestFinished(() => old.cont());
  const { term = 0 } = (await old.view()) ?? {};
  old.stop();
  const contested = freshScope();
  const lonely = Array.from({ length: 8 }, freshScope);
  // The kernel takes these for it; it reads them when it is thawed, and believes for a moment that it leads.
  const pending = [contested, ...lonely].map((scope) => ask(old, scope, `late-${scope}`, 60_000));
  await cluster.waitForLeader(old.id, 10_000);
  const epoch = await ledger.write(contested);
  for (let write = 0; write < 10; write++) await ledger.write();
  old.cont();
  const answers = await Promise.all(pending);
  await waitFor("the old leader to follow", async () => {
    const view = await old.view();
    return view?.role === "STANDBY" && view.term > term && view.leader !== null && view.leader.node_id !== old.id;
  });
  expect(answers[0]?.granted).not.toBe(true);
  const leader = cluster.node(await cluster.leader());
  for (const [at, scope] of [contested, ...lonely].entries()) {
    const { body } = await leader.call<{ holder?: { epoch: number; identity: string } }>(
      `/v1/scopes/${scope}?consistency=linearizable`,
      { key: CLIENT_KEY },
    );
    if (answers[at]?.granted === true) {
      expect(body.holder).toMatchObject({ epoch: answers[at].epoch, identity: `late-${scope}` });
    }
    if (scope === contested) expect(body.holder?.epoch).toBe(epoch);
  }
  await expectWhole();
});

test("without a quorum reads go on and say how old they are, writes are refused, and nobody is lost", async () => {
  const last = cluster.node(await cluster.leader());
  const gone = cluster.nodes.filter((node) => node !== last);
  const scope = freshScope();
  const epoch = await ledger.write(scope);
  const read = async (query = "") => last.call(`/v1/scopes/${scope}${query}`, { key: CLIENT_KEY });
  // Another may lead by now: what this one has not applied it could not show.
  await waitFor("it to know of the write", async () => (await read()).status === 200);
  await Promise.all(gone.map((node) => node.kill9()));
  await waitFor("it to know that it does not lead", async () => (await last.view())?.leader === null);
  const body = { session: "s", identity: "s", ttl_ms: 1_000, wait_ms: 0 };
  expect(await last.call(`/v1/scopes/${freshScope()}/acquire`, { key: CLIENT_KEY, body })).toMatchObject({
    status: 503,
    body: { error: "ERR_NO_LEADER", code: 4002 },
  });
  expect(await last.call("/leader", { key: CLIENT_KEY })).toMatchObject({ status: 503, body: { code: 4002 } });
  const first = await read();
  expect(first).toMatchObject({ status: 200, body: { epoch } });
  const age = async (): Promise<number> => Number((await read()).headers["x-tenure-staleness-ms"]);
  const firstAge = Number(first.headers["x-tenure-staleness-ms"]);
  await waitFor("the answer to grow old", async () => (await age()) > firstAge + 100, 10_000);
  expect(await read("?max_stale_ms=50")).toMatchObject({ status: 503, body: { error: "TOO_STALE" } });
  expect(await read("?max_stale_ms=600000")).toMatchObject({ status: 200 });
  expect(await read("?consistency=linearizable")).toMatchObject({ status: 503 });
  expect(await last.call("/readyz")).toMatchObject({ status: 200 });
  await waitFor("an alert", async () => {
    const { body: health } = await last.call<{ status: string }>("/healthz", { key: CLIENT_KEY });
    return health.status !== "ok";
  });
  for (const node of gone) node.start();
  await ledger.write();
  await expectWhole();
});
