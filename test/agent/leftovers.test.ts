// Issue 6: a cancelled or lease-lost job leaves no process behind, grandchildren included, 200 times. Each job is a tree with
// a child, a grandchild in a session of its own and a daemon without parents.

import { afterAll, beforeAll, expect, test } from "vitest";
import { type Client, createClient } from "../../src/entry/client.ts";
import { OPERATOR_KEY as key, startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";
import { Pids, TestAgent, TREE, TREE_SIZE } from "./test-agent.ts";

const AT_ONCE = 25;
const ROUNDS = 4;
const LIMIT_MS = 200_000;

let cluster: TenureCluster;
let client: Client;

beforeAll(async () => {
  cluster = await startTenureCluster({ nodes: 1 });
  client = createClient({ urls: cluster.urls, key, timeoutMs: 60_000 });
});

afterAll(() => cluster?.end());

async function submitTrees(agent: TestAgent, pids: Pids): Promise<readonly string[]> {
  const request = agent.request(["sh", "-c", TREE], pids.env, { lossesMax: 100 });
  return await client.submitMany(Array.from({ length: AT_ONCE }, () => request));
}

test(
  "100 cancelled jobs",
  async () => {
    const flags = ["--capacity", `${AT_ONCE + 1}`, "--lease", "30s", "--grace", "200ms"];
    const agent = await TestAgent.start("cancelled", cluster.urls, flags);
    for (let round = 1; round <= ROUNDS; round++) {
      const pids = new Pids();
      const ids = await submitTrees(agent, pids);
      await pids.ready(AT_ONCE * TREE_SIZE);
      await Promise.all(ids.map((id) => client.cancel(id)));
      for (const id of ids) expect((await client.wait(id)).state).toBe("cancelled");
      expect(pids.all()).toHaveLength(AT_ONCE * TREE_SIZE);
      expect(pids.living()).toEqual([]);
    }
    expect(agent.lines("job_aborted").filter(({ reason }) => reason === "cancelled")).toHaveLength(AT_ONCE * ROUNDS);
  },
  LIMIT_MS,
);

test(
  "100 lost leases",
  async () => {
    const agent = await TestAgent.start("lost", cluster.urls, ["--capacity", `${AT_ONCE}`, "--lease", "5s"]);
    const node = cluster.node("n1");
    const pids = new Pids();
    await submitTrees(agent, pids);
    for (let round = 1; round <= ROUNDS; round++) {
      await pids.ready(AT_ONCE * TREE_SIZE);
      const before = agent.lines("job_aborted").length;
      await node.kill9();
      await agent.said("job_aborted", before + AT_ONCE);
      expect(pids.living()).toEqual([]);
      if (round < ROUNDS) node.start();
    }
    expect(agent.lines("job_aborted").filter(({ reason }) => reason === "lease-lost").length).toBeGreaterThanOrEqual(
      AT_ONCE * ROUNDS,
    );
    agent.child.kill("SIGTERM");
    await agent.said("draining");
    agent.child.kill("SIGTERM");
    await agent.exit;
    await waitFor("nobody", () => pids.living().length === 0);
  },
  LIMIT_MS,
);
