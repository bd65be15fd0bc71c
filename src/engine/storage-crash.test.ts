import { describe, expect, test } from "vitest";
import { seededRandom } from "../core/kit/random.ts";
import { CRASH_MODES, TestDisk } from "./test-disk.ts";
import {
  bytesOf,
  entry,
  hardState,
  n2,
  open as openAny,
  request,
  snapshotAt,
  written as writtenAny,
} from "./test-storage.ts";
import type { Opened, OpenOptions, Storage } from "./storage.ts";

describe.each([0, 40, 700])("a crash in each disk call, with %i bytes reserved ahead", (reserveBytes) => {
  const open = (disk: TestDisk, options: Partial<OpenOptions> = {}): Promise<Opened> =>
    openAny(disk, { reserveBytes, ...options });
  const written = (disk: TestDisk, options: Partial<OpenOptions> = {}): Promise<Storage> =>
    writtenAny(disk, { reserveBytes, ...options });
  type Scenario = {
    readonly name: string;
    readonly before?: (disk: TestDisk) => Promise<void>;
    readonly run: (disk: TestDisk) => Promise<unknown>;
    readonly check: (opened: Opened, disk: TestDisk) => void;
  };
  const acknowledged = (opened: Opened): void => {
    expect(opened.peer).toBe("n1@a1");
    expect(opened.hardState).toEqual(hardState(3, Math.max(3, opened.snapshot!.meta.index), n2));
    expect(opened.recovery).toMatch(/intact|torn-tail-cut/);
  };
  const lasts = (opened: Opened): number => opened.entries.at(-1)?.index ?? opened.snapshot!.meta.index;

  const scenarios: Scenario[] = [
    {
      name: "while a founder's directory is prepared",
      run: (disk) => open(disk),
      check: (opened) => {
        expect(opened.peer).toBe("n1@a1");
        expect(opened.hardState).toEqual({ term: 1, vote: null, commit: 1 });
        expect(opened.snapshot?.meta).toEqual(snapshotAt(1, 1));
      },
    },
    {
      name: "while a damaged disk is replaced",
      before: async (disk) => {
        await written(disk, { segmentBytesMax: 200 });
        // Only the last segment is damaged: without it, the rest would look like an intact, older log.
        const names = disk.names().filter((name) => name.startsWith("wal-"));
        expect(names.length).toBeGreaterThan(1);
        disk.bytesOf(names.at(-1)!)[0]! ^= 1;
      },
      run: (disk) => open(disk),
      check: (opened) => {
        expect(opened.peer).not.toBe("n1@a1");
        expect(opened.hardState).toEqual({ term: 0, vote: null, commit: 0 });
        expect(opened.snapshot).toBeNull();
        expect(opened.entries).toEqual([]);
      },
    },
    {
      name: "while a torn tail is cut",
      before: async (disk) => {
        await written(disk);
        disk.put("wal-0000000001", Uint8Array.from([...disk.bytesOf("wal-0000000001"), 1, 2, 3]));
      },
      run: (disk) => open(disk),
      check: (opened) => {
        acknowledged(opened);
        expect(lasts(opened)).toBe(5);
      },
    },
    {
      name: "while a segment that was never born is dropped",
      before: async (disk) => {
        // A next segment is created only after one that was cut to its size.
        await (await written(disk)).close();
        disk.put("wal-0000000001", disk.bytesOf("wal-0000000001"));
        disk.put("wal-0000000002", new Uint8Array(5));
      },
      run: async (disk) => {
        const { storage } = await open(disk);
        await storage.persist([request({ entries: [entry(6, 3), entry(7, 3)] })], null);
      },
      check: (opened) => {
        acknowledged(opened);
        expect(lasts(opened)).toBeGreaterThanOrEqual(5);
      },
    },
    {
      name: "while segments roll",
      before: async (disk) => void (await written(disk)),
      run: async (disk) => {
        const { storage } = await open(disk, { segmentBytesMax: 100 });
        for (let index = 6; index < 9; index++) await storage.persist([request({ entries: [entry(index, 3)] })], null);
      },
      check: (opened) => {
        acknowledged(opened);
        expect(opened.entries.slice(0, 4)).toEqual([entry(2, 2), entry(3, 2), entry(4, 2), entry(5, 3)]);
      },
    },
    {
      name: "while a snapshot is installed",
      before: async (disk) => void (await written(disk)),
      run: async (disk) => {
        const { storage } = await open(disk);
        await storage.persist([request({ snapshot: snapshotAt(9, 3), entries: [entry(10, 3)] })], bytesOf("nine"));
      },
      check: (opened, disk) => {
        acknowledged(opened);
        if (opened.snapshot!.meta.index === 9) expect(opened.snapshot!.data).toEqual(bytesOf("nine"));
        else expect(lasts(opened)).toBe(5);
        expect(disk.names().filter((name) => name.startsWith("snapshot-")).length).toBe(1);
      },
    },
    {
      name: "while an own snapshot is marked and old segments are removed",
      before: async (disk) => void (await written(disk, { segmentBytesMax: 100 })),
      run: async (disk) => {
        const { storage } = await open(disk, { segmentBytesMax: 100 });
        await storage.saveSnapshot(snapshotAt(3, 2), bytesOf("three"), 3);
      },
      check: (opened, disk) => {
        acknowledged(opened);
        expect(lasts(opened)).toBe(5);
        expect(opened.entries[0]!.index).toBe(opened.snapshot!.meta.index + 1);
        expect(disk.names().filter((name) => name.startsWith("snapshot-")).length).toBe(1);
      },
    },
  ];

  test.each(scenarios)("$name", async ({ before, run, check }) => {
    let crashes = 0;
    // Made once: what comes before the crash is the same in every round.
    const intact = new TestDisk();
    await before?.(intact);
    for (const mode of CRASH_MODES) {
      for (let seed = 0; seed < (mode === "random" ? 8 : 1); seed++) {
        for (let call = 1; ; call++) {
          const random = seededRandom(`${mode}/${seed}/${call}`);
          const disk = intact.fork();
          disk.crashAt(call);
          const outcome = await run(disk).then(
            () => "done",
            () => "crashed",
          );
          if (outcome === "done") break;
          crashes++;
          disk.restart(mode, random);
          // The second start crashes as well, somewhere; a power loss follows; the third one gets through.
          disk.crashAt(1 + random.below(20));
          await open(disk).catch(() => undefined);
          disk.restart("random", random);
          check(await open(disk), disk);
        }
      }
    }
    expect(crashes).toBeGreaterThan(40);
  });

  test("a damaged disk's evidence survives every crash in its replacement", async () => {
    const intact = new TestDisk();
    await written(intact);
    intact.bytesOf("wal-0000000001")[5]! ^= 1;
    for (let call = 1; call < 40; call++) {
      const disk = intact.clone();
      disk.crashAt(call);
      await open(disk).catch(() => undefined);
      disk.restart("vanish", seededRandom(call));
      await open(disk);
      const kept = disk
        .names()
        .filter((name) => name.startsWith("damaged-"))
        .map((name) => disk.bytesOf(name));
      expect(kept).toContainEqual(intact.bytesOf("wal-0000000001"));
    }
  });
});
