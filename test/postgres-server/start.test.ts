// The database goes away for a moment while a node starts, at every moment of the start in turn: the node waits for it, and is
// then what it was. It must not end itself, and must not take its lists for those of another history.

import { randomUUID } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import type { TenureNode } from "../servers/index.ts";
import { key, type Site, startSite, waitFor } from "./test-site.ts";

const AWAY_MS = 100;

/** Starts the node anew; the database is away from its `word`-th word to it on. Resolves to the number of its words. */
async function startLosing(site: Site, node: TenureNode, word: number): Promise<number> {
  await node.kill9();
  const proxy = site.proxy(node.id);
  let words = 0;
  const away = new Promise<void>((resolve, reject) => {
    proxy.rewrite = (bytes) => {
      if (++words === word) {
        proxy.cut("both", "refused");
        proxy.reset();
        setTimeout(() => void proxy.heal().then(resolve, reject), AWAY_MS);
      }
      return bytes;
    };
  });
  node.start();
  const { pid } = node;
  if (word > 0) await away;
  await waitFor("the node to answer", async () => {
    if (node.pid !== pid) throw new Error(`it ended itself with ${node.exitCode} at word ${word}: ${node.log()}`);
    return (await node.view()) !== null;
  });
  proxy.rewrite = undefined;
  return words;
}

test("the database goes away at any moment of a node's start: it waits, and shows what it showed", async () => {
  const site = await startSite({ nodes: 1 });
  onTestFinished(() => site.end());
  const [node] = site.cluster.nodes as [TenureNode];
  const kind = randomUUID();
  const ids = [await site.submit({ kind }), await site.submit({ kind })];
  const listed = async (): Promise<string[]> => {
    const { body } = await node.call<{ jobs: { id: string }[] }>(`/v1/jobs?kind=${kind}`, { key });
    return body.jobs.map(({ id }) => id);
  };
  await waitFor("them to be listed", async () => (await listed()).length === ids.length);
  const words = await startLosing(site, node, 0);
  expect(words).toBeGreaterThan(5);
  for (let word = 1; word <= words; word++) {
    await startLosing(site, node, word);
    expect(node.log()).not.toContain("lists are made anew");
    expect((await listed()).toSorted()).toEqual(ids.toSorted());
  }
}, 300_000);
