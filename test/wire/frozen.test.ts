// `peerGone` (design D6) is not said of a frozen process, however long it is silent (npm run test:long).

import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { freePort, waitFor } from "../servers/index.ts";
import { expectHealthy, openNode, type TestNode } from "./test-node.ts";
import { startProcess } from "./test-process.ts";

/** Long enough for every timer of the wire that could mistake something for a death. */
const WATCH_MS = 5_000;

const hears = (node: TestNode): boolean => node.link("n3")?.isConnected === true && node.heard.length > 0;

it("is a frozen process: its sockets stand, whatever time passes", async () => {
  const port = await freePort();
  const seeds = { n3: `127.0.0.1:${port}` };
  const a = await openNode("n1", { seeds });
  const b = await openNode("n2", { seeds: { n1: a.tcp.address, ...seeds } });
  const child = await startProcess("n3", { port, seeds: { n1: a.tcp.address, n2: b.tcp.address } });
  await waitFor("both to hear n3", () => [a, b].every(hears));
  child.signal("SIGSTOP");
  await waitFor("the silence to be noticed", () => a.tcp.stats().silentConnections > 0);
  await sleep(WATCH_MS);
  expect([...a.gone, ...b.gone]).toEqual([]);
  expect(a.link("n3")?.isConnected).toBe(false);
  await expectHealthy(a, b);
  child.signal("SIGCONT");
  await waitFor("n3 to be connected again", () => a.link("n3")?.isConnected === true);
  expect(a.gone).toEqual([]);
});
