// The registry of sites on a real server: a site in distributed mode registers others, expires them and knows them after a restart; one
// that is standalone lists itself. The id of a site is given at its founding, and stays.

import { expect, onTestFinished, test } from "vitest";
import { diagnosticsOf } from "../../src/cli/server/diagnostics.ts";
import { parseServerConfig, type ServerConfig, type ServerConfigFile } from "../../src/contract/index.ts";
import { electionConfig } from "../../src/core/raft/index.ts";
import { openLogSink } from "../../src/drivers/telemetry/index.ts";
import { type ServerNode, startServerNode } from "../../src/node/worlds/embedded.ts";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { freePort, waitFor } from "../servers/index.ts";

type Mesh = NonNullable<ServerConfigFile["mesh"]>;

interface Site {
  readonly directory: string;
  readonly configured: (mesh: Mesh) => ServerConfig;
}

async function site(): Promise<Site> {
  const directory = await temporaryDirectory("mesh-registry", undefined);
  onTestFinished(() => removeDirectory(directory));
  const file = {
    node_id: "n1",
    data_dir: directory,
    peer: { listen: `127.0.0.1:${await freePort()}` },
    api: { listen: `127.0.0.1:${await freePort()}` },
  };
  const surroundings = { environment: {}, configDir: directory, checkElection: electionConfig };
  return { directory, configured: (mesh) => parseServerConfig({ ...file, mesh }, surroundings) };
}

async function start(config: ServerConfig): Promise<ServerNode> {
  const logs = openLogSink({ level: "silent", destination: "/dev/null" });
  const diagnostics = (): ReturnType<typeof diagnosticsOf> => diagnosticsOf(config, logs);
  const options = { bootstrap: true, version: "1.0.0", logs, diagnostics, onFatal: () => undefined };
  const node = await startServerNode(config, options);
  onTestFinished(() => node.stop());
  await waitFor("the node to lead", async () => (await call(node, "/readyz")).status === 200);
  return node;
}

async function call(node: ServerNode, path: string, body?: object): Promise<{ status: number; json: Answer }> {
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(`${node.apiUrl}${path}`, { ...init, headers: { "content-type": "application/json" } });
  return { status: answer.status, json: (await answer.json()) as Answer };
}

interface Answer {
  readonly error?: string;
  readonly expiresAt?: number;
  readonly controllers?: readonly { readonly id: string; readonly name: string; readonly status: string }[];
  readonly cluster_id?: string;
  readonly events?: readonly { readonly eventType: string; readonly sourceControllerId: string }[];
}

const B = { id: "site-b", url: "http://127.0.0.1:9", name: "B" };
const listed = async (node: ServerNode, query = ""): Promise<string[]> =>
  (await call(node, `/api/controllers${query}`)).json.controllers!.map(({ id, status }) => `${id} ${status}`);

test("a distributed site registers another, expires it, and knows it after a restart; heartbeats are not events", async () => {
  const { configured } = await site();
  const config = configured({
    mode: "distributed",
    controller_id: "berlin",
    controller_name: "Berlin",
    registration_ttl_ms: 1_500,
    heartbeat_interval_ms: 500,
    expiration_check_interval_ms: 100,
  });
  const node = await start(config);
  expect((await call(node, "/v1/cluster")).json.cluster_id).toBe("berlin");
  expect((await call(node, "/api/controllers/site-b/heartbeat", {})).status).toBe(404);
  expect((await call(node, "/api/controllers/register", B)).status).toBe(200);
  for (let beat = 0; beat < 5; beat++)
    expect((await call(node, "/api/controllers/site-b/heartbeat", {})).status).toBe(200);
  expect(await listed(node)).toEqual(["berlin own", "site-b registered"]);
  await waitFor("the registration to expire", async () => (await listed(node)).length === 1);
  expect(await listed(node, "?all=true")).toEqual(["berlin own", "site-b expired"]);
  expect((await call(node, "/api/controllers/site-b/heartbeat", {})).status).toBe(404);
  expect((await call(node, "/api/controllers/register", B)).status).toBe(200);
  const { events = [] } = (await call(node, "/api/events/since/0")).json;
  expect(events.map(({ eventType, sourceControllerId }) => `${eventType} ${sourceControllerId}`)).toEqual([
    // Its own ring of keys, and the other site's registration.
    "controller:registered berlin",
    "controller:registered berlin",
    "controller:expired berlin",
    "controller:registered berlin",
  ]);
  await node.stop();
  const again = await start(config);
  expect((await listed(again, "?all=true"))[1]).toMatch(/^site-b /);
});

test("the id of a site stays: another one is refused at the start", async () => {
  const { configured } = await site();
  const node = await start(configured({ controller_id: "berlin" }));
  await node.stop();
  await expect(start(configured({ controller_id: "paris" }))).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    message: expect.stringContaining("the id of this site is berlin"),
  });
  const again = await start(configured({}));
  expect(await listed(again)).toEqual(["berlin own"]);
});

test("a standalone site lists itself, and says how to join others", async () => {
  const { configured } = await site();
  const node = await start(configured({ controller_name: "alone" }));
  const { json } = await call(node, "/api/controllers");
  expect(json.controllers).toMatchObject([{ name: "alone", status: "own" }]);
  const refused = await call(node, "/api/controllers/register", B);
  expect([refused.status, refused.json.error]).toEqual([501, "MESH_DISABLED"]);
});
