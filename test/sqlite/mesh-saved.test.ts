// The saved state of mesh.sqlite: what a file that was lost, damaged or wrong goes on from.

import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { ASIDE_FILES_KEPT } from "../../src/drivers/sqlite/limits.ts";
import type { LineEvent } from "../../src/core/mesh/merge/index.ts";
import type { MeshViews } from "../../src/ports/mesh/views.ts";
import { arrivals, batches, newMeshPath, openMesh, says } from "./test-mesh.ts";

const spec = (kind: string) => ({ spec: { kind, queue: "linux", labels: {} }, by: "ann" });

const WORLD: readonly LineEvent[] = [
  says("a.1", 1, "build:submitted", "j1", spec("compile")),
  says("b.1", 1, "build:submitted", "j2", spec("test")),
  says("a.1", 2, "worker:registered", "w1", { platform: "linux", capacity: 4, kinds: ["test"] }),
  says("b.1", 2, "build:submitted", "j3", spec("compile")),
  says("a.1", 3, "build:assigned", "j1", { agent: "w1", attempt: 1 }),
  says("a.1", 4, "build:submitted", "j4", spec("compile")),
];
const ALL = arrivals(WORLD);
const SAVED = 4;
const SAVES = { from: "nothing", saves: true } as const;

/** With everything, saved after the fourth. */
async function saved(path: string): Promise<MeshViews> {
  const views = await openMesh(path);
  await views.put(ALL.slice(0, SAVED));
  expect(views.savedThrough).toBeNull();
  expect(await views.replay(SAVES, batches(ALL))).toMatchObject({ equal: true, events: SAVED });
  expect(views.savedThrough).toBe(SAVED);
  await views.put(ALL.slice(SAVED));
  return views;
}

const filesOf = (path: string, part: string): string[] =>
  readdirSync(dirname(path))
    .filter((name) => name.includes(part))
    .map((name) => join(dirname(path), name));

function lose(path: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
}

describe("a file that is lost", () => {
  test("goes on from the saved state: nothing of before is fed again, and the hash is the same", async () => {
    const path = await newMeshPath();
    const views = await saved(path);
    const before = await views.hash();
    await views.close();
    lose(path);
    const again = await openMesh(path);
    expect(await again.through()).toBe(SAVED);
    await again.put(ALL.slice(SAVED));
    expect(await again.hash()).toEqual({ ...before, missing: 0 });
    const { jobs } = await again.jobs({ limit: 10 });
    expect(jobs.map(({ id }) => id).toSorted()).toEqual(["j1", "j2", "j3", "j4"]);
    expect(filesOf(path, "replay")).toEqual([]);
  });

  test("while it is in use, because it is damaged or is to be built anew, goes on from there too", async () => {
    const path = await newMeshPath();
    const views = await saved(path);
    await views.rebuild("a test", "saved");
    expect(await views.through()).toBe(SAVED);
    await views.close();
    writeFileSync(path, "no database");
    const again = await openMesh(path);
    expect(await again.through()).toBe(SAVED);
  });

  test("begins anew where the saved state is damaged or gone, and that is not used again", async () => {
    for (const harm of [
      (file: string) => {
        const bytes = readFileSync(file);
        bytes[bytes.length - 100]! ^= 1;
        writeFileSync(file, bytes);
      },
      (file: string) => rmSync(file),
    ]) {
      const path = await newMeshPath();
      await (await saved(path)).close();
      lose(path);
      harm(filesOf(path, ".base-")[0]!);
      const again = await openMesh(path);
      expect(await again.through()).toBe(0);
      expect(again.savedThrough).toBeNull();
      expect(filesOf(path, ".base")).toEqual([]);
    }
  });

  test("does not go on from the saved state of another cluster, or of another format", async () => {
    const path = await newMeshPath();
    await (await saved(path)).close();
    const other = await openMesh(path, { clusterId: "c2" });
    expect(await other.through()).toBe(0);
    expect(other.savedThrough).toBeNull();
  });
});

describe("a replay", () => {
  test("from the saved state needs what follows it alone, and moves it on", async () => {
    const path = await newMeshPath();
    const views = await saved(path);
    const how = { from: "saved", saves: true } as const;
    expect(await views.replay(how, batches(ALL.slice(SAVED)))).toMatchObject({ equal: true, events: 2 });
    expect(views.savedThrough).toBe(ALL.length);
    expect(filesOf(path, ".base-")).toHaveLength(1);
  });

  test("from the saved state sees a row that was changed since", async () => {
    const path = await newMeshPath();
    await (await saved(path)).close();
    const database = new DatabaseSync(path);
    database.exec("DELETE FROM merged_rows WHERE kind = 'agent'");
    database.close();
    const views = await openMesh(path);
    const how = { from: "saved", saves: true } as const;
    expect(await views.replay(how, batches(ALL.slice(SAVED)))).toMatchObject({ equal: false });
    expect(views.savedThrough).toBe(SAVED);
  });

  test("that differs from the first event on gives the saved state up", async () => {
    const path = await newMeshPath();
    const views = await saved(path);
    await views.rebuild("a test", "nothing");
    expect(await views.through()).toBe(0);
    expect(filesOf(path, ".base")).toEqual([]);
  });
});

test("a replay whose file was not closed whole saves nothing, and fails: whoever waits for the saved state must know", async () => {
  const path = await newMeshPath();
  const views = await openMesh(path);
  await views.put(ALL);
  const others: DatabaseSync[] = [];
  async function* held() {
    yield* batches(ALL);
    const [aside] = filesOf(path, ".replay-").filter((file) => !/-(wal|shm)$/.test(file));
    // Whoever has it open keeps the -wal file there.
    const other = new DatabaseSync(aside!);
    other.prepare("SELECT count(*) FROM meta").get();
    others.push(other);
  }
  await expect(views.replay(SAVES, held())).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
  for (const other of others) other.close();
  expect([others.length, views.savedThrough, filesOf(path, ".base")]).toEqual([1, null, []]);
  expect(await views.replay(SAVES, batches(ALL))).toMatchObject({ equal: true });
  expect(views.savedThrough).toBe(ALL.length);
});

test("what is shown can be saved as it is, while it is in use", async () => {
  const path = await newMeshPath();
  const views = await openMesh(path);
  await views.put(ALL);
  const before = await views.hash();
  await views.save();
  expect(views.savedThrough).toBe(ALL.length);
  await views.close();
  lose(path);
  const again = await openMesh(path);
  expect(await again.hash()).toEqual(before);
});

test("works in a directory whose name has characters of patterns and of addresses", async () => {
  const path = await newMeshPath("tenure [ab]{x,y}?mode=ro*'#%41-");
  const views = await saved(path);
  expect(await views.replay(SAVES, batches(ALL))).toMatchObject({ equal: true });
  expect(filesOf(path, ".base-")).toHaveLength(1);
  for (let times = 0; times < ASIDE_FILES_KEPT + 2; times++) {
    await views.rebuild("a test", "nothing");
    await views.through();
    await sleep(2);
  }
  expect(filesOf(path, ".base")).toEqual([]);
  expect(filesOf(path, ".damaged-").filter((file) => file.endsWith("Z"))).toHaveLength(ASIDE_FILES_KEPT);
  await views.put(ALL);
  await views.save();
  expect(await views.hash()).toMatchObject({ through: ALL.length, missing: 0 });
});

test("what a process that was killed in the middle of a replay has left is removed by the next one", async () => {
  const path = await newMeshPath();
  for (const suffix of ["", "-wal", "-shm"]) writeFileSync(`${path}.replay-4711-1${suffix}`, "half of it");
  await saved(path);
  expect(filesOf(path, "replay")).toEqual([]);
});

describe("where receipts are", () => {
  const rowsIn = (path: string): Record<string, number> => {
    const database = new DatabaseSync(path, { readOnly: true });
    const count = (table: string): number =>
      (database.prepare(`SELECT count(*) AS count FROM ${table}`).get() as { count: number }).count;
    const rows = { receipts: count("receipts"), checkpoints: count("checkpoints") };
    database.close();
    return rows;
  };

  test("is forgotten with the receipts that are cut, also in the saved state: it would grow for ever", async () => {
    const path = await newMeshPath();
    const views = await openMesh(path);
    const count = 10_000;
    const events = Array.from({ length: count }, (_, at) =>
      says("b.1", at + 1, "build:assigned", "j1", { attempt: 1 }),
    );
    const all = arrivals(events).map((one, at) => ({
      ...one,
      receipt: at + 1,
      checkpoint: { after: at, note: `note ${at + 1}` },
    }));
    for await (const batch of batches(all, 512)) await views.put(batch);
    await views.replay(SAVES, batches(all, 512));
    // Then retention has cut all but the last ten.
    const cut = { from: "saved", saves: true, firstReceipt: count - 9 } as const;
    expect(await views.replay(cut, batches([]))).toMatchObject({ equal: true });
    expect(await views.receiptOf("b.1", count - 10)).toBeNull();
    expect(await views.receiptOf("b.1", count - 9)).toBe(count - 9);
    expect(await views.checkpointAfter("b.1", count - 10)).toMatchObject({ size: count - 9 });
    await views.close();
    expect(rowsIn(path)).toEqual({ receipts: 10, checkpoints: 10 });
    const [base] = filesOf(path, ".base-");
    expect(rowsIn(base!)).toEqual({ receipts: 10, checkpoints: 10 });
  });
});
