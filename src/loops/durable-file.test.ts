import { expect, test } from "vitest";
import { TestDisk } from "../engine/test-disk.ts";
import { durableFiles } from "./durable-file.ts";

const { writeDurably } = durableFiles("the directory", (what, why) => `${what}: ${why}.`);
const MEBIBYTE = 1024 * 1024;
const pieces = Array.from({ length: 9 }, (_, at) => new Uint8Array(MEBIBYTE).fill(at + 1));

function kindsOf(disk: TestDisk): readonly string[] {
  const kinds = disk.calls.map((call) => (call.split(" ")[0] as string).replace("snapshot-", ""));
  return kinds.filter((kind) => kind !== "close");
}

test("a large file is synced on its way, and has its name only when all of it is", async () => {
  const disk = new TestDisk();
  const head = new Uint8Array([1, 2, 3]);
  let turns = 0;
  const pause = async (): Promise<void> => void turns++;
  expect(await writeDurably(disk, "snapshot-1-1", [head, ...pieces], "snapshot", { pause })).toBe(true);
  const four = "append append append append";
  expect(kindsOf(disk)).toEqual(
    `create append append append append fdatasync ${four} fdatasync append append fdatasync rename sync-directory`.split(
      " ",
    ),
  );
  const written = await disk.read("snapshot-1-1", "look");
  expect(written.length).toBe(head.length + 9 * MEBIBYTE);
  expect(Array.from(pieces, (_, at) => written[head.length + at * MEBIBYTE])).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(turns, "others may have theirs behind each piece").toBe(10);
});

test("one that is not wanted any more never gets its name, is let go of, and leaves nothing behind", async () => {
  const disk = new TestDisk();
  let isHeld = true;
  const made = function* (): Generator<Uint8Array, void, void> {
    try {
      yield* pieces;
    } finally {
      isHeld = false;
    }
  };
  let asked = 0;
  const written = await writeDurably(disk, "snapshot-1-1", made(), "snapshot", { goesOn: () => ++asked < 3 });
  expect([written, isHeld]).toEqual([false, false]);
  expect(kindsOf(disk)).toEqual(["create", "append", "append", "remove"]);
  expect(await disk.list("look")).toEqual([]);
  expect(await writeDurably(disk, "snapshot-1-1", [new Uint8Array([7])], "snapshot")).toBe(true);
  expect(await disk.read("snapshot-1-1", "look")).toEqual(new Uint8Array([7]));
});
