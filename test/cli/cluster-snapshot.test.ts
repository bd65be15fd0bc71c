// `tenure cluster snapshot verify` on files: it asks no server, and tells every kind of damage.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { peerKey } from "../../src/core/kit/ids.ts";
import { configurationOf } from "../../src/core/raft/index.ts";
import { encodeSnapshotFile } from "../../src/core/wal/index.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { atTheEnd, tenure, tenureJson } from "./test-tenure.ts";

const directory = mkdtempSync(join(tmpdir(), "tenure-snapshots-"));
atTheEnd(async () => rmSync(directory, { recursive: true, force: true }));

const voters = [peerKey("n1", "a1"), peerKey("n2", "b2"), peerKey("n3", "c3")];
const whole = encodeSnapshotFile(
  { index: 4_711, term: 7, configuration: configurationOf(voters) },
  new TextEncoder().encode("the state"),
  systemDigest,
);

function file(name: string, bytes: Uint8Array): string {
  const path = join(directory, name);
  writeFileSync(path, bytes);
  return path;
}

describe("tenure cluster snapshot verify", () => {
  it("says what a whole file holds", async () => {
    const path = file("whole", whole);
    expect(await tenureJson("cluster", "snapshot", "verify", path)).toEqual({
      code: 0,
      file: path,
      bytes: whole.length,
      index: 4_711,
      term: 7,
      voters,
      learners: [],
      is_joint: false,
      url: null,
    });
    const { stdout } = await tenure("cluster", "snapshot", "verify", path);
    expect(stdout).toMatch(/^checksum +ok$/m);
    expect(stdout).toMatch(/^voters +n1@a1, n2@b2, n3@c3$/m);
  });

  it.each([
    ["one bit is wrong", () => whole.with(whole.length - 3, (whole.at(-3) ?? 0) ^ 1)],
    ["the end is missing", () => whole.subarray(0, -1)],
    ["bytes follow", () => Uint8Array.of(...whole, 0)],
    ["it is empty", () => new Uint8Array()],
    ["it is something else", () => new TextEncoder().encode(JSON.stringify({ snapshot: true }).repeat(20))],
  ])("refuses a file in which %s, with 65 and one line", async (what, bytes) => {
    const { code, stdout, stderr } = await tenure("cluster", "snapshot", "verify", file(what, bytes()));
    expect({ code, stdout }).toEqual({ code: 65, stdout: "" });
    expect(stderr).toMatch(/^tenure: .* is not a whole snapshot: .*\n$/);
  });

  it("says that there is no such file", async () => {
    const { code, stderr } = await tenure("cluster", "snapshot", "verify", join(directory, "nothing"));
    expect({ code, stderr }).toEqual({
      code: 65,
      stderr: `tenure: can't read ${join(directory, "nothing")}: there is no such file.\n`,
    });
  });
});
