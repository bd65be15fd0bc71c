import { describe, expect, test } from "vitest";
import { seededRandom } from "../../src/core/kit/random.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { Engine } from "../../src/engine/engine.ts";
import { forceNewCluster, restoreSnapshot } from "../../src/engine/recovery-tools.ts";
import type { StateMachine } from "../../src/ports/state-machine.ts";
import { waitFor } from "../servers/index.ts";
import { newPath, openAt } from "./test-directory.ts";
import { DiskFaults } from "./test-faulty-disk.ts";
import { founding } from "./test-storage.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function listMachine() {
  const applied: string[] = [];
  const machine: StateMachine = {
    apply: ({ data }) => void applied.push(new TextDecoder().decode(data)),
    snapshot: () => bytes(JSON.stringify(applied)),
    restore: (data) => {
      // A founder's first snapshot is empty.
      if (data.length > 0) applied.splice(0, Infinity, ...(JSON.parse(new TextDecoder().decode(data)) as string[]));
    },
  };
  return { machine, applied };
}

/** A cluster of one on a real directory whose faults the test steers; stopped by the test. */
async function startNode(path: string, clusterId = "c") {
  const faults = new DiskFaults();
  const directory = await openAt(path, { io: faults.io });
  const { machine, applied } = listMachine();
  const fatal: unknown[] = [];
  const engine = await Engine.start({
    ...founding,
    clusterId,
    disk: directory.disk,
    random: seededRandom("disk"),
    connect: () => ({ start: () => undefined, send: () => undefined, stop: () => undefined }),
    stateMachine: machine,
    onFatal: (error) => fatal.push(error),
  });
  await waitFor("the node to lead", () => engine.status().role === "leader");
  return { engine, directory, faults, applied, fatal };
}

describe("an engine on real files", () => {
  test("trap 25: a write is acknowledged only after this node's own sync, also with one node", async () => {
    const { engine, faults } = await startNode(await newPath());
    faults.delaySyncs(120);
    const startMs = performance.now();
    expect(await engine.propose([bytes("a")])).toMatchObject({ outcome: "committed" });
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(119);
    expect(faults.counts.delayedSyncs).toBeGreaterThan(0);
    faults.heal();
    await engine.stop();
  });

  test.each(["full", "hung"] as const)(
    "trap 30: a %s disk ends leadership, and the node stays up for reads",
    async (how) => {
      const path = await newPath();
      const { engine, directory, faults, applied, fatal } = await startNode(path);
      expect(await engine.propose([bytes("before")])).toMatchObject({ outcome: "committed" });
      if (how === "full") faults.fill();
      else faults.hangSyncs();
      const lost = engine.propose([bytes("meanwhile")]);
      await waitFor("the node to give up leading", () => engine.status().role !== "leader");
      expect(await lost).not.toMatchObject({ outcome: "committed" });
      expect(directory.state()).toBe(how === "full" ? "full" : "ok");
      expect(how === "full" ? faults.counts.noRoom : faults.counts.hungSyncs).toBeGreaterThan(0);
      expect(applied).toEqual(["before"]);
      expect(engine.status().leader).toBeNull();

      faults.heal();
      await waitFor("the node to lead again", () => engine.status().role === "leader");
      expect(await engine.propose([bytes("after")])).toMatchObject({ outcome: "committed" });
      // Its fate was unknown, and this is one of the two that were possible.
      expect(applied).toEqual(["before", "meanwhile", "after"]);
      expect(directory.state()).toBe("ok");
      expect(fatal).toEqual([]);
      await engine.stop();
    },
  );

  test("trap 23: a failed sync ends the engine, and what was acknowledged is there after a restart", async () => {
    const path = await newPath();
    const first = await startNode(path);
    expect(await first.engine.propose([bytes("kept")])).toMatchObject({ outcome: "committed" });
    first.faults.failSyncs("EIO");
    expect(await first.engine.propose([bytes("lost")])).not.toMatchObject({ outcome: "committed" });
    await waitFor("the engine to fail", () => first.fatal.length > 0);
    expect(first.fatal).toMatchObject([{ code: "FSYNC_FAILED" }]);
    await first.engine.stop();
    await first.directory.close();

    const second = await startNode(path);
    expect(await second.engine.propose([bytes("next")])).toMatchObject({ outcome: "committed" });
    expect(second.applied.filter((text) => text !== "lost")).toEqual(["kept", "next"]);
    await second.engine.stop();
  });
});

describe("a new cluster", () => {
  test("is forced out of one node's log, and another is restored from its saved snapshot: both lead and go on", async () => {
    const path = await newPath();
    const old = await startNode(path);
    for (const text of ["a", "b"])
      expect(await old.engine.propose([bytes(text)])).toMatchObject({ outcome: "committed" });
    const oldStatus = old.engine.status();
    await old.engine.stop();
    await old.directory.close();

    const place = await openAt(path);
    const names = { nodeId: "n1", newClusterId: "forced", newIncarnation: "f1" };
    const stateMachine = listMachine().machine;
    const forced = await forceNewCluster({ disk: place.disk, digest: systemDigest, stateMachine, ...names });
    await place.close();
    const node = await startNode(path, "forced");
    expect(node.engine.peer).toBe("n1@f1");
    expect(node.applied).toEqual(["a", "b"]);
    expect(node.engine.status().term).toBeGreaterThan(oldStatus.term + 2 ** 20);
    expect(await node.engine.propose([bytes("c")])).toMatchObject({ outcome: "committed" });
    expect(node.engine.status().applied).toBeGreaterThan(forced.lastIndex);
    await node.engine.saveSnapshot();
    const saved = await node.engine.newestSnapshot();
    await node.engine.stop();

    const elsewhere = await newPath();
    const empty = await openAt(elsewhere);
    const restored = { nodeId: "n1", clusterId: "restored", incarnation: "e1", file: saved!.bytes };
    await restoreSnapshot({ disk: empty.disk, digest: systemDigest, ...restored });
    await empty.close();
    const again = await startNode(elsewhere, "restored");
    expect(again.engine.peer).toBe("n1@e1");
    expect(await again.engine.propose([bytes("d")])).toMatchObject({ outcome: "committed" });
    expect(again.applied).toEqual(["a", "b", "c", "d"]);
    expect(again.engine.status().term).toBeGreaterThan(node.engine.status().term + 2 ** 20);
    await again.engine.stop();
  });
});
