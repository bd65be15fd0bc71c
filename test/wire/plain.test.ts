// Without TLS nothing beyond loopback is listened on, dialled or believed.

import { expect, it } from "vitest";
import { seededRandom } from "../../src/core/kit/random.ts";
import { askCluster, listenWire, type WireOptions } from "../../src/drivers/wire/index.ts";
import { freePort, waitFor } from "../servers/index.ts";
import { collectingLogger, openNode } from "./test-node.ts";
import { Stranger } from "./test-stranger.ts";

const OPTIONS: WireOptions = {
  listen: { host: "127.0.0.1", port: 0 },
  advertise: null,
  apiUrl: null,
  clusterId: "c1",
  nodeId: "n1",
  seeds: {},
  tls: null,
  leaseEnabled: false,
  random: seededRandom("plain"),
  logger: collectingLogger().logger,
};

it.each([
  [
    "to listen on every address",
    { listen: { host: "0.0.0.0", port: 0 }, advertise: "127.0.0.1:1" },
    "listens on 0.0.0.0",
  ],
  ["to be advertised elsewhere", { advertise: "10.0.0.1:7400" }, "advertised as 10.0.0.1"],
  ["to dial a peer elsewhere", { seeds: { n2: "10.0.0.2:7400" } }, "peer n2 is at 10.0.0.2"],
  ["to dial a name that might be anywhere", { seeds: { n2: "localhost.example:7400" } }, "localhost.example"],
])("refuses %s, and says how to mend it", async (_what, change, said) => {
  const refused = listenWire({ ...OPTIONS, ...change });
  await expect(refused).rejects.toMatchObject({ code: "CONFIG_INVALID", message: expect.stringContaining(said) });
  await expect(refused).rejects.toThrow(/tenure cert init/);
});

it.each([
  ["an address that is none", { seeds: { n2: "n2" } }, "write host:port"],
  ["a wildcard that nobody can dial", { listen: { host: "0.0.0.0", port: 0 } }, "peer.advertise"],
])("refuses %s", async (_what, change, said) => {
  await expect(listenWire({ ...OPTIONS, ...change })).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    message: expect.stringContaining(said),
  });
});

it("names the port that another process listens on", async () => {
  const port = await freePort();
  await openNode("n1", { port });
  await expect(openNode("n2", { port })).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    message: expect.stringMatching(new RegExp(`127.0.0.1:${port}: another process listens there`)),
  });
});

it("does not dial an address beyond loopback that a handshake told", async () => {
  const a = await openNode("n1");
  const stranger = await Stranger.dial(a.tcp.port);
  stranger.hello({ address: "203.0.113.1:7400" });
  await stranger.ack();
  await waitFor("the refusal", () => a.tcp.stats().refused["plain-beyond-loopback"] === 1);
  expect(a.tcp.list()).toEqual([]);
});

it("asks nobody beyond loopback either", async () => {
  const asked = askCluster({
    nodeId: "n2",
    seeds: { n1: "10.0.0.1:7400" },
    tls: null,
    signal: new AbortController().signal,
    logger: OPTIONS.logger,
  });
  await expect(asked).rejects.toMatchObject({ code: "CONFIG_INVALID" });
});
