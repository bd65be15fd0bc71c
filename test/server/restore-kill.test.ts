// `server restore` of a snapshot with jobs and history, killed before each of its disk calls, on real files. Afterwards the directory
// is one of two things, never a third: nothing, and the command can be repeated; or what a start finishes, and a repeated
// command says exactly that. A server never starts on half of it as if it were whole.

import { cpSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient } from "../../src/entry/client.ts";
import { start, tenure } from "../cli/test-tenure.ts";
import {
  OPERATOR_KEY as key,
  startTenureCluster,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";
import { HISTORY_ELECTION, Load, SMALL_SEGMENTS, verified } from "./test-history.ts";

const KILLED_AT = new URL("../servers/killed-at.ts", import.meta.url).href;
/** More than a restore has. */
const CALLS_MAX = 60;

let cluster: TenureCluster;
let node: TenureNode;
let file: string;
let pending: string;
let copies: string;

beforeAll(async () => {
  cluster = await startTenureCluster({
    nodes: 1,
    election: HISTORY_ELECTION,
    snapshots: { after_entries: 60, keep_entries: 20 },
    prepare: (made) => (made.nodeFlags = SMALL_SEGMENTS),
  });
  [node] = cluster.nodes as [TenureNode];
  const load = new Load([node.url]);
  await load.more(30);
  await load.stop();
  pending = await load.client.submit({ kind: "nobody-runs-it" });
  file = join(cluster.directory, "nightly.snap");
  expect(await tenure("cluster", "snapshot", "save", file, "--url", node.url, "--key", cluster.key)).toMatchObject({
    code: 0,
  });
  copies = join(cluster.directory, "history");
  mkdirSync(copies);
  for (const name of readdirSync(node.dataDir).filter((one) => /^events-\d/.test(one)))
    cpSync(join(node.dataDir, name), join(copies, name));
  await node.term();
}, 240_000);

afterAll(() => cluster?.end());

function restore(
  killAt?: number,
  ...more: readonly string[]
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const environment = {
    NODE_OPTIONS: `${SMALL_SEGMENTS.join(" ")} --import ${KILLED_AT}`,
    ...(killAt === undefined ? {} : { KILL_AT_DISK_CALL: String(killAt) }),
  };
  const args = ["server", "restore", "--snapshot", file, "-o", "json", "--config", node.configFile, ...more];
  return start(args, environment).ended;
}

/** It leads, with all that the snapshot had: the job that waits, and a history that begins where the command says. */
async function expectWhole(firstSequence: unknown = expect.toSatisfy((first: number) => first > 1)): Promise<void> {
  node.start();
  await waitFor("it to lead alone", async () => (await node.view())?.role === "LEADER", 60_000);
  const client = createClient({ urls: [node.url], key, timeoutMs: 30_000 });
  expect(await client.job(pending)).toMatchObject({ id: pending, state: "pending" });
  const verdict = await verified(node);
  expect(verdict).toMatchObject({ valid: true, firstSequence });
  await node.kill9();
}

test("a restore that is killed before any of its disk calls can be repeated, or is finished by a start, which it says", async () => {
  const ends = { repeated: 0, finished: 0 };
  const saved = join(cluster.directory, "killed");
  let call = 1;
  for (; call <= CALLS_MAX; call++) {
    node.wipe();
    const killed = await restore(call);
    if (killed.code === 0) break;
    expect(killed.code, killed.stderr).toBeNull();
    rmSync(saved, { recursive: true, force: true });
    cpSync(node.dataDir, saved, { recursive: true });
    const again = await restore();
    if (again.code === 0) {
      ends.repeated++;
      await expectWhole();
    } else {
      ends.finished++;
      expect(again, `after call ${call}`).toMatchObject({ code: 78 });
      expect(again.stderr).toMatch(/start the server|Restore into an empty directory/);
      // The refusal has changed nothing.
      expect(readdirSync(node.dataDir).toSorted()).toEqual(readdirSync(saved).toSorted());
      await expectWhole();
    }
  }
  expect(call).toBeGreaterThan(5);
  expect(call).toBeLessThan(CALLS_MAX);
  expect(ends.repeated).toBeGreaterThan(1);
  expect(ends.finished).toBeGreaterThan(1);
}, 900_000);

test("one with copies of the history too, which is whole in the end", async () => {
  const ends = { repeated: 0, finished: 0 };
  let call = 2;
  for (; call <= CALLS_MAX * 4; call += 9) {
    node.wipe();
    const killed = await restore(call, "--history", copies);
    if (killed.code === 0) break;
    expect(killed.code, killed.stderr).toBeNull();
    const again = await restore(undefined, "--history", copies);
    if (again.code !== 0) expect(again.stderr).toMatch(/start the server|Restore into an empty directory/);
    ends[again.code === 0 ? "repeated" : "finished"]++;
    await expectWhole(1);
  }
  expect(call).toBeGreaterThan(11);
  expect(call).toBeLessThan(CALLS_MAX * 4);
  expect(ends.repeated).toBeGreaterThan(0);
}, 900_000);

test("a server that is started on what a killed restore left without a stamp refuses: it founds nothing", async () => {
  node.wipe();
  expect((await restore(1)).code).toBeNull();
  node.start();
  expect(await node.ended()).toMatchObject({ code: 78, log: expect.stringContaining("the data directory is empty") });
}, 120_000);
