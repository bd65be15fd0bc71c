// The steps that the runbooks of a lost cluster have in common (docs/runbooks/cluster-restore.md, cluster-lost-quorum.md): one node
// begins anew, leads alone, and lets the others in with empty disks.

import { expect } from "vitest";
import { tenure } from "../cli/test-tenure.ts";
import { type TenureCluster, type TenureNode, waitFor } from "../servers/index.ts";

/** What a command of the runbook prints; it must succeed. */
export async function done(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await tenure(...args);
  expect({ args, code, stderr }).toMatchObject({ code: 0 });
  return stdout;
}

export function accessTo(cluster: TenureCluster, nodes: readonly TenureNode[] = cluster.nodes): string[] {
  return ["--url", nodes.map(({ url }) => url).join(","), "--key", cluster.key];
}

export async function leadsAlone(node: TenureNode): Promise<void> {
  node.start();
  await waitFor("it to lead alone", async () => (await node.view())?.role === "LEADER");
}

/** The others come in with empty disks. All end first: one that still runs belongs to the old cluster, and would take them in there. */
export async function letIn(cluster: TenureCluster, first: TenureNode, others: readonly TenureNode[]): Promise<void> {
  for (const node of others) await node.kill9();
  for (const node of others) {
    node.wipe();
    node.start();
    // "never shook hands with it": it is still starting.
    await waitFor(`${node.id} to be let in`, async () => {
      const { code, stderr } = await tenure("member", "add", node.id, "--voter", ...accessTo(cluster, [first]));
      if (code !== 0) expect(stderr).toContain("never shook hands");
      return code === 0;
    });
  }
  await cluster.steady();
}
