// How an agent ends, and that its jobs never outlive it: in order, in a hurry, killed, frozen, replaced, left by its supervisor.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { childrenOf } from "../../src/drivers/processes/index.ts";
import { type Client, createClient } from "../../src/entry/client.ts";
import { OPERATOR_KEY as key, startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";
import { isAlive } from "../processes/living.ts";
import { Pids, TestAgent, TREE, TREE_SIZE } from "./test-agent.ts";

let cluster: TenureCluster;
let client: Client;

beforeAll(async () => {
  cluster = await startTenureCluster({ nodes: 1 });
  client = createClient({ urls: cluster.urls, key, timeoutMs: 30_000 });
});

afterAll(() => cluster?.end());

/** A tree of processes, of a job that runs. */
async function tree(agent: TestAgent): Promise<{ readonly id: string; readonly pids: Pids }> {
  const pids = new Pids();
  const id = await client.submit(agent.request(["sh", "-c", TREE], pids.env));
  await pids.ready(TREE_SIZE);
  return { id, pids };
}

/** The shell that waits for the agent's end. */
function keeperOf(agent: TestAgent): number {
  const [keeper, ...others] = childrenOf(agent.child.pid!);
  expect(others).toEqual([]);
  return keeper!;
}

test("SIGTERM: no new jobs, what can end ends and counts, what can't is ended and handed back at no cost; exit 0", async () => {
  const agent = await TestAgent.start("drained", cluster.urls, [
    "--capacity",
    "2",
    "--drain",
    "4s",
    "--grace",
    "500ms",
  ]);
  const keeper = keeperOf(agent);
  const { id: long, pids } = await tree(agent);
  const short = await client.submit(agent.sh("sleep 2; echo done"));
  await agent.said("job_begun", 2);
  agent.child.kill("SIGTERM");
  await agent.said("draining");
  const late = await client.submit(agent.sh("true"));
  expect(await agent.exit).toBe(0);
  expect(pids.living()).toEqual([]);
  expect(isAlive(keeper)).toBe(false);
  expect(await client.job(short)).toMatchObject({ state: "completed", result: { exit_code: 0 } });
  for (const id of [long, late]) {
    expect(await client.job(id, { consistency: "linearizable" })).toMatchObject({
      state: "pending",
      failures: 0,
      losses: 0,
    });
    await client.cancel(id);
  }
  await agent.said("stopped");
});

test.each([
  ["SIGTERM", 143],
  ["SIGINT", 130],
] as const)("a second %s: jobs are killed and handed back, exit %i", async (signal, code) => {
  const agent = await TestAgent.start(`hurry-${signal}`, cluster.urls, ["--drain", "10m", "--grace", "10m"]);
  const { id, pids } = await tree(agent);
  agent.child.kill(signal);
  await agent.said("draining");
  agent.child.kill(signal);
  expect(await agent.exit).toBe(code);
  expect(pids.living()).toEqual([]);
  expect(await client.job(id, { consistency: "linearizable" })).toMatchObject({
    state: "pending",
    failures: 0,
    losses: 0,
  });
  await client.cancel(id);
});

test("a signal before any server answers ends it with 0; a wrong key ends it with the code of the registry", async () => {
  const lonely = new TestAgent("lonely", ["http://127.0.0.1:1"]);
  await lonely.said("connection");
  lonely.child.kill("SIGTERM");
  expect(await lonely.exit).toBe(0);
  const stranger = new TestAgent("stranger", cluster.urls, ["--key", "nobody-knows-this-key"]);
  expect(await stranger.exit).toBe(77);
  await waitFor("its reason", () => /^tenure: .*--key/m.test(stranger.stderr));
});

test("replaced by another process of its name: its jobs are killed, and it says so", async () => {
  const first = await TestAgent.start("twice", cluster.urls, ["--lease", "3s"]);
  const { id, pids } = await tree(first);
  const before = pids.living();
  await TestAgent.start("twice", cluster.urls, ["--lease", "3s"]);
  expect(await first.exit).toBe(76);
  expect(before.filter((pid) => isAlive(pid))).toEqual([]);
  await first.said("replaced");
  expect(first.lines("replaced")).toMatchObject([{ code: "STALE_EPOCH" }]);
  await client.cancel(id);
  expect((await client.wait(id)).state).toBe("cancelled");
});

describe.runIf(process.platform === "linux")("trap 48, 49: an agent that can't end its jobs itself", () => {
  test("killed with -9: nothing of its jobs is left, nor of the keeper that saw to it", async () => {
    const agent = await TestAgent.start("killed", cluster.urls, ["--capacity", "3"]);
    const keeper = keeperOf(agent);
    const trees = [await tree(agent), await tree(agent)];
    agent.child.kill("SIGKILL");
    await agent.exit;
    await waitFor("the jobs to be gone", () => trees.every(({ pids }) => pids.living().length === 0), 20_000);
    await waitFor("the keeper to be gone", () => !isAlive(keeper), 20_000);
    for (const { id } of trees) await client.cancel(id);
  });

  test("whose keeper was killed has another, which knows its jobs", async () => {
    const agent = await TestAgent.start("kept", cluster.urls);
    const keeper = keeperOf(agent);
    const { id, pids } = await tree(agent);
    process.kill(keeper, "SIGTERM");
    process.kill(keeper, "SIGKILL");
    await agent.said("keeper");
    const children = (): number[] => childrenOf(agent.child.pid!).filter((pid) => isAlive(pid) && pid !== keeper);
    await waitFor("another keeper", () => children().length === 2);
    agent.child.kill("SIGKILL");
    await agent.exit;
    await waitFor("the jobs to be gone", () => pids.living().length === 0, 20_000);
    await client.cancel(id);
  });

  test("frozen past its leases: its jobs are killed meanwhile, and it goes on when it is continued", async () => {
    const agent = await TestAgent.start("frozen", cluster.urls, ["--lease", "4s"]);
    const { id, pids } = await tree(agent);
    agent.child.kill("SIGSTOP");
    await waitFor("the jobs to be gone", () => pids.living().length === 0, 20_000);
    await waitFor("the job to be lost", async () => (await client.job(id)).state === "pending");
    agent.child.kill("SIGCONT");
    await agent.said("job_aborted");
    expect(agent.lines("job_aborted")).toMatchObject([{ job: id, reason: "lease-lost" }]);
    await pids.ready(TREE_SIZE);
    await client.cancel(id);
    expect((await client.wait(id)).state).toBe("cancelled");
  });

  test("left by its supervisor: it says that it lives while there is one, and ends with its jobs when there is none", async () => {
    const agent = new TestAgent("orphan", cluster.urls, ["--drain", "10m"], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    const heard: unknown[] = [];
    agent.child.on("message", (message) => heard.push(message));
    await agent.said("started");
    const { id, pids } = await tree(agent);
    await waitFor("signs of life", () => heard.length >= 3);
    expect(heard[0]).toEqual({ kind: "alive" });
    agent.child.disconnect();
    expect(await agent.exit).toBe(69);
    expect(pids.living()).toEqual([]);
    await client.cancel(id);
  });
});
