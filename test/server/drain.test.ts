// What an operator takes out of service by command, on three real servers: an agent, and a node.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DevCluster } from "../../src/cli/dev/cluster.ts";
import { type Client, createClient } from "../../src/client/index.ts";
import { createAgent, type Agent } from "../../src/entry/agent.ts";
import { documented, fieldsOf } from "../cli/test-document.ts";
import { tenure, tenureJson } from "../cli/test-tenure.ts";
import { waitFor } from "../servers/index.ts";

const LIMIT_MS = 60_000;
const NEVER_MS = 3_600_000;
const ALL = ["n1", "n2", "n3"];

let cluster: DevCluster;
let client: Client;
let access: string[];
let agent: Agent | null = null;

beforeAll(async () => {
  cluster = await DevCluster.create({ restartAfterMs: NEVER_MS });
  cluster.start();
  client = createClient({ urls: cluster.urls, key: cluster.key });
  access = ["--url", cluster.urls.join(","), "--key", cluster.key];
  await waitFor("three voters", async () => (await status()).working === 3, LIMIT_MS);
}, 2 * LIMIT_MS);

afterAll(async () => {
  await agent?.stop({ drainMs: 0 });
  await cluster.stop();
});

async function status(): Promise<{ readonly working: number; readonly term: number }> {
  return await tenureJson<{ working: number; term: number }>("cluster", "status", ...access);
}

async function leaderId(): Promise<string> {
  return (await client.leader()).leaderId;
}

describe("tenure cluster drain", () => {
  it("takes the leader out, says who leads now, changes nothing when repeated, and is undone", async () => {
    const first = await leaderId();
    const { code, stdout } = await tenure("cluster", "drain", first, ...access);
    expect(code).toBe(0);
    const [, second, epoch] = /: it handed over in \S+, and (n\d) leads, epoch (\d+)\n$/.exec(stdout) ?? [];
    expect([await leaderId(), (await status()).term]).toEqual([second, Number(epoch)]);
    const again = await tenureJson("cluster", "drain", first, ...access);
    expect(again).toMatchObject({ code: 0, draining: true, led: false, leader: second, epoch: Number(epoch) });
    expect(fieldsOf(again)).toEqual(documented("### `tenure cluster drain NODE -o json`"));
    expect((await tenure("cluster", "status", ...access)).stdout).toMatch(
      new RegExp(`^${first} .* draining +ok `, "m"),
    );

    // Nobody is given leadership who does not want it, and the last one who does keeps it.
    await tenure("cluster", "transfer", ...access);
    const third = await leaderId();
    expect(third).not.toBe(first);
    const refused = await tenure("cluster", "drain", "n9", ...access);
    expect(refused).toMatchObject({ code: 69, stdout: "" });
    expect(refused.stderr).toMatch(/there is no node "n9"/);
    for (const node of ALL.filter((one) => one !== first && one !== third)) {
      expect(await tenure("cluster", "drain", node, ...access)).toMatchObject({ code: 0, stderr: "" });
    }
    const last = await tenure("cluster", "drain", third, ...access);
    expect(last).toMatchObject({ code: 64, stdout: "" });
    expect(last.stderr).toContain(`without ${third} nobody would be there who wants to lead`);
    expect(await leaderId()).toBe(third);

    for (const node of ALL) {
      const undone = await tenure("cluster", "drain", node, "--undo", ...access);
      expect(undone).toMatchObject({
        code: 0,
        stdout: `${node} may lead again; ${third} leads, epoch ${(await status()).term}\n`,
      });
    }
    expect((await tenure("cluster", "status", ...access)).stdout).not.toContain("drained");
  });
});

describe("tenure agent drain", () => {
  it("gives an agent nothing more and lets it keep what it has, also behind another leader, until it is undone", async () => {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const handlers = { hold: () => ended.then(() => null) };
    agent = createAgent({ urls: cluster.urls, key: cluster.key, name: "a1", capacity: 2, handlers });
    await agent.start();
    const held = await client.submit({ kind: "hold" });
    await waitFor("the agent to hold it", async () => (await client.job(held)).state !== "pending", LIMIT_MS);

    const nobody = await tenure("agent", "drain", "nobody", ...access);
    expect(nobody).toMatchObject({ code: 69, stdout: "" });
    expect(nobody.stderr).toContain("There is no agent nobody");
    const drained = { code: 0, name: "a1", draining: true };
    expect(await tenureJson("agent", "drain", "a1", ...access)).toEqual(drained);
    expect(await tenureJson("agent", "drain", "a1", ...access)).toEqual(drained);
    expect((await tenure("agent", "list", ...access)).stdout).toMatch(/^a1 +draining +1\/2 /m);
    const waits = await client.submit({ kind: "hold" });
    await client.transfer();
    expect((await client.job(waits, { consistency: "linearizable" })).pendingReason).toMatchObject({
      reason: "no-agent",
      missing: "an agent that is not draining",
    });
    const undone = await tenure("agent", "drain", "a1", "--undo", ...access);
    expect(undone).toEqual({ code: 0, stdout: "a1 is given jobs again\n", stderr: "" });
    await waitFor("the agent to hold both", async () => (await client.job(waits)).state !== "pending", LIMIT_MS);
    end();
    for (const id of [held, waits]) {
      await waitFor("its end", async () => (await client.job(id)).state === "completed", LIMIT_MS);
      expect(await client.job(id)).toMatchObject({ losses: 0, attempts: [{ agent: "a1", end: "completed" }] });
    }
  });
});
