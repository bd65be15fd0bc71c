import { readdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { type LineEvent, Projection, shownJob } from "../../src/core/mesh/merge/index.ts";
import { JOBS, MemoryRows, worldOf } from "../../src/core/mesh/merge/test-worlds.ts";
import { seededRandom } from "../../src/core/kit/random.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import type { ArrivedEvent, MeshViews } from "../../src/ports/mesh/views.ts";
import { newLogger } from "./test-jobs.ts";
import { arrivals, batches, newMeshPath, openMesh, says } from "./test-mesh.ts";

const spec = (kind: string, queue = "linux") => ({ spec: { kind, queue, labels: { branch: "main" } }, by: "ann" });

/** Two sites with two jobs each, and an agent. */
function smallWorld(): LineEvent[] {
  return [
    says("a.1", 1, "controller:registered", "a", { name: "Site A", urls: ["https://a:1"], version: "9" }),
    says("a.1", 2, "build:submitted", "j1", spec("compile")),
    says("b.1", 1, "build:submitted", "j2", spec("test", "mac")),
    says("a.1", 3, "build:assigned", "j1", { agent: "w1", attempt: 1 }),
    says("b.1", 2, "worker:registered", "w7", { platform: "linux", capacity: 4, kinds: ["test"] }),
    says("b.1", 3, "build:submitted", "j3", spec("compile")),
    says("a.1", 4, "build:failed", "j1", { error: { message: "no such file" } }),
    says("b.1", 4, "worker:registered", "w8", { platform: "linux", capacity: 1, kinds: [] }),
  ];
}

async function filled(path: string, events = smallWorld()): Promise<MeshViews> {
  const views = await openMesh(path);
  await views.put(arrivals(events));
  return views;
}

/** Lines in any order, each in its own order. */
function interleaved(events: readonly LineEvent[], seed: number): LineEvent[] {
  const random = seededRandom(`interleaved ${seed}`);
  const lines = [...Map.groupBy(events, ({ line }) => line).values()];
  const all: LineEvent[] = [];
  for (
    let left = lines.filter((line) => line.length > 0);
    left.length > 0;
    left = left.filter((line) => line.length > 0)
  )
    all.push(random.pick(left).shift()!);
  return all;
}

test("rows, hash and jobs are those that the same events give in memory, whatever order the lines come in", async () => {
  for (let seed = 1_000; seed < 1_012; seed++) {
    const events = worldOf(seed);
    const memory = new MemoryRows();
    const projection = new Projection(memory, systemDigest);
    for (const event of events) projection.apply(event);
    const views = await openMesh(await newMeshPath());
    for await (const batch of batches(arrivals(interleaved(events, seed)))) await views.put(batch);
    expect(await views.hash(), `seed ${seed}`).toMatchObject({
      hash: memory.hash(),
      rows: memory.texts().length,
      through: events.length,
    });
    const { jobs } = await views.jobs({ limit: 500 });
    const expected = JOBS.map((id) => shownJob(memory.jobRows(id), () => ({ mark: null, through: null })));
    const byId = jobs.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    expect(byId, `seed ${seed}`).toMatchObject(expected.filter((job) => job !== null));
    await views.close();
  }
});

describe("what was put", () => {
  test("counts once, and is there again after a restart; a file of another cluster is moved aside", async () => {
    const path = await newMeshPath();
    const all = arrivals(smallWorld());
    const views = await openMesh(path);
    await Promise.all([views.put(all.slice(0, 5)), views.put(all.slice(3)), views.put(all.slice(0, 2))]);
    expect(await views.through()).toBe(all.length);
    const before = await views.hash();
    // Below the position nothing is taken again, also in a put that ends above it.
    const [lie, next] = arrivals(
      [says("a.1", 9, "build:completed", "j1"), says("c.1", 1, "queue:paused", "q")],
      all.length,
    );
    await views.put([lie!, next!]);
    expect(await views.hash()).toEqual({ ...before, through: all.length + 1 });
    expect((all[0]!.event as Uint8Array).length).toBeGreaterThan(0);
    await views.close();
    const again = await openMesh(path);
    expect(await again.through()).toBe(all.length + 1);
    expect((await again.hash()).hash).toBe(before.hash);
    await again.close();
    let resets = 0;
    const other = await openMesh(path, { clusterId: "another", onReset: () => resets++ });
    expect([await other.through(), resets, (await other.hash()).rows]).toEqual([0, 1, 0]);
  });

  test("is built again where the file was damaged", async () => {
    const path = await newMeshPath();
    const views = await filled(path);
    const { hash } = await views.hash();
    await views.close();
    await writeFile(path, "no database, but long enough to be one".repeat(300));
    const { logger, lines } = newLogger();
    const again = await openMesh(path, { logger });
    expect(await again.through()).toBe(0);
    expect(lines.map(({ message }) => message)).toEqual([expect.stringContaining("the mesh's file was moved aside")]);
    await again.put(arrivals(smallWorld()));
    expect((await again.hash()).rows).toBeGreaterThan(0);
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
  });

  test("may begin late and have gaps, which are counted", async () => {
    const views = await openMesh(await newMeshPath());
    const all = arrivals(smallWorld(), 11);
    await views.put(all.slice(0, 2));
    await views.put(all.slice(4));
    expect(await views.hash()).toMatchObject({ missing: 12, through: 18 });
  });

  test("may be a withheld event, or bytes that nobody can read: both are logged, neither changes a row", async () => {
    const views = await openMesh(await newMeshPath());
    const [first] = arrivals(smallWorld());
    const place = { line: "a.1", generation: 1, receipt: null, arrivedMs: 1 };
    await views.put([
      first!,
      { ...place, arrival: 2, lineSequence: 2, event: { hash: "ab".repeat(32) } },
      { ...place, arrival: 3, lineSequence: 3, event: new TextEncoder().encode('{"not":"an event"}') },
    ]);
    const { events } = await views.events({ afterArrival: 1, limit: 10 });
    expect(events).toMatchObject([
      { eventType: "withheld", eventHash: "ab".repeat(32), arrival: 2 },
      { eventType: "unreadable", eventHash: expect.stringMatching(/^[0-9a-f]{64}$/) },
    ]);
    expect((await views.hash()).rows).toBe(1);
  });
});

describe("jobs of all sites", () => {
  test("are found by site, state and words, newest first, page by page", async () => {
    const views = await filled(await newMeshPath());
    const ids = async (query: object): Promise<string[]> =>
      (await views.jobs({ limit: 10, ...query })).jobs.map(({ id }) => id);
    expect(await ids({})).toEqual(["j3", "j2", "j1"]);
    expect(await ids({ site: "b" })).toEqual(["j3", "j2"]);
    expect(await ids({ states: ["failed"] })).toEqual(["j1"]);
    expect(await ids({ search: "COMPILE main" })).toEqual(["j3", "j1"]);
    expect(await ids({ search: "compile", site: "a", states: ["failed", "pending"] })).toEqual(["j1"]);
    expect(await ids({ search: "such file" })).toEqual(["j1"]);
    const first = await views.jobs({ limit: 2 });
    expect(first.jobs.map(({ id }) => id)).toEqual(["j3", "j2"]);
    expect(await ids({ cursor: first.next! })).toEqual(["j1"]);
    await expect(views.jobs({ limit: 2, cursor: "nonsense" })).rejects.toMatchObject({ code: "BAD_REQUEST" });
    const [job] = (await views.jobs({ limit: 1, site: "a" })).jobs;
    expect(job).toMatchObject({
      site: "a",
      line: "a.1",
      state: "failed",
      agent: "w1",
      error: "no such file",
      mark: null,
    });
    expect(job!.arrivedMs).toBe(5_007);
  });

  test("of a line that is marked stay, marked; the hash and the claims are without it", async () => {
    const views = await filled(await newMeshPath());
    const claim = says("b.1", 5, "build:submitted", "j1", spec("compile"));
    await views.put(arrivals([claim], 9));
    const whole = await views.hash();
    expect((await views.jobs({ limit: 9, search: "file" })).jobs).toMatchObject([{ id: "j1", site: "a", claims: 2 }]);
    await views.mark("a.1", "forked");
    expect((await views.hash()).hash).not.toBe(whole.hash);
    const { jobs } = await views.jobs({ limit: 9 });
    expect(jobs.find(({ id }) => id === "j1")).toMatchObject({ site: "b", state: "pending", claims: 1, mark: null });
    await views.mark("b.1", "evicted");
    expect((await views.hash()).hash).toBe("0".repeat(64));
    expect((await views.jobs({ limit: 9 })).jobs.map(({ id, mark }) => [id, mark])).toContainEqual(["j3", "evicted"]);
    await views.mark("a.1", null);
    await views.mark("b.1", null);
    expect(await views.hash()).toEqual(whole);
  });

  test("go when their line forgets them, also those of an older generation", async () => {
    const views = await filled(await newMeshPath());
    const second = (
      sequence: number,
      ...rest: [`${string}:${string}`, string, LineEvent["event"]["payload"]?]
    ): LineEvent => ({
      ...says("a.2", sequence, ...rest),
      generation: 2,
    });
    await views.put(
      arrivals(
        [
          says("b.1", 5, "build:forgotten", "j2"),
          second(4, "controller:recovered", "a", { line: "a.1", through: 3 }),
          says("b.1", 6, "build:forgotten", "j3"),
        ],
        9,
      ),
    );
    expect((await views.jobs({ limit: 9 })).jobs).toMatchObject([{ id: "j1", state: "failed", isLost: true }]);
    await views.put(arrivals([second(5, "build:building", "j1")], 12));
    expect((await views.jobs({ limit: 9 })).jobs).toMatchObject([
      { id: "j1", state: "building", isLost: false, kind: "compile" },
    ]);
    await views.put(arrivals([second(6, "build:forgotten", "j1")], 13));
    expect((await views.jobs({ limit: 9 })).jobs).toEqual([]);
    expect((await views.jobs({ limit: 9, search: "compile" })).jobs).toEqual([]);
  });

  test("that a later generation has forgotten do not come back in the place of others when that generation is marked", async () => {
    const views = await openMesh(await newMeshPath());
    const second = (sequence: number, eventType: `${string}:${string}`, id: string, payload = {}): LineEvent => ({
      ...says("a.2", sequence, eventType, id, payload),
      generation: 2,
    });
    await views.put(
      arrivals([
        says("a.1", 1, "build:submitted", "j1", spec("compile")),
        says("a.1", 2, "build:submitted", "j2", spec("compile")),
        second(3, "controller:recovered", "a", { line: "a.1", through: 2 }),
        second(4, "build:forgotten", "j1"),
        second(5, "build:forgotten", "j2"),
        says("b.1", 1, "build:submitted", "j3", spec("test")),
      ]),
    );
    const ids = async (): Promise<string[]> => (await views.jobs({ limit: 9 })).jobs.map(({ id }) => id);
    expect(await ids()).toEqual(["j3"]);
    await views.mark("a.2", "forked");
    expect(await ids()).toEqual(["j3"]);
    await views.mark("a.2", null);
    expect(await ids()).toEqual(["j3"]);
  });
});

test("agents come by name, page by page; controllers with the specification's fields", async () => {
  const views = await filled(await newMeshPath());
  const first = await views.agents({ limit: 1 });
  expect(first.agents).toMatchObject([
    { name: "w7", site: "b", isOnline: true, capacity: 4, kinds: ["test"], mark: null },
  ]);
  expect((await views.agents({ limit: 1, cursor: first.next! })).agents).toMatchObject([{ name: "w8" }]);
  expect((await views.agents({ limit: 9, site: "a" })).agents).toEqual([]);
  await expect(views.agents({ limit: 1, cursor: "[1]" })).rejects.toMatchObject({ code: "BAD_REQUEST" });
  await views.put(arrivals([says("b.1", 5, "worker:offline", "w7"), says("b.1", 6, "worker:removed", "w8")], 9));
  expect((await views.agents({ limit: 9 })).agents).toMatchObject([{ name: "w7", isOnline: false }]);
  expect(await views.controllers()).toEqual([
    {
      id: "a",
      url: "https://a:1",
      name: "Site A",
      registeredAt: 1_001,
      lastHeartbeatAt: 1_001,
      expiresAt: 301_001,
      isActive: true,
      metadata: { line: "a.1", urls: ["https://a:1"], version: "9" },
    },
  ]);
});

describe("the log of events", () => {
  test("is searched from an arrival on; a long payload is left out", async () => {
    const views = await filled(await newMeshPath());
    await views.put(arrivals([says("c.1", 1, "build:submitted", "j9", { text: "x".repeat(9_000) })], 9));
    const of = async (query: object): Promise<number[]> =>
      (await views.events({ afterArrival: 0, limit: 50, ...query })).events.map(({ arrival }) => arrival);
    expect(await of({})).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(await of({ line: "b.1", afterArrival: 3 })).toEqual([5, 6, 8]);
    expect(await of({ entityId: "j1", eventType: "build:failed" })).toEqual([7]);
    expect(await of({ site: "b", afterArrival: 3 })).toEqual([5, 6, 8]);
    expect(await of({ site: "b.1" })).toEqual([]);
    expect(await of({ afterArrival: undefined, limit: 3 })).toEqual([7, 8, 9]);
    expect(await of({ afterArrival: undefined, limit: 2, site: "b" })).toEqual([6, 8]);
    const page = await views.events({ afterArrival: 0, limit: 2 });
    expect(page).toMatchObject({ next: 2, through: 9, droppedThrough: 0 });
    expect((await views.events({ afterArrival: 8, limit: 2 })).events).toMatchObject([
      { payload: '{"omittedBytes":9011}', entityType: "build", sourceControllerId: "c", line: "c.1", lineSequence: 1 },
    ]);
  });

  test("keeps the newest million", async () => {
    const views = await filled(await newMeshPath());
    await views.put(arrivals([says("c.1", 1, "build:submitted", "j9")], 1_000_005));
    const page = await views.events({ afterArrival: 0, limit: 50 });
    expect(page.events.map(({ arrival }) => arrival)).toEqual([6, 7, 8, 1_000_005]);
    expect(page.droppedThrough).toBe(5);
  });

  test("holds two lines' events with one id, and one sequence: a hostile site takes nobody's place", async () => {
    const views = await openMesh(await newMeshPath());
    const event = says("a.1", 1, "build:submitted", "j1", spec("compile"));
    await views.put(arrivals([event, { ...event, line: "b.1" }]));
    expect((await views.events({ afterArrival: 0, limit: 9 })).events).toHaveLength(2);
  });
});

test("receipts and checkpoints are found by the place in a line", async () => {
  const views = await openMesh(await newMeshPath());
  const events = Array.from({ length: 9 }, (_, at) => says("b.1", at + 3, "queue:paused", "q"));
  const received: ArrivedEvent[] = arrivals(events).map((one, at) => {
    const receipt = at < 4 ? 7 : 8;
    if (at === 3) return { ...one, receipt, checkpoint: { after: 1, note: "note of 6" } };
    return at === 8 ? { ...one, receipt, checkpoint: { after: 6, note: "note of 11" } } : { ...one, receipt };
  });
  // A receipt may come in two puts.
  await views.put(received.slice(0, 2));
  await views.put(received.slice(2));
  const receipts = await Promise.all([2, 3, 6, 7, 11, 12].map((sequence) => views.receiptOf("b.1", sequence)));
  expect(receipts).toEqual([null, 7, 7, 8, 8, null]);
  expect(await views.receiptOf("a.1", 3)).toBeNull();
  expect(await views.checkpointAfter("b.1", 0)).toEqual({ size: 6, after: 1, note: "note of 6" });
  expect(await views.checkpointAfter("b.1", 6)).toEqual({ size: 11, after: 6, note: "note of 11" });
  expect(await views.checkpointAfter("b.1", 11)).toBeNull();
});

const SEEDS_MARKED = 12;
const SAVES = { from: "nothing", saves: false } as const;

describe("a replay", () => {
  test("of the same arrivals is equal, whatever comes after it began, and leaves no file", async () => {
    const path = await newMeshPath();
    const all = arrivals(smallWorld());
    const views = await openMesh(path);
    await views.put(all.slice(0, 6));
    await views.mark("b.1", "forked");
    const { hash, rows } = await views.hash();
    expect(await views.replay(SAVES, batches(all))).toEqual({
      equal: true,
      events: 6,
      hash,
      rebuiltHash: hash,
      rows,
      rebuiltRows: rows,
    });
    expect((await readdir(dirname(path))).filter((name) => name.includes("replay"))).toEqual([]);
  });

  test("is equal whenever lines were marked, and marked no more, and whenever generations ended", async () => {
    for (let seed = 0; seed < SEEDS_MARKED; seed++) {
      const random = seededRandom(`marked ${seed}`);
      // Each generation is a line of its own, as they are.
      const world = worldOf(seed).map((said) => {
        const site = said.line.split(".")[0]!;
        const ends = said.generation > 1 && random.chance(0.2);
        const payload = { line: `${site}.${said.generation - 1}`, through: random.below(12) };
        const event = ends ? { ...said.event, eventType: "controller:recovered" as const, payload } : said.event;
        return { ...said, line: `${site}.${said.generation}`, event };
      });
      const all = arrivals(interleaved(world, seed));
      const lines = [...new Set(world.map(({ line }) => line))];
      const views = await openMesh(await newMeshPath());
      for await (const batch of batches(all, 3)) {
        await views.put(batch);
        await views.mark(random.pick(lines), random.pick(["forked", "evicted", null]));
      }
      expect(await views.replay(SAVES, batches(all)), `seed ${seed}`).toMatchObject({ equal: true });
    }
  });

  test.each([
    ["in a row", "UPDATE merged_rows SET text = replace(text, 'no such file', 'no such fire') WHERE kind = 'job'"],
    ["in what is shown of a job", "UPDATE jobs SET json = replace(json, 'no such file', 'no such fire')"],
    ["by a job that is not shown", "DELETE FROM jobs WHERE id = 'j2'"],
  ])("sees what was changed %s, although its sum was not", async (_where, change) => {
    const path = await newMeshPath();
    const events = smallWorld();
    const all = arrivals(events);
    const before = await filled(path, events);
    expect(await before.replay(SAVES, batches(all))).toMatchObject({ equal: true });
    await before.close();
    const database = new DatabaseSync(path);
    expect(database.prepare(change).run().changes).toBeGreaterThan(0);
    database.close();
    const views = await openMesh(path);
    expect(await views.replay(SAVES, batches(all))).toMatchObject({ equal: false });
  });

  test("sees a row that was changed, and a row that was never made", async () => {
    const path = await newMeshPath();
    const all = arrivals(smallWorld());
    const views = await openMesh(path);
    await views.put(all);
    await views.close();
    const database = new DatabaseSync(path);
    database.exec("DELETE FROM merged_rows WHERE kind = 'agent' AND id = 'w7'");
    database.close();
    const again = await openMesh(path);
    expect(await again.replay(SAVES, batches(all))).toMatchObject({ equal: false, rows: 5, rebuiltRows: 6 });
    const [first, ...others] = all;
    const other = await openMesh(await newMeshPath());
    await other.put([first!, ...others.slice(1)].map((one, at) => ({ ...one, arrival: at + 1 })));
    expect(await other.replay(SAVES, batches(all))).toMatchObject({ equal: false });
    expect(await other.replay(SAVES, batches(all.slice(0, 3)))).toMatchObject({ equal: false, events: 3 });
  });
});
