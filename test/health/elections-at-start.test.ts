// A vote that is won by a node which is still starting has to be in what that node shows. After an outage of a majority:
// elections-after-outage.test.ts.

import { createHash } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { diagnosticsOf } from "../../src/cli/server/diagnostics.ts";
import { startServerNode, type ServerNode } from "../../src/node/worlds/embedded.ts";
import { parseServerConfig } from "../../src/contract/index.ts";
import { electionConfig } from "../../src/core/raft/index.ts";
import { openLogSink } from "../../src/drivers/telemetry/index.ts";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { freePort, waitFor } from "../servers/index.ts";

/** A lone voter has won before the threads of the views have started. */
const AT_ONCE = { election_timeout_min_ms: 5, election_timeout_max_ms: 8, heartbeat_interval_ms: 2 };

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
  const node = await startServerNode(config, {
    bootstrap,
    version: "0",
    logs,
    diagnostics: () => diagnosticsOf(config, logs),
    onFatal,
  });
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
    // After those in which its own vote came late to the disk.
    expect(elections[0]).toMatchObject({ term, stage: "vote", result: "won" });
    await node.stop();
  }
});
