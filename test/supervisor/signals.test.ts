// Signals that come while a node starts: to its supervisor before there is a controller, and while the controller loads its code
// and reads its log.

import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Edit } from "../../src/sim/mutants/patch.ts";
import { CALM_ELECTION, startTenureCluster, type TenureCluster, type TenureNode, waitFor } from "../servers/index.ts";
import { writePlant } from "../servers/planted.ts";

const LIMIT_MS = 120_000;
let cluster: TenureCluster | null = null;

afterEach(async () => {
  await cluster?.end();
  cluster = null;
});

/** A node that is at this line, says so, and goes on when it may. */
interface Held {
  readonly node: TenureNode;
  readonly there: () => Promise<void>;
  readonly goOn: () => void;
}

/** Founded, stopped, and started again. */
async function heldAt(file: string, line: string): Promise<Held> {
  cluster = await startTenureCluster({ nodes: 1, election: CALM_ELECTION, supervised: { capacity: 1 } });
  const node = cluster.node("n1");
  expect(await node.term()).toBe(0);
  const [there, hold] = [join(node.home, "there"), join(node.home, "hold")];
  writeFileSync(hold, "");
  const wait = `{ const { existsSync, writeFileSync } = await import("node:fs"); writeFileSync(${JSON.stringify(there)}, "");
    while (existsSync(${JSON.stringify(hold)})) await new Promise((resume) => setTimeout(resume, 10)); }\n`;
  const edit: Edit = { file, find: line, replace: `${wait}${line}` };
  node.nodeFlags = writePlant(join(node.home, "plant.mjs"), [edit]);
  node.start();
  return { node, there: () => waitFor(`it to reach ${file}`, () => existsSync(there)), goOn: () => rmSync(hold) };
}

function eventsOf(node: TenureNode, event: string): string[] {
  return node
    .log()
    .split("\n")
    .filter((line) => line.includes(`"event":"${event}"`));
}

const atController = (): Promise<Held> => heldAt("node/worlds/embedded.ts", "  const consensus = await openConsensus(");
const atKilling = (): Promise<Held> =>
  heldAt("drivers/processes/children.ts", "  await killFamily({\n    cookie: { name: CONTROLLER");

describe("SIGHUP", () => {
  test(
    "to a node that starts: its controller lives, and reads its certificates once more",
    { timeout: LIMIT_MS },
    async () => {
      const { node, there, goOn } = await atController();
      await waitFor("a controller", () => node.controllerPid !== undefined);
      // It loads its code, and knows of no signals yet.
      node.signal("SIGHUP");
      await there();
      node.signal("SIGHUP");
      // By itself, as `kill` of all of them would.
      node.signalController("SIGHUP");
      goOn();
      await cluster!.steady();
      await waitFor("the certificates to be read again", () => eventsOf(node, "reloaded").length > 0);
      expect(eventsOf(node, "controller-ended")).toEqual([]);
      expect(eventsOf(node, "controller-started")).toHaveLength(1);
      expect(eventsOf(node, "reloaded")).toHaveLength(1);
      node.signal("SIGHUP");
      await waitFor("the certificates to be read again", () => eventsOf(node, "reloaded").length === 2);
    },
  );

  test("to a supervisor that clears away the controller before: it goes on", { timeout: LIMIT_MS }, async () => {
    const { node, there, goOn } = await atKilling();
    await there();
    node.signal("SIGHUP");
    goOn();
    await cluster!.steady();
    expect(eventsOf(node, "controller-started")).toHaveLength(1);
  });
});

describe("to a supervisor that clears away the controller before", () => {
  test.each(["SIGTERM", "SIGINT"] as const)(
    "%s ends it in order, and starts nobody",
    { timeout: LIMIT_MS },
    async (signal) => {
      const { node, there, goOn } = await atKilling();
      await there();
      node.signal(signal);
      // It ends what an agent before may have left, and waits for the controller before.
      await waitFor("the agents to be gone", () => eventsOf(node, "agent-gone").length > 0);
      expect(node.pid).toBeDefined();
      goOn();
      expect((await node.ended()).code).toBe(0);
      expect(eventsOf(node, "controller-started")).toEqual([]);
    },
  );

  test("a second signal does not wait for it", { timeout: LIMIT_MS }, async () => {
    const { node, there } = await atKilling();
    await there();
    node.signal("SIGTERM");
    await waitFor("the agents to be gone", () => eventsOf(node, "agent-gone").length > 0);
    node.signal("SIGTERM");
    expect((await node.ended()).log).not.toContain("controller-started");
  });
});
