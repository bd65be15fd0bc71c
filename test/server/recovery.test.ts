// The last resorts, by the documented commands (docs/runbooks/cluster-restore.md, cluster-lost-quorum.md), on real processes: a
// snapshot becomes a new cluster of three, and one survivor of three becomes one. Nothing that was saved is lost, and
// epochs lie above all that anybody was ever granted.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { tenure } from "../cli/test-tenure.ts";
import {
  CALM_ELECTION,
  CLIENT_KEY,
  startTenureCluster,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";
import { accessTo, done, leadsAlone, letIn } from "./test-last-resorts.ts";
import { Ledger } from "./test-ledger.ts";

let cluster: TenureCluster;
let ledger: Ledger;

beforeAll(async () => {
  cluster = await startTenureCluster({ election: CALM_ELECTION });
  ledger = new Ledger(cluster);
  for (let write = 0; write < 5; write++) await ledger.write();
}, 120_000);

afterAll(() => cluster?.end());

/** It grants again, above everything before, and says so itself. */
async function expectAbove(before: number): Promise<void> {
  expect(await ledger.write()).toBeGreaterThan(before);
  expect(await ledger.lost()).toEqual([]);
}

test("a snapshot is saved, verified and restored as a new cluster, which grows to three again", async () => {
  const [first, ...others] = cluster.nodes as [TenureNode, TenureNode, TenureNode];
  const { cluster_id: old } = (await first.view())!;
  const file = join(cluster.directory, "nightly.snap");
  await done("cluster", "snapshot", "save", file, ...accessTo(cluster));
  await done("cluster", "snapshot", "verify", file);
  // Granted after the snapshot was saved: lost with the old cluster, and never granted twice.
  const later = new Ledger(cluster);
  const before = await later.write();
  for (const node of cluster.nodes) expect(await node.term()).toBe(0);

  const refused = await tenure("server", "restore", "--snapshot", file, "--config", first.configFile);
  expect(refused.code).toBe(78);
  first.wipe();
  const damaged = join(cluster.directory, "damaged.snap");
  const bytes = readFileSync(file);
  bytes[bytes.length >> 1]! ^= 1;
  writeFileSync(damaged, bytes);
  expect(await tenure("cluster", "snapshot", "verify", damaged)).toMatchObject({ code: 65 });
  const spoilt = await tenure("server", "restore", "--snapshot", damaged, "--config", first.configFile);
  expect(spoilt).toMatchObject({ code: 65 });

  await done("server", "restore", "--snapshot", file, "--config", first.configFile);
  await leadsAlone(first);
  await done("cluster", "status", ...accessTo(cluster, [first]));
  expect((await first.view())?.cluster_id).not.toBe(old);
  await letIn(cluster, first, others);
  await expectAbove(before);
});

test("one survivor of three becomes a new cluster by force, and the others come back with empty disks", async () => {
  const survivor = cluster.node(await cluster.leader());
  const others = cluster.nodes.filter(({ id }) => id !== survivor.id);
  const before = await ledger.write();
  const { cluster_id: old } = (await survivor.view())!;
  await Promise.all(others.map((node) => node.kill9()));
  await waitFor("nobody to lead", async () => (await survivor.view())?.leader === null);
  const command = ["server", "recover", "--force-new-cluster", "--config", survivor.configFile];
  // It runs: its directory is its own.
  expect(await tenure(...command)).toMatchObject({ code: 78 });
  await survivor.term();
  expect(await tenure("server", "recover", "--config", survivor.configFile)).toMatchObject({ code: 64 });
  const said = await done(...command);
  expect(said).toContain("tenure member add");
  await leadsAlone(survivor);
  const view = (await survivor.view())!;
  expect(view.cluster_id).not.toBe(old);
  expect(view.members).toHaveLength(1);
  // One that comes back with its old disk belongs to the old cluster, and is refused by the new one.
  const [late] = others as [TenureNode, TenureNode];
  late.start();
  await waitFor("the old disk to be refused", async () => {
    const { body } = await survivor.call<{ text: string }>("/metrics", { key: CLIENT_KEY });
    return /refused_total\{reason="other-cluster"\} [1-9]/.test(body.text);
  });
  await letIn(cluster, survivor, others);
  await expectAbove(before);
});
