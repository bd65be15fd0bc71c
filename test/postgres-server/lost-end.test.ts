// The database loses the end of the log: a standby is promoted without it, a backup is restored. What a node had shown of it must
// be gone, from a node that runs meanwhile and from the lists of one that was down.

import { randomUUID } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import type { TenureNode } from "../servers/index.ts";
import { key, type Site, startSite, waitFor } from "./test-site.ts";

async function listed(node: TenureNode, kind: string): Promise<string[]> {
  const { body } = await node.call<{ jobs: { id: string }[] }>(`/v1/jobs?kind=${kind}`, { key });
  return body.jobs.map(({ id }) => id);
}

async function headOf(site: Pick<Site, "server">): Promise<number> {
  const [row] = await site.server.query<{ position: number }>("select position::int as position from tenure_log_head");
  return row!.position;
}

test("lists of a history that was lost are made anew, also where the log has grown past them since", async () => {
  const site = await startSite({ nodes: 2 });
  onTestFinished(() => site.end());
  const kind = randomUUID();
  const kept = await site.submit({ kind });
  const end = await headOf(site);
  const lost = await site.submit({ kind });
  const [first, second] = site.cluster.nodes as [TenureNode, TenureNode];
  await waitFor("it to be listed", async () => (await listed(first, kind)).length === 2);
  for (const node of [first, second]) await node.kill9();
  second.wipe();
  await site.server.query(`alter table tenure_log_head disable trigger user;
    delete from tenure_log where position > ${end}; update tenure_log_head set position = ${end};
    alter table tenure_log_head enable trigger user`);
  second.start();
  await site.leader();
  const after = [await site.submit({ kind }), await site.submit({ kind }), await site.submit({ kind })];
  expect(await headOf(site)).toBeGreaterThan(end + 1);
  first.start();
  await site.cluster.steady();
  const expected = [kept, ...after].toSorted();
  await waitFor("the lists to be those of the log", async () => (await listed(first, kind)).length === 4);
  expect((await listed(first, kind)).toSorted()).toEqual(expected);
  expect((await first.call(`/v1/jobs/${lost}`, { key })).status).toBe(404);
}, 120_000);

test("lists of the history that is there are kept", async () => {
  const site = await startSite({ nodes: 1 });
  onTestFinished(() => site.end());
  const kind = randomUUID();
  const [node] = site.cluster.nodes as [TenureNode];
  const ids = [await site.submit({ kind }), await site.submit({ kind })];
  await waitFor("it to be listed", async () => (await listed(node, kind)).length === 2);
  await node.kill9();
  node.start();
  await site.leader();
  expect((await listed(node, kind)).toSorted()).toEqual(ids.toSorted());
  expect(node.log()).not.toContain("lists are made anew");
}, 60_000);

test("a node that runs while a standby without the end is promoted ends itself, and started again shows what is there", async () => {
  const site = await startSite({ nodes: 2 });
  onTestFinished(() => site.end());
  const kind = randomUUID();
  const kept = await site.submit({ kind });
  const standby = await site.server.standby();
  onTestFinished(() => standby.end());
  await standby.caughtUp(site.server);
  await standby.query("alter system set primary_conninfo = ''");
  await standby.query("select pg_reload_conf()");
  await waitFor("the standby to receive nothing more", async () => {
    return (await standby.query("select from pg_stat_wal_receiver")).length === 0;
  });
  const lost = await site.submit({ kind });
  const { nodes } = site.cluster;
  for (const node of nodes) {
    await waitFor(`${node.id} to have it`, async () => (await node.call(`/v1/jobs/${lost}`, { key })).status === 200);
  }
  await site.server.kill();
  await standby.promote();
  for (const proxy of site.proxies.values()) {
    proxy.swap({ host: "127.0.0.1", port: standby.port });
    proxy.reset();
  }
  for (const node of nodes) {
    const { code, log } = await node.ended();
    expect(code).toBe(74);
    expect(log).toContain("a standby was promoted without the end of the log");
    node.start();
  }
  await site.cluster.steady();
  const later = await site.submit({ kind });
  for (const node of nodes) {
    await waitFor(`${node.id} to list it`, async () => (await listed(node, kind)).includes(later));
    expect((await listed(node, kind)).toSorted()).toEqual([kept, later].toSorted());
    expect((await node.call(`/v1/jobs/${lost}`, { key })).status).toBe(404);
  }
}, 120_000);
