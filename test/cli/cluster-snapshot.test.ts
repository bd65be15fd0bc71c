// `tenure cluster snapshot` and files: verify asks no server and tells every kind of damage; save writes a whole file or none,
// here from servers that are made up.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { serverMachine } from "../../src/node/assembly/machine.ts";
import { viewOf } from "../../src/cli/cluster/test-cluster.ts";
import { toSnake } from "../../src/contract/snake-case.ts";
import { peerKey } from "../../src/core/kit/ids.ts";
import { wholeOf } from "../../src/core/kit/pieces.ts";
import { configurationOf } from "../../src/core/raft/index.ts";
import { encodeSnapshotFile } from "../../src/core/wal/index.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { waitFor } from "../servers/index.ts";
import { atTheEnd, start, tenure, tenureJson } from "./test-tenure.ts";

const directory = mkdtempSync(join(tmpdir(), "tenure-snapshots-"));
atTheEnd(async () => rmSync(directory, { recursive: true, force: true }));

const voters = [peerKey("n1", "a1"), peerKey("n2", "b2"), peerKey("n3", "c3")];
const meta = { index: 4_711, term: 7, configuration: configurationOf(voters) };
const whole = encodeSnapshotFile(meta, wholeOf(await serverMachine(systemDigest).machine.snapshot()), systemDigest);

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

it("verify refuses a whole file whose state no server could read", async () => {
  const state = wholeOf(await serverMachine(systemDigest).machine.snapshot());
  for (const data of [new TextEncoder().encode("the state"), state.subarray(0, -1), Uint8Array.of(...state, 0)]) {
    const path = file("unreadable", encodeSnapshotFile(meta, data, systemDigest));
    const { code, stdout, stderr } = await tenure("cluster", "snapshot", "verify", path);
    expect(stdout).toBe("");
    expect([65, 78]).toContain(code);
    expect(stderr).toMatch(/is whole, but its state can't be used: .*\n$/);
  }
});

/** One node that saves and sends a snapshot as `send` says; `asked` counts what steers. */
async function fakeServer(send: (response: ServerResponse) => void): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    if (request.url === "/v1/cluster") {
      const members = viewOf("n1").members.slice(0, 1);
      return response.end(JSON.stringify(toSnake(viewOf("n1", { members: members.map((one) => ({ ...one, url })) }))));
    }
    asked.push(`${request.method} ${request.url}`);
    if (request.method === "POST") return response.end(JSON.stringify({ index: 1, term: 1, bytes: 1 }));
    return send(response);
  });
  atTheEnd(async () => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, asked };
}

function freshDirectory(name: string): string {
  const path = join(directory, name);
  mkdirSync(path);
  return path;
}

describe("tenure cluster snapshot save", () => {
  it("writes a whole file that only its owner may read, and leaves nothing beside it", async () => {
    const { url } = await fakeServer((response) => response.end(whole));
    const place = freshDirectory("saved");
    const path = join(place, "a.snap");
    expect(await tenureJson("cluster", "snapshot", "save", path, "--url", url)).toMatchObject({
      code: 0,
      index: 4_711,
    });
    expect(readdirSync(place)).toEqual(["a.snap"]);
    expect(new Uint8Array(readFileSync(path))).toEqual(whole);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("into a directory that is not there is a mistake here, told before any server is asked", async () => {
    const { url, asked } = await fakeServer((response) => response.end(whole));
    const path = join(directory, "nowhere", "a.snap");
    const { code, stdout, stderr } = await tenure("cluster", "snapshot", "save", path, "--url", url);
    expect({ code, stdout, asked }).toEqual({ code: 64, stdout: "", asked: [] });
    expect(stderr).toContain(`there is no directory ${join(directory, "nowhere")}`);
    expect(stderr).not.toContain("fetched");
  });

  it("never overwrites a file that appears meanwhile, but with --force", async () => {
    const place = freshDirectory("meanwhile");
    const path = join(place, "a.snap");
    const { url } = await fakeServer((response) => {
      writeFileSync(path, "somebody's");
      response.end(whole);
    });
    const { code, stderr } = await tenure("cluster", "snapshot", "save", path, "--url", url);
    expect({ code, found: readFileSync(path, "utf8") }).toEqual({ code: 78, found: "somebody's" });
    expect(stderr).toContain("is there already");
    expect(await tenure("cluster", "snapshot", "save", path, "--force", "--url", url)).toMatchObject({ code: 0 });
    expect(new Uint8Array(readFileSync(path))).toEqual(whole);
    expect(readdirSync(place)).toEqual(["a.snap"]);
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("%s ends it with %i and leaves nothing behind", async (signal, exit) => {
    const place = freshDirectory(signal);
    const { url } = await fakeServer((response) => void response.write(whole.subarray(0, 20)));
    const save = start(["cluster", "snapshot", "save", join(place, "a.snap"), "--url", url]);
    const isBegun = (): boolean => readdirSync(place).some((name) => statSync(join(place, name)).size > 0);
    await waitFor("the first bytes", isBegun, 30_000);
    save.child.kill(signal);
    expect((await save.ended).code).toBe(exit);
    expect(readdirSync(place)).toEqual([]);
  });

  it.each([
    [
      "breaks off",
      (response: ServerResponse) => void response.write(whole.subarray(0, 20), () => response.destroy()),
      69,
    ],
    ["is damaged", (response: ServerResponse) => void response.end(whole.with(30, (whole[30] ?? 0) ^ 1)), 65],
  ])("of what %s leaves nothing behind", async (what, send, exit) => {
    const place = freshDirectory(what);
    const { url } = await fakeServer(send);
    const { code } = await tenure("cluster", "snapshot", "save", join(place, "a.snap"), "--url", url);
    expect({ code, left: readdirSync(place) }).toEqual({ code: exit, left: [] });
  });
});
