// What an operator does to a site on Postgres: stop nodes, move leadership, look; and what makes no sense there.

import { createHash, randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { key, type Site, startSite, waitFor } from "./test-site.ts";

/** Generous: the machine may be busy. Nobody waits for a timeout of the database's, which is seconds. */
const HAND_OVER_MS_MAX = 2_500;

let site: Site;

beforeAll(async () => {
  site = await startSite();
}, 120_000);

afterAll(() => site?.end());

test("SIGTERM lets go of leadership first: another leads at once, and the node ends with 0", async () => {
  const old = await site.leader();
  const sinceMs = performance.now();
  const ending = old.term();
  const next = await site.leader(old.id);
  await site.submit({ kind: randomUUID() });
  expect(performance.now() - sinceMs).toBeLessThan(HAND_OVER_MS_MAX);
  expect(await ending).toBe(0);
  await waitFor("the others to know that it is gone", async () => {
    return (await next.view())?.members.every(({ node_id }) => node_id !== old.id) === true;
  });
  old.start();
  await site.cluster.steady();
});

test("SIGTERM under load: whoever was answered 200 has a job, everybody else was refused, and nothing is unclear", async () => {
  const old = await site.leader();
  const kind = randomUUID();
  const done: string[] = [];
  const refused = new Set<string>();
  const crowd = { isOver: false };
  const clients = Array.from({ length: 8 }, async () => {
    while (!crowd.isOver) {
      try {
        const { status, body } = await old.call<{ id: string; error: string }>("/v1/jobs", { key, body: { kind } });
        if (status === 200) done.push(body.id);
        else refused.add(body.error);
      } catch {
        // It listens no more.
        return;
      }
    }
  });
  await waitFor("some to be done", () => Promise.resolve(done.length > 20));
  expect(await old.term()).toBe(0);
  crowd.isOver = true;
  await Promise.all(clients);
  const next = await site.leader(old.id);
  for (const id of done) {
    expect((await next.call(`/v1/jobs/${id}?consistency=linearizable`, { key })).status).toBe(200);
  }
  expect([...refused].filter((error) => error !== "NOT_LEADER" && error !== "BACKEND_UNAVAILABLE")).toEqual([]);
  old.start();
  await site.cluster.steady();
});

test("a transfer hands over to another node, in a higher epoch, and refuses nobody for long", async () => {
  const old = await site.leader();
  const { term } = (await old.view())!;
  const { status, body } = await old.call("/v1/admin/transfer", { key, body: {} });
  expect(status).toBe(200);
  const next = await site.leader(old.id);
  expect(body).toMatchObject({ success: true, old_leader_id: old.id, new_leader_id: next.id });
  expect((await next.view())?.term).toBeGreaterThan(term);
  await site.submit({ kind: randomUUID() });
  await site.cluster.steady();
});

test("a transfer is the leader's, and can't be aimed where several wait", async () => {
  const [standby, other] = await site.standbys();
  expect(await standby!.call("/v1/admin/transfer", { key, body: {} })).toMatchObject({
    status: 409,
    body: { error: "NOT_LEADER" },
  });
  const leader = await site.leader();
  for (const [target, error] of [
    [other!.id, "NOT_SUPPORTED"],
    [leader.id, "TRANSFER_TARGET_INVALID"],
    ["stranger", "TRANSFER_TARGET_INVALID"],
  ] as const) {
    const { body } = await leader.call("/v1/admin/transfer", { key, body: { target } });
    expect({ target, ...body }).toMatchObject({ target, error });
  }
  expect((await site.leader()).id).toBe(leader.id);
});

test.each([
  ["POST", "/v1/admin/members", { op: "add", node_id: "n9" }],
  ["POST", "/v1/admin/snapshot", {}],
  ["GET", "/v1/admin/snapshot", undefined],
  ["GET", "/v1/scopes", undefined],
  ["GET", "/v1/scopes/s", undefined],
  ["POST", "/v1/scopes/s/acquire", { session: "s", identity: "i", ttl_ms: 5_000, wait_ms: 0 }],
] as const)("%s %s makes no sense here and is answered so", async (method, path, body) => {
  const leader = await site.leader();
  const answer = await leader.call(path, { method, key, ...(body === undefined ? {} : { body }) });
  expect(answer).toMatchObject({ status: 501, body: { error: "NOT_SUPPORTED" } });
});

test("keys that were made at the leader open every node", async () => {
  const secret = randomUUID();
  const sha256 = createHash("sha256").update(secret).digest("hex");
  const leader = await site.leader();
  const made = await leader.call("/v1/keys", {
    key,
    body: { name: `k-${secret.slice(0, 8)}`, role: "viewer", sha256 },
  });
  expect(made.status).toBeLessThan(300);
  for (const node of site.cluster.nodes) {
    await waitFor(`${node.id} to know it`, async () => (await node.call("/v1/stats", { key: secret })).status === 200);
  }
});

test("probes and the cluster's view say how things stand on every node", async () => {
  const leader = await site.leader();
  for (const node of site.cluster.nodes) {
    expect((await node.call("/livez")).status).toBe(200);
    expect((await node.call("/readyz")).status).toBe(200);
    expect((await node.call("/healthz", { key })).body).toMatchObject({ status: "ok", alerts: [] });
    expect((await node.call("/leader", { key })).body).toMatchObject({ leader_id: leader.id, leader_url: leader.url });
    const { headers } = await node.call("/v1/stats", { key });
    expect(headers).toMatchObject({ "x-tenure-leader-id": leader.id, "x-tenure-node": node.id });
    expect(Number(headers["x-tenure-staleness-ms"])).toBeLessThan(5_000);
  }
});
