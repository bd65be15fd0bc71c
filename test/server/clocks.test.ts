// Three real servers, of which one process has a clock that is 25 hours ahead: its Date.now is shifted before anything is loaded.

import { afterAll, beforeAll, expect, it } from "vitest";
import { type Client, createClient } from "../../src/entry/client.ts";
import { startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";

const OFF = "n3";
const OFF_MS = 25 * 3_600_000;
const SHIFTED = `data:text/javascript,const now = Date.now; Date.now = () => now() + ${OFF_MS}`;
const LIMIT_MS = 60_000;

let cluster: TenureCluster;
let client: Client;

beforeAll(async () => {
  cluster = await startTenureCluster({
    prepare: (node) => {
      if (node.id === OFF) node.nodeFlags = ["--import", SHIFTED];
    },
  });
  client = createClient({ urls: cluster.urls, key: cluster.key, timeoutMs: LIMIT_MS });
}, 2 * LIMIT_MS);

afterAll(() => cluster.end());

async function alertsOf(id: string): Promise<readonly string[]> {
  return (await cluster.node(id).view())?.alerts.map(({ name }) => name) ?? [];
}

async function handOverTo(target: string): Promise<boolean> {
  const leader = cluster.node(await cluster.leader());
  if (leader.id === target) return true;
  const call = { key: cluster.key, body: { target }, limitMs: LIMIT_MS };
  return (await leader.call("/v1/admin/transfer", call)).status === 200;
}

it("a server whose clock is 25 hours ahead says so, and leaves leading to the others", async () => {
  await waitFor("its alert", async () => (await alertsOf(OFF)).includes("clock_skewed"), LIMIT_MS);
  await waitFor("another leader", async () => (await cluster.leader()) !== OFF, LIMIT_MS);
  expect(await alertsOf(await cluster.leader())).not.toContain("clock_skewed");
  const { body } = await cluster.node(OFF).call<{ text: string }>("/metrics", { key: cluster.key });
  const skew = Number(/^tenure_clock_skew_seconds (\S+)$/m.exec(body.text)?.[1]);
  expect(Math.abs(skew - OFF_MS / 1_000)).toBeLessThan(60);
});

it("one key is one job, and events have the right time, also where the server that is ahead leads", async () => {
  const submit = (): Promise<string> => client.submit({ kind: "order" }, { idempotencyKey: "order-17" });
  const first = await submit();
  // Told to by name it leads for a moment, though it does not want to.
  await waitFor("the hand-over", () => handOverTo(OFF), LIMIT_MS);
  expect(await submit()).toBe(first);
  const other = await client.submit({ kind: "order" });
  const { submittedAtMs } = await client.job(other);
  expect(Math.abs(submittedAtMs - Date.now())).toBeLessThan(LIMIT_MS);
  expect(await submit()).toBe(first);
});
