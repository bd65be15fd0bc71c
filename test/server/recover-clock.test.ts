// The epochs of a recovered cluster begin where the clock says, whichever clock that is. One server in this process, so that the
// clock can be given.

import { createHash, randomUUID } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { diagnosticsOf } from "../../src/cli/server/diagnostics.ts";
import { parseServerConfig, type ServerConfig } from "../../src/contract/index.ts";
import { electionConfig } from "../../src/core/raft/index.ts";
import { EPOCHS_PER_GENERATION } from "../../src/core/scopes/index.ts";
import { openLogSink } from "../../src/drivers/telemetry/index.ts";
import { createClient } from "../../src/entry/client.ts";
import { startServerNode } from "../../src/node/worlds/embedded.ts";
import { GENERATION_MS } from "../../src/node/worlds/limits.ts";
import { recoverDirectory } from "../../src/node/worlds/recover.ts";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { freePort, waitFor } from "../servers/index.ts";

const KEY = "operator-key-of-the-test";
const LATER_MS = Date.UTC(2030, 0, 1);

async function configIn(directory: string): Promise<ServerConfig> {
  const file = {
    node_id: "n1",
    data_dir: directory,
    peer: { listen: `127.0.0.1:${await freePort()}` },
    api: { listen: `127.0.0.1:${await freePort()}` },
    keys: [{ name: "o", role: "operator", sha256: createHash("sha256").update(KEY).digest("hex") }],
  };
  return parseServerConfig(file, { environment: {}, configDir: directory, checkElection: electionConfig });
}

/** Of a scope that is granted by a server on this directory, which then stops. */
async function epochGranted(config: ServerConfig, scope: string, bootstrap: boolean): Promise<number> {
  const logs = openLogSink({ level: "silent", destination: "/dev/null" });
  const onFatal = (error: unknown): never => {
    throw error;
  };
  const diagnostics = () => diagnosticsOf(config, logs);
  const node = await startServerNode(config, { bootstrap, version: "0", logs, diagnostics, onFatal });
  onTestFinished(() => node.stop());
  await waitFor("it to lead", () => node.cluster.view().role === "LEADER");
  const { scopes } = createClient({ urls: [node.apiUrl], key: KEY });
  const campaign = { scope, session: randomUUID(), identity: "one", ttlMs: 10_000, waitMs: 10_000 };
  const grant = await scopes.acquire(campaign);
  await node.stop();
  if (!grant.granted) throw new Error(`${scope} was not granted`);
  return grant.epoch;
}

test("a recovered cluster grants epochs of the generation that its clock is in", async () => {
  const directory = await temporaryDirectory("recover-clock", undefined);
  onTestFinished(() => removeDirectory(directory));
  const config = await configIn(directory);
  expect(await epochGranted(config, "a", true)).toBeLessThan(EPOCHS_PER_GENERATION);
  await recoverDirectory(config, { wallMs: () => LATER_MS });
  const generation = Math.floor((LATER_MS - Date.UTC(2026, 0, 1)) / GENERATION_MS);
  expect(Math.floor((await epochGranted(config, "b", false)) / EPOCHS_PER_GENERATION)).toBe(generation);
});
