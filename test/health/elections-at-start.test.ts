// The vote that ends an outage is won by a node that is still starting: it has to be in what that node shows and counts.

import { createHash } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { startServerNode, type ServerNode } from "../../src/cli/server/node/node.ts";
import { parseServerConfig } from "../../src/contract/index.ts";
import { electionConfig } from "../../src/core/raft/index.ts";
import { openLogSink } from "../../src/drivers/telemetry/index.ts";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { freePort, startTenureCluster, waitFor } from "../servers/index.ts";

const LIMIT_MS = 120_000;
/** A lone voter has won before the threads of the views have started. */
const AT_ONCE = { election_timeout_min_ms: 5, election_timeout_max_ms: 8, heartbeat_interval_ms: 2 };
/** Shorter than the start of a node, and longer than a beat is late on a busy machine. */
const SOON = { election_timeout_min_ms: 80, election_timeout_max_ms: 160, heartbeat_interval_ms: 20 };

async function loneNode(directory: string, bootstrap: boolean): Promise<ServerNode> {
  const file = {
    node_id: "n1",
    data_dir: directory,
    peer: { listen: `127.0.0.1:${await freePort()}` },
    api: { listen: `127.0.0.1:${await freePort()}` },
    keys: [{ name: "o", role: "operator", sha256: createHash("sha256").update("key").digest("hex") }],
    election: AT_ONCE,
  };
  const config = parseServerConfig(file, { environment: {}, configDir: directory, checkElection: electionConfig });
  const logs = openLogSink({ level: "silent", destination: "/dev/null" });
  const onFatal = (error: unknown): never => {
    throw error;
  };
  const node = await startServerNode(config, { bootstrap, version: "0", logs, onFatal });
  onTestFinished(() => node.stop());
  return node;
}

test("a lone voter shows the first election that it wins, as a founder and started again", async () => {
  const directory = await temporaryDirectory("elections", undefined);
  onTestFinished(() => removeDirectory(directory));
  for (const bootstrap of [true, false]) {
    const node = await loneNode(directory, bootstrap);
    const { cluster } = node;
    await waitFor("it to lead", () => cluster.view().role === "LEADER");
    const { term, elections } = cluster.view();
    // Behind those in which its own vote came late to the disk.
    expect(elections[0]).toMatchObject({ term, stage: "vote", result: "won" });
    await node.stop();
  }
});

test("the winner behind an outage of the majority shows its win, and counts it", { timeout: LIMIT_MS }, async () => {
  const cluster = await startTenureCluster({ election: SOON });
  onTestFinished(() => cluster.end());
  const [last, ...others] = cluster.nodes;
  await Promise.all(cluster.nodes.map((node) => node.kill9()));
  // The third stays away: whoever wins has just started.
  for (const node of others) node.start();
  const winner = cluster.node(await cluster.waitForLeader(last!.id));
  const { term, elections } = (await winner.view())!;
  expect(elections, `of term ${term}`).toContainEqual(
    expect.objectContaining({ term, stage: "vote", result: "won", candidate: expect.stringContaining(winner.id) }),
  );
  const { body } = await winner.call<{ readonly text: string }>("/metrics", { key: cluster.key });
  expect(Number(/^tenure_election_count(?:\{.*\})? (\d+)/m.exec(body.text)?.[1])).toBeGreaterThan(0);
});
