import { describe, expect, test } from "vitest";
import { seededRandom } from "../core/kit/random.ts";
import { configurationOf } from "../core/raft/index.ts";
import { encodeSnapshotFile, encodeStampFile } from "../core/wal/index.ts";
import { forceNewCluster, restoreSnapshot, type ForcedCluster } from "./recovery-tools.ts";
import { readStampOf } from "./stamp-reader.ts";
import type { Opened } from "./storage.ts";
import { CRASH_MODES, TestDisk } from "./test-disk.ts";
import { ListMachine } from "./test-engine.ts";
import { bytesOf, digest, entry, hardState, n1, n2, open, request, snapshotAt, written } from "./test-storage.ts";

const AHEAD = 2 ** 20;
const alone = configurationOf(["n1@f1" as never]);

function force(disk: TestDisk): Promise<ForcedCluster> {
  const stateMachine = new ListMachine();
  return forceNewCluster({ disk, digest, nodeId: "n1", newClusterId: "new", newIncarnation: "f1", stateMachine });
}

async function isForced(disk: TestDisk): Promise<boolean> {
  const stamp = await readStampOf(disk, digest);
  return stamp!.clusterId === "new" && stamp!.isReady;
}

const openNew = (disk: TestDisk): Promise<Opened> => open(disk, { clusterId: "new", bootstrap: null });
const listOf = (opened: Opened): unknown => JSON.parse(new TextDecoder().decode(opened.snapshot!.data));

/** A snapshot at 3 that holds two texts, and entries 4 and 5 after it, of which 5 was never known to be committed. */
async function lived(disk: TestDisk): Promise<void> {
  const storage = await written(disk);
  const machine = new ListMachine();
  for (const index of [2, 3]) machine.apply(entry(index, 2));
  await storage.saveSnapshot(snapshotAt(3, 2), machine.snapshot() as Uint8Array, 4);
  await storage.persist([request({ hardState: hardState(3, 4, n2) })], null);
  await storage.close();
}

describe("forcing a new cluster", () => {
  test("keeps every entry of this node's log as the state of a new cluster of this node alone", async () => {
    const disk = new TestDisk();
    await lived(disk);
    const forced = await force(disk);
    expect(forced).toMatchObject({ clusterId: "new", incarnation: "f1", lastIndex: 5, term: 3 + AHEAD });
    const opened = await openNew(disk);
    expect(opened.peer).toBe("n1@f1");
    expect(opened.recovery).toBe("intact");
    expect(opened.hardState).toEqual({ term: 3 + AHEAD, vote: null, commit: 5 });
    expect(opened.snapshot!.meta).toEqual({ index: 5, term: 3 + AHEAD, configuration: alone });
    expect(listOf(opened)).toEqual(["e2", "e3", "e4", "e5"]);
    expect(opened.entries).toEqual([]);
    await opened.storage.persist([request({ hardState: hardState(4 + AHEAD, 5, opened.peer) })], null);
    expect(disk.names().filter((name) => /^(recovered|tmp-)/.test(name))).toEqual([]);
  });

  test("says what may be lost and what may be there although nobody was told so", async () => {
    const disk = new TestDisk();
    await lived(disk);
    const { mayBeLost } = await force(disk);
    expect(mayBeLost).toContain("ends at index 5");
    expect(mayBeLost).toContain("Entries 5 to 5 are kept although this node does not know that they were committed");
    expect(mayBeLost).toContain("after index 5 is lost");

    const sure = new TestDisk();
    const storage = await written(sure);
    await storage.persist([request({ hardState: hardState(3, 5, n2) })], null);
    expect((await force(sure)).mayBeLost).not.toContain("does not know");
  });

  test("keeps the files of the old cluster aside, as they were", async () => {
    const disk = new TestDisk();
    await lived(disk);
    const before = new Map(disk.names().map((name) => [name, disk.bytesOf(name).slice()]));
    await force(disk);
    for (const [name, bytes] of before) {
      if (name !== "stamp") expect(disk.bytesOf(`former-1-${name}`)).toEqual(bytes);
    }
  });

  test("may change the state on the way", async () => {
    const disk = new TestDisk();
    await lived(disk);
    const names = { newClusterId: "new", newIncarnation: "f1" };
    const transform = (data: Uint8Array): Uint8Array => bytesOf(`[${new TextDecoder().decode(data)}]`);
    await forceNewCluster({ disk, digest, nodeId: "n1", stateMachine: new ListMachine(), transform, ...names });
    expect(listOf(await openNew(disk))).toEqual([["e2", "e3", "e4", "e5"]]);
  });

  test("makes the directory another cluster's: the old one is refused", async () => {
    const disk = new TestDisk();
    await lived(disk);
    await force(disk);
    await expect(open(disk)).rejects.toMatchObject({ code: "STAMP_MISMATCH" });
  });

  test("can be done again, and goes on from there", async () => {
    const disk = new TestDisk();
    await lived(disk);
    await force(disk);
    const stateMachine = new ListMachine();
    const names = { newClusterId: "newer", newIncarnation: "f2" };
    const forced = await forceNewCluster({ disk, digest, nodeId: "n1", stateMachine, ...names });
    expect(forced).toMatchObject({ clusterId: "newer", incarnation: "f2", lastIndex: 5, term: 3 + 2 * AHEAD });
    expect(disk.names()).toContain("former-2-wal-0000000001");
  });

  test.each([
    ["an empty directory", () => Promise.resolve(new TestDisk()), "CONFIG_INVALID", "it is empty"],
    [
      "a node that never heard from its cluster",
      async () => {
        const disk = new TestDisk();
        await open(disk, { bootstrap: null });
        return disk;
      },
      "CONFIG_INVALID",
      "its log is empty",
    ],
    [
      "a directory whose preparation was interrupted",
      async () => {
        const disk = new TestDisk();
        disk.put("stamp", encodeStampFile({ clusterId: "c", nodeId: "n1", incarnation: "a1" }, "founding", digest));
        return disk;
      },
      "CONFIG_INVALID",
      "never finished",
    ],
    [
      "a damaged log",
      async () => {
        const disk = new TestDisk();
        await written(disk);
        disk.bytesOf("wal-0000000001")[5]! ^= 1;
        return disk;
      },
      "DISK_DAMAGED",
      "Nothing was changed",
    ],
    [
      "another node's directory",
      async () => {
        const disk = new TestDisk();
        await open(disk, { nodeId: "n2", bootstrap: null });
        return disk;
      },
      "STAMP_MISMATCH",
      "belongs to node n2",
    ],
  ])("refuses %s and changes nothing", async (_name, make, code, message) => {
    const disk = await make();
    const before = disk.names().map((name) => [name, disk.bytesOf(name).slice()]);
    await expect(force(disk)).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
    expect(disk.names().map((name) => [name, disk.bytesOf(name)])).toEqual(before);
  });

  test("may crash in each disk call: the old cluster is whole, or the new one is, and repeating it gets there", async () => {
    let [crashes, olds, news] = [0, 0, 0];
    for (const mode of CRASH_MODES) {
      for (let call = 1; ; call++) {
        const random = seededRandom(`${mode}/${call}`);
        const disk = new TestDisk();
        await lived(disk);
        disk.crashAt(call);
        const isDone = await force(disk).then(
          () => true,
          () => false,
        );
        if (isDone) break;
        crashes++;
        disk.restart(mode, random);

        // Whoever starts the server now instead of repeating the command has one of the two, never less.
        const started = disk.clone();
        const stamp = await readStampOf(started, digest);
        if (stamp!.clusterId === "c") {
          olds++;
          const opened = await open(started, { bootstrap: null });
          expect(opened.peer).toBe(n1);
          expect(opened.entries.at(-1)).toEqual(entry(5, 3));
          expect(started.names()).not.toContain("recovered");
        } else {
          news++;
          const opened = await openNew(started);
          expect(opened.recovery).toMatch(/recovered|intact/);
          expect(listOf(opened)).toEqual(["e2", "e3", "e4", "e5"]);
          expect(opened.hardState).toEqual({ term: 3 + AHEAD, vote: null, commit: 5 });
        }

        // Repeating it crashes as well, somewhere; a power loss follows; the third attempt gets through.
        disk.crashAt(1 + random.below(25));
        if (!(await isForced(disk).catch(() => true))) await force(disk).catch(() => undefined);
        disk.restart("random", random);
        if (!(await isForced(disk))) {
          expect(await force(disk)).toMatchObject({ clusterId: "new", lastIndex: 5, term: 3 + AHEAD });
        }
        const opened = await openNew(disk);
        expect(listOf(opened)).toEqual(["e2", "e3", "e4", "e5"]);
        expect(opened.snapshot!.meta.configuration).toEqual(alone);
      }
    }
    expect(crashes).toBeGreaterThan(80);
    expect(Math.min(olds, news)).toBeGreaterThan(10);
  });

  test("that finds its state rotten behind a crash says so instead of starting empty", async () => {
    const disk = new TestDisk();
    await lived(disk);
    disk.failNext("former-rename", new Error("crash"));
    await expect(force(disk)).rejects.toThrow("crash");
    disk.bytesOf("recovered")[20]! ^= 1;
    await expect(openNew(disk)).rejects.toMatchObject({ code: "DISK_DAMAGED" });
    await expect(force(disk)).rejects.toMatchObject({ code: "DISK_DAMAGED" });
    expect(disk.names()).toContain("former-1-wal-0000000001");
  });
});

describe("restoring a snapshot", () => {
  const file = encodeSnapshotFile(snapshotAt(7, 4), bytesOf(`["a","b"]`), digest);
  const restore = (disk: TestDisk, options: object = {}): Promise<unknown> =>
    restoreSnapshot({ disk, digest, nodeId: "n1", clusterId: "new", incarnation: "f1", file, ...options });

  test("begins a new cluster of this node alone with its state, its index and a far later term", async () => {
    const disk = new TestDisk();
    expect(await restore(disk)).toEqual({ clusterId: "new", incarnation: "f1", lastIndex: 7, term: 4 + AHEAD });
    const opened = await openNew(disk);
    expect(opened.peer).toBe("n1@f1");
    expect(opened.hardState).toEqual({ term: 4 + AHEAD, vote: null, commit: 7 });
    expect(opened.snapshot!.meta).toEqual({ index: 7, term: 4 + AHEAD, configuration: alone });
    expect(listOf(opened)).toEqual(["a", "b"]);
  });

  test("may change the contents on the way", async () => {
    const disk = new TestDisk();
    await restore(disk, { transform: (data: Uint8Array) => bytesOf(`[${new TextDecoder().decode(data)}]`) });
    expect(listOf(await openNew(disk))).toEqual([["a", "b"]]);
  });

  test("refuses what is not a whole snapshot", async () => {
    const disk = new TestDisk();
    const flipped = file.slice();
    flipped[30]! ^= 1;
    for (const bad of [flipped, file.subarray(0, -1), new Uint8Array(0), bytesOf("a text")]) {
      await expect(restore(disk, { file: bad })).rejects.toMatchObject({ code: "SNAPSHOT_INVALID" });
    }
    expect(disk.names()).toEqual([]);
  });

  test("refuses a directory that is not empty, and changes nothing", async () => {
    const disk = new TestDisk();
    await written(disk);
    const names = disk.names();
    await expect(restore(disk)).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.stringContaining("it belongs to node n1 of cluster c"),
    });
    expect(disk.names()).toEqual(names);
  });

  test("may crash in each disk call: nothing is there, or starting finishes it", async () => {
    let crashes = 0;
    for (const mode of CRASH_MODES) {
      for (let call = 1; ; call++) {
        const random = seededRandom(`${mode}/${call}`);
        const disk = new TestDisk();
        disk.crashAt(call);
        const isDone = await restore(disk).then(
          () => true,
          () => false,
        );
        if (isDone) break;
        crashes++;
        disk.restart(mode, random);
        if ((await readStampOf(disk, digest)) === null) await restore(disk);
        const opened = await openNew(disk);
        expect(listOf(opened)).toEqual(["a", "b"]);
        expect(opened.hardState).toEqual({ term: 4 + AHEAD, vote: null, commit: 7 });
      }
    }
    expect(crashes).toBeGreaterThan(50);
  });
});
