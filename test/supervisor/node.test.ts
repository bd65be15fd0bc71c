// One node as processes: a supervisor, its controller, its worker and the worker's jobs; killed, frozen and configured wrongly.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { familyMembers } from "../../src/drivers/processes/index.ts";
import { runNodes } from "../chaos/node-run.ts";
import { CALM_ELECTION, startTenureCluster, type TenureCluster, type TenureNode, waitFor } from "../servers/index.ts";

const LIMIT_MS = 180_000;
let cluster: TenureCluster | null = null;

afterEach(async () => {
  await cluster?.end();
  cluster = null;
});

async function started(nodes = 3): Promise<TenureCluster> {
  cluster = await startTenureCluster({ nodes, election: CALM_ELECTION, supervised: { capacity: 2 } });
  return cluster;
}

function isAlive(pid: number): boolean {
  return familyMembers({ cookie: { name: "TENURE_NO_SUCH", value: "" }, roots: [pid], groups: [] })!.length > 0;
}

function eventsOf(node: TenureNode, event: string): readonly Readonly<Record<string, unknown>>[] {
  return node
    .log()
    .split("\n")
    .filter((line) => line.includes(`"event":"${event}"`))
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
}

/** All that came of a node's worker, by what it has in its environment. */
function comeOf(pid: number): number[] {
  const value = /TENURE_AGENT_COOKIE=([^\0]+)/.exec(readFileSync(`/proc/${pid}/environ`, "latin1"))![1]!;
  const family = { cookie: { name: "TENURE_AGENT_COOKIE", value }, roots: [], groups: [] };
  return familyMembers(family)!.map((one) => one.pid);
}

/** A job that says who it is, on a worker of a node that does not lead. */
async function runningJob(on: TenureCluster): Promise<{ readonly node: TenureNode; readonly pid: number }> {
  const client = createClient({ urls: on.urls, key: on.key });
  const file = join(on.directory, "job.pid");
  const script = `(setsid sleep 1000 &); echo $$ > ${file}.new; mv ${file}.new ${file}; sleep 1000`;
  const id = await client.submit({ kind: "exec", payload: { command: ["sh", "-c", script] } });
  await waitFor("a job that runs", () => existsSync(file));
  const { lease } = await client.job(id);
  return { node: on.node(lease!.agent.replace("-worker", "")), pid: Number(readFileSync(file, "utf8")) };
}

describe("failovers of whole nodes", () => {
  test.each(["embedded", "postgres"] as const)(
    "on %s: no gate beside a worker, and nobody pays for what is handed back",
    { timeout: LIMIT_MS },
    async (backend) => {
      const result = await runNodes({ backend, failovers: 4, log: () => undefined });
      expect(result.failed).toEqual([]);
      expect(result.failovers).toBe(4);
      expect(result.gates).toBeGreaterThan(4);
      expect(result.handed_back).toBeGreaterThan(0);
    },
  );
});

describe("the supervisor", () => {
  test("dies: its controller, its worker and the worker's jobs end", { timeout: LIMIT_MS }, async () => {
    const { node, pid } = await runningJob(await started());
    const controller = node.controllerPid!;
    const worker = Number(eventsOf(node, "agent-started").at(-1)!["pid"]);
    const all = comeOf(pid);
    // The agent, the shell, its sleep, and the one that left for a session of its own.
    expect(all.length).toBeGreaterThanOrEqual(4);
    expect(all).toContain(worker);
    process.kill(node.pid!, "SIGKILL");
    await waitFor("their end", () => ![controller, ...all].some(isAlive));
  });

  test("starts a controller and a worker again that die", { timeout: LIMIT_MS }, async () => {
    const on = await started();
    const { node } = await runningJob(on);
    const controller = node.controllerPid!;
    process.kill(controller, "SIGKILL");
    await waitFor("another controller", () => node.controllerPid !== controller);
    await on.steady();
    // The worker of a standby works on meanwhile.
    expect(eventsOf(node, "agent-started")).toHaveLength(1);
    process.kill(Number(eventsOf(node, "agent-started").at(-1)!["pid"]), "SIGKILL");
    await waitFor("another worker", () => eventsOf(node, "agent-started").length === 2);
    expect(eventsOf(node, "agent-gone").length).toBeGreaterThanOrEqual(2);
  });

  test("replaces a controller that hangs", { timeout: LIMIT_MS }, async () => {
    const on = await started();
    const node = on.node(await on.leader());
    const controller = node.controllerPid!;
    node.signalController("SIGSTOP");
    await waitFor("another controller", () => node.controllerPid !== controller, 60_000);
    expect(eventsOf(node, "hung")).toHaveLength(1);
    await on.steady();
  });

  test("starts no worker on a node that is taken out, until it is taken in again", { timeout: LIMIT_MS }, async () => {
    const on = await started();
    const client = createClient({ urls: on.urls, key: on.key });
    const node = on.node(await on.leader());
    const before = eventsOf(node, "agent-started").length;
    await client.drainNode(node.url, { nodeId: node.id });
    await waitFor("its gate to be closed", () => eventsOf(node, "gate-closed").length > 0);
    // Whoever leads now has none either, and says so at once.
    const next = await on.waitForLeader(node.id);
    await waitFor("the next leader's worker to be offline", async () => {
      const agents = await client.agents();
      return agents.every(({ name, state }) => name !== `${next}-worker` || state === "offline");
    });
    expect(eventsOf(node, "agent-started")).toHaveLength(before);
    await client.drainNode(node.url, { nodeId: node.id, drain: false });
    await waitFor("its worker", () => eventsOf(node, "agent-started").length > before);
  });

  test("stops both in order, and leaves nobody behind", { timeout: LIMIT_MS }, async () => {
    const { node, pid } = await runningJob(await started());
    const all = [node.controllerPid!, ...comeOf(pid)];
    expect(await node.term()).toBe(0);
    expect(all.filter(isAlive).map((one) => readFileSync(`/proc/${one}/cmdline`, "utf8"))).toEqual([]);
    expect(eventsOf(node, "stopped").length).toBeGreaterThan(0);
  });

  test(
    "is one at a time for a directory, and the next kills what was left of one that was killed, frozen as it is",
    { timeout: LIMIT_MS },
    async () => {
      const on = await started(1);
      const node = on.node("n1");
      const second = spawnSync(process.execPath, ["src/cli/main.ts", "server", "start", "--config", node.configFile], {
        encoding: "utf8",
      });
      expect(second).toMatchObject({
        status: 78,
        stderr: expect.stringContaining(`is in use by process ${node.pid}`) as string,
      });
      // Its controller does not see that, and holds the directory.
      const orphan = node.controllerPid!;
      process.kill(orphan, "SIGSTOP");
      process.kill(node.pid!, "SIGKILL");
      const third = spawn(process.execPath, ["src/cli/main.ts", "server", "start", "--config", node.configFile], {
        stdio: "ignore",
      });
      try {
        await waitFor(
          "the next one to lead",
          async () =>
            (
              (await fetch(`${node.url}/role`, { headers: { "x-api-key": on.key } }).then(
                (answer) => answer.json(),
                () => ({}),
              )) as { role?: string }
            ).role === "LEADER",
        );
        expect(isAlive(orphan)).toBe(false);
        expect(third.exitCode).toBeNull();
      } finally {
        third.kill("SIGTERM");
        await new Promise((resume) => third.once("exit", resume));
      }
    },
  );

  test("ends with the controller's code where a restart does not mend it", { timeout: LIMIT_MS }, async () => {
    const on = await started(1);
    const node = on.node("n1");
    await node.kill9();
    node.configure({ node_id: "n2" });
    node.start();
    const { code, log } = await node.ended();
    expect(code).toBe(78);
    expect(log).toContain('"event":"given-up"');
    expect(eventsOf(node, "controller-started")).toHaveLength(1);
  });
});
