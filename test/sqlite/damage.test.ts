import { execFileSync, spawnSync } from "node:child_process";
import { open, readdir, stat, writeFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { waitFor } from "../servers/index.ts";
import { allPages, jobsFrom, newJob, newLogger, newPath, openAt } from "./test-jobs.ts";

const DISK_FULL = new URL("./test-disk-full.ts", import.meta.url).pathname;

async function filled(path: string): Promise<void> {
  const views = await openAt(path);
  await views.put(2_000, jobsFrom(1, 2_000), [], []);
  await views.close();
}

async function asides(path: string): Promise<string[]> {
  const names = await readdir(dirname(path));
  return names.filter((name) => name.startsWith(`${basename(path)}.`) && !name.endsWith("-wal"));
}

/** Everything but the first page: the tables' own. */
async function scribble(path: string): Promise<void> {
  const file = await open(path, "r+");
  const { size } = await file.stat();
  await file.write(Buffer.alloc(size - 4_096, 0x5a), 0, size - 4_096, 4_096);
  await file.close();
}

describe("a file that can't be used", () => {
  test.each([
    [
      "is no database",
      "damaged",
      (path: string) => writeFile(path, "not a database, but long enough to be one".repeat(200)),
    ],
    ["is damaged behind its first page", "damaged", scribble],
    [
      "is of a newer format",
      "format",
      (path: string) => change(path, "UPDATE meta SET value = 99 WHERE name = 'format'"),
    ],
    ["has no such table", "format", (path: string) => change(path, "DROP TABLE meta")],
    [
      "is of another cluster",
      "cluster",
      (path: string) => change(path, "UPDATE meta SET value = 'c9' WHERE name = 'cluster_id'"),
    ],
  ])("because it %s is moved aside, and said so, and built anew from position 0", async (_, reason, harm) => {
    const path = await newPath();
    await filled(path);
    await harm(path);
    const { logger, lines } = newLogger();
    let resets = 0;
    const views = await openAt(path, { logger, onReset: () => resets++ });
    expect(await views.position()).toBe(0);
    expect(resets).toBe(1);
    const names = await asides(path);
    expect(names).toEqual([expect.stringContaining(`.${reason}-`)]);
    expect(lines.filter((line) => line.level === "error")).toMatchObject([
      { fields: { aside: `${dirname(path)}/${names[0]}` } },
    ]);
    await views.put(2_001, jobsFrom(1, 10), [], []);
    expect((await allPages(views, { limit: 500 })).ids).toHaveLength(10);
  });

  test("found by a read is moved aside too, once, and whoever feeds it is told", async () => {
    const path = await newPath();
    await filled(path);
    const { logger, lines } = newLogger();
    let resets = 0;
    const views = await openAt(path, { logger, onReset: () => resets++ });
    await scribble(path);
    const reads = await Promise.allSettled(
      Array.from({ length: 5 }, () => views.list({ limit: 500, search: "linux" })),
    );
    for (const read of reads) expect(read).toMatchObject({ reason: { code: "DISK_DAMAGED" } });
    await waitFor("the file to be moved aside", () => resets > 0);
    await expect(views.put(2_001, [newJob(2_001)], [], [])).rejects.toMatchObject({ code: "DISK_DAMAGED" });
    expect(await views.position()).toBe(0);
    await views.put(2_001, jobsFrom(1, 10), [], []);
    expect((await allPages(views, { limit: 500 })).ids).toHaveLength(10);
    expect([resets, lines.length]).toEqual([1, 1]);
  });

  test("found by a put refuses it and everything behind it until the position was asked for", async () => {
    const path = await newPath();
    await filled(path);
    const views = await openAt(path);
    await scribble(path);
    // The writer has read the first pages only.
    const outcomes = await Promise.allSettled([
      views.put(2_001, jobsFrom(1, 2_000, { state: "completed" }), [], []),
      views.put(2_002, [newJob(2_002)], [], []),
    ]);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { code: "DISK_DAMAGED" } });
    await expect(views.put(2_003, [], [], [])).rejects.toMatchObject({ code: "DISK_DAMAGED" });
    expect(await views.position()).toBe(0);
    await views.put(2_003, jobsFrom(1, 20), [], []);
    expect((await allPages(views, { limit: 500 })).ids).toHaveLength(20);
  });

  test("because its directory is not there is no damage: it is said at once", async () => {
    const path = `${await newPath()}/none/views.db`;
    await expect(openAt(path)).rejects.toMatchObject({
      code: "BACKEND_UNAVAILABLE",
      message: expect.stringContaining(path) as string,
    });
  });

  test("only the last one is kept", async () => {
    const path = await newPath();
    for (let i = 0; i < 3; i++) {
      await writeFile(path, "nonsense ".repeat(1_000 + i));
      await (await openAt(path)).close();
    }
    const [name, ...others] = await asides(path);
    expect(others).toEqual([]);
    expect((await stat(`${dirname(path)}/${name!}`)).size).toBe(9 * 1_002);
  });

  test("because it was never fed to its first position is dropped: what a later snapshot lacks must not stay", async () => {
    const path = await newPath();
    const first = await openAt(path);
    await first.put(0, jobsFrom(1, 10), [], []);
    // Asked for again while it is open, and when it is opened again.
    expect(await first.position()).toBe(0);
    await first.put(0, jobsFrom(5, 10), [], []);
    expect((await allPages(first, { limit: 500 })).ids).toHaveLength(10);
    await first.close();
    const second = await openAt(path);
    await second.put(0, jobsFrom(7, 10), [], []);
    await second.put(20, [], [], []);
    expect((await allPages(second, { limit: 500 })).ids).toHaveLength(10);
    expect(await asides(path)).toEqual([]);
  });
});

/** A disk of its own: names and mounts that only its child sees. */
const UNSHARE = "unshare";
const canMount = spawnSync(UNSHARE, ["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status === 0;

test.skipIf(!canMount)(
  "a full disk refuses puts with DISK_FULL, loses nothing, and takes them again when there is room",
  () => {
    const script = 'mount -t tmpfs -o size=6m tmpfs /mnt && exec "$0" "$1" /mnt';
    const output = execFileSync(UNSHARE, ["-rm", "sh", "-c", script, process.execPath, DISK_FULL], {
      encoding: "utf8",
    });
    const report = JSON.parse(output) as Record<string, unknown>;
    expect(report).toEqual({
      refusal: "DISK_FULL",
      behind: "DISK_FULL",
      stillFull: "DISK_FULL",
      isWholeWhileFull: true,
      isWholeAfterwards: true,
      openedOnAFullDisk: "DISK_FULL",
      openedLater: 7,
    });
  },
);

function change(path: string, statement: string): Promise<void> {
  const database = new DatabaseSync(path);
  database.exec(statement);
  database.close();
  return Promise.resolve();
}
