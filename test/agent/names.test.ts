// Whose an agent's name is, on a real server: keys of two teams, an operator, and what is written down.

import { afterAll, beforeAll, expect, test } from "vitest";
import { createAgent } from "../../src/entry/agent.ts";
import { type Client, createClient } from "../../src/entry/client.ts";
import { OPERATOR_KEY, startTenureCluster, type TenureCluster } from "../servers/index.ts";

let cluster: TenureCluster;
let operator: Client;

beforeAll(async () => {
  cluster = await startTenureCluster({ nodes: 1 });
  operator = createClient({ urls: cluster.urls, key: OPERATOR_KEY, timeoutMs: 30_000 });
});

afterAll(() => cluster?.end());

function agentOf(key: string) {
  const handlers = { work: () => null };
  return createAgent({ urls: cluster.urls, key, name: "builder-1", handlers, leaseMs: 30_000 });
}

async function owner(): Promise<string | undefined> {
  const all = await operator.agents({ consistency: "linearizable" });
  return all.find(({ name }) => name === "builder-1")?.owner;
}

async function audited(): Promise<readonly object[]> {
  const { records } = await operator.audit(cluster.urls[0]!);
  return records
    .filter(({ operation }) => operation === "takeOverAgent")
    .map(({ who, target, outcome }) => ({ who, target, outcome }));
}

test("an agent's key can't take over the name of another key's agent; an operator sees who tried, and can", async () => {
  const { key: builders } = await operator.keys.create({ name: "builders", role: "agent" });
  const { key: others } = await operator.keys.create({ name: "others", role: "agent" });
  await using first = agentOf(builders);
  await first.start();
  expect(await owner()).toBe("key:builders");
  for (let tried = 0; tried < 2; tried++) {
    await expect(agentOf(others).start()).rejects.toMatchObject({
      code: "PERMISSION_DENIED",
      message: expect.stringMatching(/builder-1 belongs to key:builders.*tenure agent remove builder-1/) as string,
    });
  }
  // Once a minute for each: who repeats it does not fill the log.
  const refused = { who: "others", target: "builder-1", outcome: "PERMISSION_DENIED" };
  expect(await audited()).toEqual([refused]);
  for await (const { eventType, payload } of operator.events({ after: 0 })) {
    if (eventType !== "worker:registered") continue;
    expect(payload).toMatchObject({ owner: "key:builders" });
    break;
  }

  await using second = agentOf(OPERATOR_KEY);
  await second.start();
  expect(await first.ended).toMatchObject({ code: "STALE_EPOCH" });
  expect(await owner()).toBe("key:the-operator");
  expect(await audited()).toEqual([
    { who: "the-operator", target: "builder-1 of key:builders", outcome: "OK" },
    refused,
  ]);

  await operator.removeAgent("builder-1");
  await using third = agentOf(others);
  await third.start();
  expect(await owner()).toBe("key:others");
});

test("a key that was made anew under its name is the same caller: its agents keep their names", async () => {
  await operator.keys.revoke("others");
  const { key } = await operator.keys.create({ name: "others", role: "agent" });
  await using agent = agentOf(key);
  await agent.start();
  expect(await owner()).toBe("key:others");
});
