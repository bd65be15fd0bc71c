// `tenure server start` starts itself again in its own place to get large pages (src/cli/server/memory.ts): seen from outside it is
// one process, which the same signals end.

import { readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { startTenureCluster, type TenureNode } from "../servers/index.ts";

test.skipIf(process.platform !== "linux")(
  "a server has large pages under the number that it was started with, and ends in order (Linux: needs /proc)",
  async () => {
    const cluster = await startTenureCluster({ nodes: 1 });
    onTestFinished(() => cluster.end());
    const [node] = cluster.nodes as [TenureNode];
    await cluster.waitForLeader();
    expect(readFileSync(`/proc/${node.pid}/environ`, "latin1")).toContain("GLIBC_TUNABLES=glibc.malloc.hugetlb=1");
    expect(await node.term()).toBe(0);
  },
  60_000,
);
