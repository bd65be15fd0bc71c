import { expect, test } from "vitest";
import { writeDurably } from "./durable-file.ts";
import { TestDisk } from "./test-disk.ts";

const MEBIBYTE = 1024 * 1024;

test("a large file is written in pieces, each synced before the next, and has its name only when all are", async () => {
  const disk = new TestDisk();
  const head = new Uint8Array([1, 2, 3]);
  const data = Uint8Array.from({ length: 9 * MEBIBYTE }, (_, at) => at % 251);
  await writeDurably(disk, "snapshot-1-1", [head, data], "snapshot");
  const kinds = disk.calls.map((call) => (call.split(" ")[0] as string).replace("snapshot-", ""));
  expect(kinds.filter((kind) => kind !== "close")).toEqual(
    "create append append fdatasync append fdatasync append fdatasync rename sync-directory".split(" "),
  );
  const written = await disk.read("snapshot-1-1", "look");
  expect(written.length).toBe(head.length + data.length);
  expect(written.subarray(head.length).every((byte, at) => byte === data[at])).toBe(true);
});
