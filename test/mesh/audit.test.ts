// A site's whole history, proven from outside with nothing but the hash of its ring of keys: of one node and of three, over the death of a
// leader and over a recovery; and every lie about it is named.

import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { done, leadsAlone } from "../server/test-last-resorts.ts";
import type { TenureCluster, TenureNode } from "../servers/index.ts";
import { auditOf, happen, HIDDEN, liar, ownOf, ringOf, startSite } from "./test-site.ts";

type Items = (string | { hash: string })[];

function changeText(items: Items, at: number, change: (text: string) => string): void {
  const text = items[at];
  if (typeof text !== "string") throw new Error(`item ${at} has no text`);
  items[at] = change(text);
  if (items[at] === text) throw new Error(`item ${at} was not changed`);
}

describe("a site of one node", () => {
  let site: TenureCluster;
  let node: TenureNode;
  let ring = "";

  beforeAll(async () => {
    site = await startSite(1, "alpha");
    node = site.node("n1");
    await happen(node, 20);
    ring = await ringOf(node, 1);
    await happen(node, 3);
  }, 120_000);
  afterAll(() => site?.end());

  test("everything is proven, also what was written before there was a ring; texts of keys never leave", async () => {
    const proven = await auditOf(node.url, "--ring", ring);
    expect(proven).toMatchObject({ code: 0, valid: true, ring, pinned: true });
    expect(proven.lines).toMatchObject([{ generation: 1, first: 1, withheld: 2, ring_changes: 0 }]);
    expect(proven.lines![0]!.through).toBe((await ownOf(node))!.size);
    const { line } = (await ownOf(node))!;
    const { body } = await node.call(`/v1/mesh/pages?line=${line}&after=0`, { key: site.key });
    expect(JSON.stringify(body)).not.toContain("key:created");
  });

  test("another ring, and a key that is not in it, are refused", async () => {
    expect(await auditOf(node.url, "--ring", "0".repeat(64))).toMatchObject({ code: 1, valid: false });
    const key = `${"A".repeat(43)}=`;
    expect(await auditOf(node.url, "--public-key", key)).toMatchObject({
      code: 1,
      problem: expect.stringContaining(key),
    });
  });

  const OTHER_DIGIT = (digit: string): string => (digit === "0" ? "1" : "0");
  const LIES: readonly [string, (items: Items) => void, number | null][] = [
    ["a byte of an event", (items) => changeText(items, 6, (text) => text.replace("ünïcode", "ünïcodf")), 7],
    [
      "the hash that an event names",
      (items) => changeText(items, 6, (text) => text.replace(/(?<="previousHash":")./, OTHER_DIGIT)),
      7,
    ],
    ["an event to what is no JSON", (items) => changeText(items, 4, (text) => text.slice(1)), 5],
    [
      "the hash of an event that is withheld",
      (items) => void (items[items.length - 1] = { hash: "0".repeat(64) }),
      null,
    ],
    ["an event to nothing", (items) => void items.splice(3, 1), null],
    ["an event to a hash", (items) => void (items[3] = { hash: "0".repeat(64) }), null],
  ];
  test.each(LIES)("a server that changes %s is named", async (_what, change, place) => {
    const lying = await liar(node.url, ({ items }) => change(items));
    onTestFinished(() => lying.end());
    const found = await auditOf(lying.url, "--ring", ring);
    expect(found).toMatchObject({ code: 1, valid: false, problem: expect.any(String) });
    if (place !== null) expect(found.sequence).toBe(place);
  });

  test("a server that hides events that it has signed, is named", async () => {
    const none = await liar(node.url, () => HIDDEN);
    onTestFinished(() => none.end());
    expect(await auditOf(none.url, "--ring", ring)).toMatchObject({ code: 1, sequence: 1 });
  });

  test("a forged signature is named", async () => {
    const lying = await liar(node.url, (page) => (page.checkpoint = page.checkpoint.replace(/.{4}\n$/, "AAA=\n")));
    onTestFinished(() => lying.end());
    expect(await auditOf(lying.url, "--ring", ring)).toMatchObject({ code: 1, valid: false });
  });

  test("a recovered site goes on in the next generation, which names where the one before ended", async () => {
    const before = (await ownOf(node))!;
    await node.term();
    await done("server", "recover", "--force-new-cluster", "--config", node.configFile);
    await leadsAlone(node);
    await happen(node, 2);
    const next = await ringOf(node, 1, 2);
    await happen(node, 2);
    // By the ring of the first generation: a key that it had signs the next one.
    for (const pinned of [ring, next]) {
      const proven = await auditOf(node.url, "--ring", pinned);
      expect(proven).toMatchObject({ code: 0, valid: true, ring: next });
      expect(proven.lines).toMatchObject([
        { generation: 1, first: 1, through: before.size },
        { generation: 2, first: before.size + 1 },
      ]);
    }
    expect((await ownOf(node))!.line).not.toBe(before.line);
  }, 120_000);
});

test("a site of three nodes: any of them proves all, also after its leader was killed", async () => {
  const site = await startSite(3, "beta");
  onTestFinished(() => site.end());
  const leader = site.node(await site.leader());
  await happen(leader, 5);
  const ring = await ringOf(leader, 3);
  for (const node of site.nodes) {
    await ringOf(node, 3);
    expect(await auditOf(node.url, "--ring", ring)).toMatchObject({ code: 0, valid: true, pinned: true });
  }
  await leader.kill9();
  const next = site.node(await site.waitForLeader(leader.id));
  await happen(next, 5);
  for (const node of site.nodes.filter(({ id }) => id !== leader.id)) {
    const proven = await auditOf(node.url, "--ring", ring);
    expect(proven).toMatchObject({ code: 0, valid: true, ring });
  }
}, 240_000);
