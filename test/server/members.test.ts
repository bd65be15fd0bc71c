// Who belongs to a cluster of processes, and who may say so: disks that were wiped, nodes that join, leave and are replaced
// under load, and everything that is refused. Nobody campaigns here unless a leader is gone. The steps build on each other.

import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  CALM_ELECTION,
  CLIENT_KEY,
  OPERATOR_KEY,
  startTenureCluster,
  type TenureAnswer,
  type TenureCluster,
  type TenureNode,
  type TenureView,
  VIEWER_KEY,
  waitFor,
} from "../servers/index.ts";
import { Ledger } from "./test-ledger.ts";

let cluster: TenureCluster;
let ledger: Ledger;

beforeAll(async () => {
  cluster = await startTenureCluster({ election: CALM_ELECTION });
  ledger = new Ledger(cluster);
}, 120_000);

afterAll(() => cluster?.end());

async function leading(): Promise<TenureNode> {
  return cluster.node(await cluster.leader());
}

async function aFollower(): Promise<TenureNode> {
  const leader = await cluster.leader();
  return cluster.nodes.find(({ id }) => id !== leader)!;
}

async function steer(path: string, body: object, key: string | null = OPERATOR_KEY): Promise<TenureAnswer> {
  return (await leading()).call(`/v1/admin/${path}`, { key, body, limitMs: 60_000 });
}

/** `n1 voter`, …, with the disk's id where it matters. */
async function members(): Promise<string[]> {
  const view = await (await leading()).view();
  return (view?.members ?? []).map(({ node_id, kind }) => `${node_id} ${kind}`).toSorted();
}

/** Who is a member, with which disk, who leads and in which term: what a refusal must not change. */
async function facts(): Promise<unknown> {
  const view = await (await leading()).view();
  return { members: view?.members.map((one) => [one.node_id, one.incarnation, one.kind]), term: view?.term };
}

describe("a stranger, a viewer and a client", () => {
  const calls = [
    ["transfer", {}],
    ["members", { op: "remove", node_id: "n3" }],
    ["snapshot", {}],
    ["scopes/a/resign", { force: true }],
  ] as const;

  test.for(calls)("may not call %s, and the audit says who tried", async ([path, body]) => {
    const before = await facts();
    expect(await steer(path, body, null)).toMatchObject({ status: 401, body: { error: "UNAUTHENTICATED" } });
    expect(await steer(path, body, "no-such-key")).toMatchObject({ status: 401 });
    expect(await steer(path, body, VIEWER_KEY)).toMatchObject({ status: 403, body: { error: "PERMISSION_DENIED" } });
    expect(await steer(path, body, CLIENT_KEY)).toMatchObject({ status: 403, body: { error: "PERMISSION_DENIED" } });
    expect(await facts()).toEqual(before);
  });

  test("are in the audit with what came of it, beside the operator; and may not read it", async () => {
    expect((await steer("transfer", { target: "n9" })).status).toBe(400);
    expect((await steer("snapshot", {})).status).toBe(200);
    const leader = await leading();
    expect((await leader.call("/v1/admin/audit", { key: CLIENT_KEY })).status).toBe(403);
    const { body } = await leader.call<{ records: Record<string, unknown>[] }>("/v1/admin/audit", {
      key: OPERATOR_KEY,
    });
    const told = body.records.map(({ who, operation, target, outcome }) => [who, operation, target, outcome]);
    expect(told).toContainEqual(["the-operator", "transfer", "n9", "TRANSFER_TARGET_INVALID"]);
    expect(told).toContainEqual(["the-client", "transfer", null, "PERMISSION_DENIED"]);
    expect(told.some(([who, operation]) => who === "the-viewer" && /snapshot/i.test(String(operation)))).toBe(true);
    expect(body.records.some(({ how, outcome }) => how === "anonymous" && outcome === "UNAUTHENTICATED")).toBe(true);
    expect(body.records.some(({ who, outcome }) => who === "the-operator" && outcome === "OK")).toBe(true);
    // The line in the log is the record; the memory is for a look.
    await waitFor("the audit's line", () => /"audit":true.*"who":"the-client"/.test(leader.log()));
  });
});

describe("is refused, and nothing has changed:", () => {
  const refused: readonly (readonly [what: string, path: string, body: object, status: number, error: string])[] = [
    ["an id that is in use", "members", { op: "add", node_id: "n2" }, 409, "MEMBER_EXISTS"],
    ["a node that never came", "members", { op: "add", node_id: "n9" }, 404, "MEMBER_UNKNOWN"],
    ["a promotion of a stranger", "members", { op: "promote", node_id: "n9" }, 404, "MEMBER_UNKNOWN"],
    ["a promotion of a voter", "members", { op: "promote", node_id: "n2" }, 400, "CONF_CHANGE_INVALID"],
    ["a removal of a stranger", "members", { op: "remove", node_id: "n9" }, 404, "MEMBER_UNKNOWN"],
    ["a replacement of a stranger", "members", { op: "replace", node_id: "n9" }, 404, "MEMBER_UNKNOWN"],
    ["a transfer to a stranger", "transfer", { target: "n9" }, 400, "TRANSFER_TARGET_INVALID"],
    ["a member that is no node id", "members", { op: "remove", node_id: "../n2" }, 400, "BAD_REQUEST"],
    ["an operation that there is not", "members", { op: "explode", node_id: "n2" }, 400, "BAD_REQUEST"],
  ];

  test.for(refused)("%s", async ([, path, body, status, error]) => {
    const before = await facts();
    const answer = await steer(path, body);
    expect(answer).toMatchObject({ status, body: { error } });
    expect(String(answer.body["message"]).length).toBeGreaterThan(20);
    expect(await facts()).toEqual(before);
  });

  test("a transfer to the leader itself, and any steering at a follower", async () => {
    const before = await facts();
    const leader = await leading();
    expect(await steer("transfer", { target: leader.id })).toMatchObject({
      status: 400,
      body: { error: "TRANSFER_TARGET_INVALID" },
    });
    const follower = await aFollower();
    for (const [path, body] of [
      ["transfer", {}],
      ["members", { op: "remove", node_id: leader.id }],
    ] as const) {
      const answer = await follower.call(`/v1/admin/${path}`, { key: OPERATOR_KEY, body });
      expect(answer).toMatchObject({ status: 409, body: { error: "NOT_LEADER", leader_url: leader.url } });
    }
    expect(await facts()).toEqual(before);
  });

  test("a removal that would leave no majority that answers", async () => {
    const victim = await aFollower();
    const leader = await leading();
    const other = cluster.nodes.find(({ id }) => id !== victim.id && id !== leader.id)!;
    await victim.kill9();
    await waitFor("the leader to miss it", async () => {
      const { members: all = [] } = (await leader.view()) ?? {};
      return all.some((one) => one.node_id === victim.id && one.progress?.healthy === false);
    });
    const before = await facts();
    expect(await steer("members", { op: "remove", node_id: other.id })).toMatchObject({
      status: 400,
      body: { error: "CONF_CHANGE_INVALID", message: expect.stringContaining(victim.id) },
    });
    expect(await facts()).toEqual(before);
    victim.start();
    await cluster.steady();
  });
});

describe("a wiped disk", () => {
  /** Under load; it comes back as another disk of the same node, and is swapped in. */
  async function expectSwapped(node: TenureNode, before: TenureView): Promise<void> {
    let wasLearner = false;
    await waitFor("the new disk to vote", async () => {
      const view = await (await leading()).view();
      const disks = view?.members.filter(({ node_id }) => node_id === node.id) ?? [];
      wasLearner ||= disks.some(({ incarnation, kind }) => incarnation !== before.incarnation && kind === "learner");
      return disks.length === 1 && disks[0]?.incarnation !== before.incarnation && disks[0]?.kind === "voter";
    });
    expect(wasLearner).toBe(true);
    await waitFor("the alert about the lost disk to end", async () => {
      const alerts = (await (await leading()).view())?.alerts ?? [];
      return !alerts.some(({ name, node_id }) => name === "follower_unresponsive" && node_id === node.id);
    });
    await ledger.progress(3);
    await ledger.rest();
    await cluster.steady();
    expect((await node.view())?.cluster_id).toBe(before.cluster_id);
    expect(await ledger.lost()).toEqual([]);
  }

  test("of a follower comes back as a learner with another id, and is swapped in under load", async () => {
    const node = await aFollower();
    const before = (await node.view())!;
    ledger.begin(1);
    onTestFinished(() => ledger.rest());
    await ledger.progress(3);
    await node.kill9();
    node.wipe();
    node.start();
    await expectSwapped(node, before);
  });

  test("of the founder never founds a second cluster, though --bootstrap is given and the others are slow to answer", async () => {
    const founder = cluster.node("n1");
    const before = (await founder.view())!;
    ledger.begin(1);
    onTestFinished(() => ledger.rest());
    await ledger.progress(3);
    await founder.kill9();
    founder.wipe();
    const others = cluster.nodes.filter(({ id }) => id !== founder.id);
    onTestFinished(() => others.forEach((node) => node.cont()));
    for (const node of others) node.stop();
    founder.start(["--bootstrap"]);
    // The kernel takes connections for the frozen ones: somebody is there, and might know better.
    const decided = /"event":"founding-delayed"|founding a new cluster/;
    await waitFor("the founder to have looked for a cluster", () => decided.test(founder.log()));
    expect(founder.log()).not.toContain("founding a new cluster");
    for (const node of others) node.cont();
    await expectSwapped(founder, before);
    expect(founder.log()).toContain("a peer has a cluster already");
  });
});

describe("a fourth node", () => {
  test("waits until it is added, is a learner that nobody can hand over to, and no voter while it lags", async () => {
    const fourth = await cluster.make("n4");
    cluster.introduce(["n1", "n2", "n3"]);
    fourth.start();
    await waitFor("it to be seen and added", async () => {
      const { status, body } = await steer("members", { op: "add", node_id: "n4" });
      if (status !== 200) expect(body).toMatchObject({ error: "MEMBER_UNKNOWN" });
      return status === 200;
    });
    expect(await members()).toContain("n4 learner");
    expect(await steer("transfer", { target: "n4" })).toMatchObject({
      status: 400,
      body: { error: "TRANSFER_TARGET_INVALID", message: expect.stringContaining("learner") },
    });
    fourth.stop();
    onTestFinished(() => fourth.cont());
    const leader = await leading();
    await waitFor("the leader to miss it", async () => {
      const { members: all = [] } = (await leader.view()) ?? {};
      return all.some((one) => one.node_id === "n4" && one.progress?.healthy === false);
    });
    const before = await facts();
    expect(await steer("members", { op: "promote", node_id: "n4" })).toMatchObject({
      status: 503,
      body: { error: "NOT_CAUGHT_UP" },
    });
    expect(await facts()).toEqual(before);
  });

  test("is promoted when it has caught up", async () => {
    await waitFor("it to be a voter", async () => {
      const { status, body } = await steer("members", { op: "promote", node_id: "n4" });
      if (status !== 200) expect(body).toMatchObject({ error: "NOT_CAUGHT_UP" });
      return status === 200;
    });
    await cluster.steady();
    expect(await members()).toEqual(["n1 voter", "n2 voter", "n3 voter", "n4 voter"]);
  });

  test("and then the leader itself is removed under load: another leads, and the removed one does not come back", async () => {
    const old = await leading();
    ledger.begin(1);
    onTestFinished(() => ledger.rest());
    await ledger.progress(3);
    const { status, body } = await steer("members", { op: "remove", node_id: old.id });
    expect(status, JSON.stringify(body)).toBe(200);
    await waitFor("it to say so", async () => (await old.call("/readyz")).status === 503);
    expect((await old.call("/readyz")).body).toMatchObject({ reason: expect.stringContaining("was removed") });
    await cluster.waitForLeader(old.id);
    await ledger.progress(5);
    await ledger.rest();
    expect(await members()).toHaveLength(3);
    expect(await members()).not.toContain(`${old.id} voter`);
    await old.restart();
    await ledger.write();
    expect((await old.view())?.role).not.toBe("LEADER");
    await cluster.forget(old.id);
    await cluster.steady();
    expect(await ledger.lost()).toEqual([]);
  });

  test("replace is refused without a new disk, and swaps the disk in when there is one", async () => {
    const node = await aFollower();
    const before = await facts();
    const refusal = await steer("members", { op: "replace", node_id: node.id });
    expect(refusal.status).toBeGreaterThanOrEqual(400);
    expect(await facts()).toEqual(before);
    const { incarnation } = (await node.view())!;
    await node.kill9();
    node.wipe();
    node.start();
    await waitFor("it to be replaced", async () => {
      await steer("members", { op: "replace", node_id: node.id });
      const view = await (await leading()).view();
      const disks = view?.members.filter(({ node_id }) => node_id === node.id) ?? [];
      return disks.length === 1 && disks[0]?.incarnation !== incarnation && disks[0]?.kind === "voter";
    });
    await cluster.steady();
    expect(await ledger.lost()).toEqual([]);
  });
});

test("a second SIGTERM ends a node at once that waits to hand over", async () => {
  const leader = await leading();
  // Nobody can take over, so it would wait.
  const frozen = cluster.nodes.filter(({ id }) => id !== leader.id);
  onTestFinished(() => frozen.forEach((node) => node.cont()));
  for (const node of frozen) node.stop();
  leader.signal("SIGTERM");
  await waitFor("it to be stopping", () => leader.log().includes('"event":"stopping"'));
  leader.signal("SIGTERM");
  expect((await leader.ended()).code).toBe(143);
});
