// Readers of events that outlive the promotion of a standby without the end of the log (trap 82): the nodes end themselves and are
// started again, the log grows past what was lost, and each reader gets all of it or the named error.

import { randomUUID } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { ChainedReader, EventReader, problemsOf } from "../servers/event-readers.ts";
import { key, startSite, waitFor } from "./test-site.ts";

test("a standby without the end is promoted: each reader gets the named error, with the last common event, and then all events", async () => {
  const site = await startSite({ nodes: 2 });
  onTestFinished(() => site.end());
  const { nodes, urls } = site.cluster;
  const readers = [
    new EventReader({ name: "events()", urls, key }),
    new EventReader({ name: "events() of submitted jobs", urls, key, types: ["build:submitted"] }),
    new ChainedReader(urls, key),
  ] as const;
  onTestFinished(async () => void (await Promise.all(readers.map((reader) => reader.stop()))));
  await site.submitMany(5, randomUUID());
  const standby = await site.server.standby();
  onTestFinished(() => standby.end());
  await standby.caughtUp(site.server);
  await standby.query("alter system set primary_conninfo = ''");
  await standby.query("select pg_reload_conf()");
  await waitFor("the standby to receive nothing more", async () => {
    return (await standby.query("select from pg_stat_wal_receiver")).length === 0;
  });
  const common = (await site.events(await site.leader())).length;
  await site.submitMany(3, randomUUID());
  await waitFor("the readers to have seen what will be lost", async () =>
    readers.every(({ last }) => last === common + 3),
  );
  await site.server.kill();
  await standby.promote();
  for (const proxy of site.proxies.values()) {
    proxy.swap({ host: "127.0.0.1", port: standby.port });
    proxy.reset();
  }
  for (const node of nodes) {
    expect((await node.ended()).code).toBe(74);
    node.start();
  }
  await site.cluster.steady();
  await site.submitMany(6, randomUUID());
  const [all, some, chained] = readers;
  const history = await site.events(await site.leader());
  expect(history.length).toBeGreaterThan(common + 3);
  await waitFor("the readers to go on", async () => {
    return [all, some].every(({ last }) => last >= history.length) && chained.rewrites.length > 0;
  });
  expect(readers.flatMap((reader) => problemsOf(reader, history))).toEqual([]);
  expect(all.rewrites).toEqual([{ seen: common + 3, common }]);
  expect(some.rewrites).toHaveLength(1);
}, 300_000);
