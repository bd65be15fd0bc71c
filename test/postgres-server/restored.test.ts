// A backup of the database is restored under a controller that runs: the log is an older one, and epochs go back with it. No node
// goes on above it: each that has applied what is not there ends with CHAIN_BROKEN, and started again shows what is there. Files are
// restored with the server stopped; a dump of the tables is restored with every session alive.

import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { copyDirectory, removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { serverAccount } from "../servers/server-process.ts";
import type { TenureNode } from "../servers/index.ts";
import { key, type Site, startSite, waitFor } from "./test-site.ts";

const TABLES = ["tenure_log", "tenure_log_head", "tenure_log_snapshot", "tenure_leader_state"];

async function started(): Promise<Site> {
  const site = await startSite({ nodes: 2 });
  onTestFinished(() => site.end());
  return site;
}

/** A copy of the server's files as they are now; it is stopped for that. Resolves to what puts them back. */
async function backup(site: Site): Promise<() => Promise<void>> {
  const base = await temporaryDirectory("backup", serverAccount);
  onTestFinished(() => removeDirectory(base));
  const copy = join(base, "data");
  const { dataDirectory } = site.server;
  await site.server.stop();
  await copyDirectory(dataDirectory, copy, serverAccount);
  await site.server.start();
  await site.cluster.steady();
  return async () => {
    await site.server.stop();
    await rm(dataDirectory, { recursive: true });
    await copyDirectory(copy, dataDirectory, serverAccount);
    await site.server.start();
  };
}

/** The same of the tables alone, in one transaction, while everybody is connected: as a dump is restored. */
async function dump(site: Site): Promise<() => Promise<void>> {
  const name = `dump_${randomUUID().replaceAll("-", "")}`;
  await site.server.query(
    `create schema ${name}; ${TABLES.map((one) => `create table ${name}.${one} as table ${one};`).join("")}`,
  );
  const fill = (one: string): string => `delete from ${one}; insert into ${one} select * from ${name}.${one};`;
  return async () => {
    // Without triggers and foreign keys, as a restore of data alone goes.
    await site.server.query(`begin; set local session_replication_role = replica; ${TABLES.map(fill).join("")} commit`);
  };
}

async function listed(node: TenureNode, kind: string): Promise<string[]> {
  const { body } = await node.call<{ jobs: { id: string }[] }>(`/v1/jobs?kind=${kind}`, { key });
  return body.jobs.map(({ id }) => id).toSorted();
}

async function everywhere(site: Site, id: string): Promise<void> {
  for (const node of site.cluster.nodes) {
    await waitFor(`${node.id} to have ${id}`, async () => (await node.call(`/v1/jobs/${id}`, { key })).status === 200);
  }
}

async function endsBroken(node: TenureNode): Promise<void> {
  const { code, log } = await node.ended();
  expect([code, log]).toEqual([74, expect.stringContaining("CHAIN_BROKEN")]);
}

async function soundWith(site: Site, kind: string, ids: readonly string[]): Promise<void> {
  for (const node of site.cluster.nodes) {
    await waitFor(`${node.id} to list them`, async () => (await listed(node, kind)).length === ids.length);
    expect(await listed(node, kind)).toEqual(ids.toSorted());
    expect((await node.call("/api/events/verify", { key })).body).toMatchObject({ valid: true });
  }
}

test.each([
  ["the server's files", backup],
  ["a dump of the tables, with all sessions alive,", dump],
])(
  "%s of before: every node ends, says so, and started again shows what is there",
  async (_, save) => {
    const site = await started();
    const kind = randomUUID();
    const kept = await site.submit({ kind });
    const restore = await save(site);
    const lost = await site.submit({ kind });
    await everywhere(site, lost);
    await restore();
    for (const node of site.cluster.nodes) {
      await endsBroken(node);
      node.start();
    }
    await site.cluster.steady();
    const later = await site.submit({ kind });
    await soundWith(site, kind, [kept, later]);
    for (const node of site.cluster.nodes) expect((await node.call(`/v1/jobs/${lost}`, { key })).status).toBe(404);
  },
  120_000,
);

test("a node that was cut off meanwhile, and finds a log that is as long as its own again, ends too", async () => {
  const site = await started();
  const kind = randomUUID();
  const kept = await site.submit({ kind });
  const restore = await backup(site);
  const lost = await site.submit({ kind });
  await everywhere(site, lost);
  const [cut, other] = site.cluster.nodes as [TenureNode, TenureNode];
  site.proxy(cut.id).cut();
  await restore();
  await endsBroken(other);
  other.start();
  const later: string[] = [];
  await waitFor("the other to lead", async () => (await other.view())?.role === "LEADER");
  while (later.length < 3) {
    const { status, body } = await other.call<{ id: string }>("/v1/jobs", { key, body: { kind } });
    expect(status).toBe(200);
    later.push(body.id);
  }
  await site.proxy(cut.id).heal();
  await endsBroken(cut);
  cut.start();
  await site.cluster.steady();
  await soundWith(site, kind, [kept, ...later]);
}, 120_000);
