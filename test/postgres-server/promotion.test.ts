// The primary dies and its standby is promoted: the nodes go on there, in epochs and under an author of the new timeline.

import { randomUUID } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { key, startSite, waitFor } from "./test-site.ts";

test("after a promotion the site goes on: higher epochs, another author, one unbroken chain", async () => {
  const site = await startSite({ nodes: 2 });
  onTestFinished(() => site.end());
  const standby = await site.server.standby();
  onTestFinished(() => standby.end());
  const kept = await site.submit({ kind: randomUUID() });
  await waitFor("the standby to have all of it", async () => {
    const at = "select position from tenure_log_head";
    const [here, there] = await Promise.all([site.server, standby].map((one) => one.query<{ position: string }>(at)));
    return here?.[0]?.position === there?.[0]?.position;
  });
  const { cluster_id: siteId } = (await (await site.leader()).view())!;
  await site.server.kill();
  await standby.promote();
  for (const proxy of site.proxies.values()) {
    proxy.swap({ host: "127.0.0.1", port: standby.port });
    proxy.reset();
  }
  await waitFor("a leader on the new primary", async () => {
    const views = await Promise.all(site.cluster.nodes.map((node) => node.view()));
    return views.some((view) => view?.role === "LEADER" && view.term > 2 ** 32);
  });
  await site.submit({ kind: randomUUID() });
  const leader = await site.leader();
  expect((await leader.call(`/v1/jobs/${kept}?consistency=linearizable`, { key })).status).toBe(200);
  const events = await site.events(leader);
  const authors = [...new Set(events.map(({ sourceControllerId }) => sourceControllerId))];
  expect(authors).toEqual([`${siteId}.1`, `${siteId}.2`]);
  expect((await leader.call("/api/events/verify", { key })).body).toMatchObject({
    valid: true,
    throughSequence: events.length,
  });
}, 120_000);
