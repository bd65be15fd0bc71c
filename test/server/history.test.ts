// The history of events on three server processes (design D12): every node is wiped in turn under load, bytes rot on a disk,
// and at the end every node serves the same events, byte for byte, from the first one on.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";
import {
  complete,
  expectSameHistory,
  HISTORY_ELECTION,
  Load,
  openFile,
  sealedFiles,
  SMALL_SEGMENTS,
  verified,
  viewed,
} from "./test-history.ts";

let cluster: TenureCluster;

beforeAll(async () => {
  // Snapshots often, and a short log: who comes back with an empty disk gets a snapshot, never the log from its start.
  cluster = await startTenureCluster({
    election: HISTORY_ELECTION,
    snapshots: { after_entries: 60, keep_entries: 20 },
    prepare: (node) => (node.nodeFlags = SMALL_SEGMENTS),
  });
}, 120_000);

afterAll(() => cluster?.end());

describe("history", () => {
  test("trap 56d: each of three nodes is wiped in turn under load, and all have the same bytes from the first event on", async () => {
    const load = new Load(cluster.urls);
    onTestFinished(() => load.stop());
    await load.more(60);
    const fetched: string[] = [];
    for (const { id } of cluster.nodes) {
      const node = cluster.node(id);
      await node.term();
      node.wipe();
      await load.more(20);
      node.start();
      await cluster.steady(90_000);
      await complete(node);
      fetched.push(...[...sealedFiles(node).keys()].map((name) => `${id} ${name}`));
    }
    await load.stop();
    // Sealed before anybody was wiped, so that no log was long enough to bring it back.
    expect(fetched.filter((name) => name.endsWith("events-0000000000000001"))).toHaveLength(3);
    await expectSameHistory(cluster.nodes, 0);
    const [one, two, three] = cluster.nodes.map((node) => sealedFiles(node));
    expect(one!.size).toBeGreaterThan(3);
    expect([two, three]).toEqual([one, one]);
  }, 400_000);

  test("a flipped byte of any event is named by verify, and mended from the other nodes", async () => {
    const node = cluster.nodes[1]!;
    const whole = sealedFiles(node);
    const names = [...whole.keys()];
    await viewed(node);
    await node.term();
    const spoilt = names.map((name, at) => flipEventIn(join(node.dataDir, name), (at + 1) / names.length));
    expect(spoilt.length).toBeGreaterThan(2);
    node.start();
    await cluster.steady(90_000);
    const named: number[] = [];
    await waitFor(
      "verify to find no more",
      async () => {
        const verdict = await verified(node);
        if (verdict.valid) return true;
        named.push(verdict.firstBrokenSequence);
        // Also while the segment before it is being fetched.
        return false;
      },
      90_000,
    );
    for (const sequence of spoilt) {
      expect(named).toContain(sequence);
      expect(node.log()).toContain(`is damaged at event ${sequence}: it is set aside`);
    }
    expect(sealedFiles(node)).toEqual(whole);
    await expectSameHistory(cluster.nodes, 0);
  }, 200_000);

  test("damage in the open segment is mended by the start itself: the log has what is cut", async () => {
    const node = cluster.nodes[2]!;
    const whole = sealedFiles(node);
    await node.term();
    const sequence = flipEventIn(openFile(node), 0);
    node.start();
    await cluster.steady(90_000);
    expect(node.log()).toMatch(new RegExp(`"sequence":${sequence}.*the archive was mended when it was opened`));
    expect(await verified(node)).toMatchObject({ valid: true });
    expect(sealedFiles(node)).toEqual(whole);
    await expectSameHistory(cluster.nodes, 0);
  }, 200_000);
});

/** One bit of one event's text, about so far into the file. Returns the event's sequence. */
function flipEventIn(path: string, share: number): number {
  const bytes = readFileSync(path);
  const from = Math.floor(bytes.length * share * 0.9);
  const mark = Buffer.from('"sequence":');
  const at = bytes.indexOf(mark, from);
  expect(at, "there is an event behind it").toBeGreaterThan(0);
  const sequence = Number(/^[0-9]+/.exec(bytes.subarray(at + mark.length, at + mark.length + 16).toString())![0]);
  bytes[at + 2]! ^= 1;
  writeFileSync(path, bytes);
  return sequence;
}
