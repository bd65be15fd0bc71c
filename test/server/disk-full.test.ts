// The leader's disk fills up while clients write: a small file system of its own, which only root may mount. Where that can't
// be done the test is skipped, and says so.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  CALM_ELECTION,
  CLIENT_KEY,
  OPERATOR_KEY,
  startTenureCluster,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";
import { SmallDisk } from "../servers/small-disk.ts";
import { Ledger } from "./test-ledger.ts";

const SIZE_BYTES = 16 * 1024 * 1024;
/** No warning on the way: a leader that is low refuses new holds, and its last write might never be tried. */
const MIN_FREE_BYTES = 0;

describe.skipIf(!SmallDisk.isPossible)("a leader whose disk is full", () => {
  let cluster: TenureCluster;
  let small: TenureNode;
  let disk: SmallDisk | undefined;

  beforeAll(async () => {
    cluster = await startTenureCluster({
      election: CALM_ELECTION,
      prepare: (node) => {
        node.configure({ disk: { min_free_bytes: MIN_FREE_BYTES } });
        if (node.id === "n1") disk = SmallDisk.mount(node.dataDir, SIZE_BYTES);
      },
    });
    small = cluster.node("n1");
  }, 120_000);

  afterAll(async () => {
    await small?.kill9();
    disk?.unmount();
    await cluster?.end();
  });

  test("gives way to one that has room, answers reads, loses nothing, and is whole again when there is room", async () => {
    const ledger = new Ledger(cluster);
    if ((await cluster.leader()) !== small.id) {
      const leader = cluster.node(await cluster.leader());
      await leader.call("/v1/admin/transfer", { key: OPERATOR_KEY, body: { target: small.id } });
      await cluster.steady();
    }
    for (let write = 0; write < 5; write++) await ledger.write();
    expect(await cluster.leader()).toBe(small.id);
    const filler = join(small.dataDir, "filler");
    disk?.fill(filler);
    // What was reserved for the log is used up first: by several, and on a busy machine that takes its time.
    ledger.begin(8);
    await cluster.waitForLeader(small.id, 90_000);
    await ledger.progress(5);
    const alerts = async (): Promise<string[]> => ((await small.view())?.alerts ?? []).map(({ name }) => name);
    await waitFor("its alert", async () =>
      (await alerts()).some((name) => name === "disk_full" || name === "disk_low"),
    );
    expect((await small.call("/v1/scopes", { key: CLIENT_KEY })).status).toBe(200);
    rmSync(filler);
    await waitFor("the alert to end", async () => !(await alerts()).some((name) => name.startsWith("disk_")));
    await ledger.progress(3);
    await ledger.rest();
    await cluster.steady();
    const commit = (await cluster.node(await cluster.leader()).view())?.commit ?? 0;
    await waitFor("it to catch up", async () => ((await small.view())?.applied ?? 0) >= commit);
    expect(await ledger.lost()).toEqual([]);
  });
});
