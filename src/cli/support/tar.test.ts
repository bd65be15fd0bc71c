import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { tarOf } from "./tar.ts";

it("makes an archive that tar reads: names, sizes at and around a block, times and modes", () => {
  const sizes = [0, 1, 511, 512, 513, 5_000];
  const files = sizes.map((size) => ({ name: `nodes/n1/${size}.txt`, bytes: new Uint8Array(size).fill(97) }));
  const archive = tarOf(files, 1_800_000_000.9);
  const listed = spawnSync("tar", ["--utc", "--full-time", "-tvf", "-"], { input: archive, encoding: "utf8" });
  expect(listed).toMatchObject({ status: 0, stderr: "" });
  const lines = listed.stdout.trim().split("\n");
  expect(lines.map((line) => line.split(/\s+/))).toEqual(
    sizes.map((size) => ["-rw-------", "0/0", `${size}`, "2027-01-15", "08:00:00", `nodes/n1/${size}.txt`]),
  );
  for (const { name, bytes } of files) {
    const { stdout } = spawnSync("tar", ["-xOf", "-", name], { input: archive });
    expect(stdout.equals(bytes), name).toBe(true);
  }
});

it("refuses a name that a reader would not find again", () => {
  for (const name of ["", "a b", "ä", "a".repeat(101)])
    expect(() => tarOf([{ name, bytes: new Uint8Array() }], 0)).toThrow(RangeError);
});
