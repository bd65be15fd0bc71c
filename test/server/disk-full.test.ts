// The leader's disk fills up while clients write: a small file system of its own, which only root may mount. Where that can't
// be done the test is skipped, and says so.

import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
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
import { findProgram } from "../servers/server-process.ts";
import { Ledger } from "./test-ledger.ts";

const SIZE_BYTES = 16 * 1024 * 1024;
/** No warning on the way: a leader that is low refuses new holds, and its last write might never be tried. */
const MIN_FREE_BYTES = 0;

function mount(directory: string): boolean {
  if (findProgram("mount") === undefined || findProgram("umount") === undefined) return false;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const flags = ["-t", "tmpfs", "-o", `size=${SIZE_BYTES},mode=0700`, "tmpfs", directory];
  return spawnSync(findProgram("mount") ?? "", flags, { stdio: "ignore" }).status === 0;
}

function unmount(directory: string): void {
  spawnSync(findProgram("umount") ?? "", ["-l", directory], { stdio: "ignore" });
}

function mayMount(): boolean {
  const probe = mkdtempSync(join(tmpdir(), "tenure-mount-"));
  const may = mount(probe);
  if (may) unmount(probe);
  rmdirSync(probe);
  return may;
}

describe.skipIf(!mayMount())("a leader whose disk is full", () => {
  let cluster: TenureCluster;
  let small: TenureNode;

  beforeAll(async () => {
    cluster = await startTenureCluster({
      election: CALM_ELECTION,
      prepare: (node) => {
        node.configure({ disk: { min_free_bytes: MIN_FREE_BYTES } });
        if (node.id === "n1") mount(node.dataDir);
      },
    });
    small = cluster.node("n1");
  }, 120_000);

  afterAll(async () => {
    await small?.kill9();
    if (small !== undefined) unmount(small.dataDir);
    await cluster?.end();
  });

  function fill(file: string): void {
    const descriptor = openSync(file, "w");
    try {
      const chunk = new Uint8Array(64 * 1024);
      for (let written = 0; written < SIZE_BYTES;) written += writeSync(descriptor, chunk);
      throw new Error("the small file system holds more than its size");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    } finally {
      closeSync(descriptor);
    }
  }

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
    fill(filler);
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
