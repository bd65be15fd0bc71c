// The database goes and comes back: nobody leads without it, reads go on and say how old they are, and afterwards the site goes
// on by itself. And what the database keeps: a cold node reads it, and a changed byte of it is found.

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { tenure } from "../cli/test-tenure.ts";
import { key, type Site, startSite, waitFor } from "./test-site.ts";

let site: Site;

beforeAll(async () => {
  site = await startSite({ snapshots: { after_entries: 100 } });
}, 120_000);

afterAll(() => site?.end());

test.each(["fast", "immediate"] as const)(
  "the database is stopped (%s) and started: reads go on meanwhile, and no acknowledged job is lost",
  async (mode) => {
    const kind = randomUUID();
    const id = await site.submit({ kind });
    for (const node of site.cluster.nodes) {
      await waitFor(`${node.id} to have it`, async () => (await node.call(`/v1/jobs/${id}`, { key })).status === 200);
    }
    await site.server.stop(mode);
    onTestFinished(() => site.server.start());
    for (const node of site.cluster.nodes) {
      await waitFor(`${node.id} to know nobody`, async () => {
        const { body } = await node.call<{ role: string; leader_id: string | null }>("/role", { key });
        return body.role === "STANDBY" && body.leader_id === null;
      });
      const { status, body } = await node.call("/v1/jobs", { key, body: { kind } });
      expect({ status, body }).toMatchObject({
        status: 409,
        body: { error: "NOT_LEADER", leader_id: null, leader_url: null, leader_epoch: null, role: "STANDBY" },
      });
      // They say how old they are, and it grows.
      await waitFor(`${node.id} to read what is old`, async () => {
        const read = await node.call(`/v1/jobs/${id}`, { key });
        expect(read).toMatchObject({ status: 200, body: { state: "pending" } });
        return Number(read.headers["x-tenure-staleness-ms"]) > 100;
      });
      expect((await node.call("/readyz")).status).toBe(200);
      expect((await node.call(`/v1/jobs/${id}?consistency=linearizable`, { key })).status).toBe(503);
    }
    await site.server.start();
    await site.cluster.steady();
    await site.submit({ kind });
    for (const node of site.cluster.nodes) {
      expect((await node.call(`/v1/jobs/${id}?consistency=linearizable`, { key })).status).toBe(200);
    }
  },
  120_000,
);

test("while the database is down a node says so once, and so do the commands: nobody is sent to the other nodes", async () => {
  const [node] = site.cluster.nodes;
  const access = ["--url", site.cluster.urls.join(","), "--key", key];
  // Of nothing there is nothing to read.
  await site.submit({ kind: randomUUID() });
  await waitFor("all nodes to be heard of", async () => (await (await site.leader()).view())?.alerts.length === 0);
  const well = await tenure("cluster", "status", ...access);
  expect([well.code, well.stdout]).toEqual([0, expect.stringMatching(/^nodes +3: one is enough/m)]);
  expect(well.stdout).not.toMatch(/voter|may fail|needed/);
  const elections = await tenure("cluster", "elections", ...access);
  expect([elections.code, elections.stdout]).toEqual([0, ""]);
  expect(elections.stderr).toContain("a site on Postgres holds no elections");
  const before = node!.log().length;
  await site.server.stop("fast");
  onTestFinished(() => site.server.start());
  await waitFor(
    "the alert",
    async () => (await node!.view())?.alerts.some(({ name }) => name === "leader_unavailable") === true,
  );
  const verify = await node!.call("/api/events/verify", { key });
  expect(verify).toMatchObject({ status: 503, body: { error: "BACKEND_UNAVAILABLE" } });
  const down = await tenure("cluster", "status", ...access);
  expect([down.code, down.stdout]).toEqual([69, expect.stringMatching(/^leader +nobody: look at the database/m)]);
  expect(down.stdout).toContain("the database does not answer");
  expect(down.stdout).not.toMatch(/voter|majority|other nodes/);
  await site.server.start();
  await site.cluster.steady();
  const told = (text: string): number => node!.log().slice(before).split(text).length - 1;
  await waitFor("the node to say that it is well", () => {
    return told("the log in Postgres is followed again") + told("is known in the database again") === 2;
  });
  expect([told("the log in Postgres can't be followed"), told("is not known in the database")]).toEqual([1, 1]);
}, 120_000);

test("a leader that is cut off from the database stops leading, another leads, and the old one comes back", async () => {
  const old = await site.leader();
  site.proxy(old.id).cut();
  const next = await site.leader(old.id);
  await waitFor("the old leader to know", async () => {
    return (await old.call<{ role: string }>("/role", { key })).body.role === "STANDBY";
  });
  const id = await site.submit({ kind: randomUUID() });
  await site.proxy(old.id).heal();
  await site.cluster.steady();
  expect((await old.call(`/v1/jobs/${id}?consistency=linearizable`, { key })).status).toBe(200);
  expect(next.id).not.toBe(old.id);
}, 60_000);

test("a node with an empty directory takes the snapshot and what follows, and shows the same", async () => {
  await site.submitMany(500, randomUUID());
  await waitFor("a snapshot to be stored", async () => {
    const [head] = await site.server.query<{ at: number }>("select snapshot_position::int as at from tenure_log_head");
    return head !== undefined && head.at > 400;
  });
  await site.submitMany(20, randomUUID());
  const [cold] = await site.standbys();
  await cold!.kill9();
  cold!.wipe();
  cold!.start();
  await site.cluster.steady();
  const leader = await site.leader();
  const stats = "/v1/stats?consistency=linearizable";
  expect((await cold!.call(stats, { key })).body).toEqual((await leader.call(stats, { key })).body);
  expect(await site.events(cold!)).toEqual(await site.events(leader));
}, 60_000);

test("events say who wrote them: the site and the database's timeline, never a node", async () => {
  const events = await site.events(await site.leader());
  const authors = new Set(events.map(({ sourceControllerId }) => sourceControllerId));
  const { cluster_id: siteId } = (await (await site.leader()).view())!;
  expect([...authors]).toEqual([`${siteId}.1`]);
  expect(new Set(events.map(({ leaderEpoch }) => leaderEpoch)).size).toBeGreaterThan(1);
});

test("a byte that is changed in the table is found and named on every node", async () => {
  const [leader] = [await site.leader()];
  expect((await leader.call("/api/events/verify", { key })).body).toMatchObject({ valid: true });
  const at = 7;
  await site.server.query("alter table tenure_log disable trigger user");
  const flip = "update tenure_log set data = set_byte(data, 40, get_byte(data, 40) # 1) where position = $1";
  await site.server.query(flip, [at]);
  for (const node of site.cluster.nodes) {
    const { body } = await node.call("/api/events/verify", { key });
    expect(body).toMatchObject({ valid: false, firstBrokenSequence: at });
  }
  await site.server.query(flip, [at]);
  await site.server.query("alter table tenure_log enable trigger user");
  expect((await leader.call("/api/events/verify", { key })).body).toMatchObject({ valid: true });
});
