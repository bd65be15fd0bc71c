// Where the history of events takes no more: its disk does not keep up, or its quota is used up. New jobs are refused, and say
// why; results are taken all the same; and when there is room again, so are jobs. One server in this process, so that its disk
// can be held.

import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parseServerConfig, type ServerConfigFile } from "../../src/contract/index.ts";
import { restoreDirectory } from "../../src/node/worlds/recover.ts";
import { diagnosticsOf } from "../../src/cli/server/diagnostics.ts";
import { startServerNode, type ServerNode } from "../../src/node/worlds/embedded.ts";
import { electionConfig } from "../../src/core/raft/index.ts";
import { openLogSink } from "../../src/drivers/telemetry/index.ts";
import { createClient, type Client, TenureError } from "../../src/entry/client.ts";
import type { Disk, DiskFile } from "../../src/ports/disk.ts";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { freePort, waitFor } from "../servers/index.ts";
import { SEGMENT_EVENTS } from "../servers/small-segments.ts";

const KEY = "operator-key-of-the-test";
const TEXT_CHARS = 240 * 1024;
/** The bound is 64 MiB, and what comes in one request is not cut in the middle. */
const JOBS_MAX = 500;
/** One event each: two sealed segments, and a little more. */
const LET_GO = 2 * SEGMENT_EVENTS;
const JOBS = LET_GO + 12;
const KEEP_MS = 500;

interface Lease {
  readonly job_id: string;
  readonly job_epoch: number;
  readonly lease_id: string;
  readonly leader_epoch: number;
}

interface Server {
  readonly node: ServerNode;
  readonly client: Client;
  readonly directory: string;
  /** Stops it and starts it again on its directory. */
  restarted(): Promise<Server>;
}

async function serverWith(
  more: Partial<ServerConfigFile>,
  wrapDisk: (disk: Disk) => Disk = (disk) => disk,
): Promise<Server> {
  const directory = await temporaryDirectory("history", undefined);
  onTestFinished(() => removeDirectory(directory));
  return startOn(directory, { ...(await fileOf(directory)), ...more }, wrapDisk, true);
}

async function fileOf(directory: string) {
  return {
    node_id: "n1",
    data_dir: directory,
    peer: { listen: `127.0.0.1:${await freePort()}` },
    api: { listen: `127.0.0.1:${await freePort()}` },
    keys: [{ name: "o", role: "operator", sha256: createHash("sha256").update(KEY).digest("hex") }],
  };
}

/** A copy for inspection, with all of its history, on another disk. */
async function pausedCopy({ node, directory: historyFrom }: Server, file: object): Promise<Server> {
  const directory = await temporaryDirectory("history", undefined);
  onTestFinished(() => removeDirectory(directory));
  const saved = await fetch(`${node.apiUrl}/v1/admin/snapshot`, { headers: { "x-api-key": KEY } });
  const path = join(directory, "copy.snap");
  writeFileSync(path, await saved.bytes());
  await node.stop();
  const own = { ...file, data_dir: join(directory, "data") };
  const config = parseServerConfig(own, { environment: {}, configDir: directory, checkElection: electionConfig });
  await restoreDirectory(config, { path, historyFrom, isPaused: true });
  return startOn(directory, own, (disk) => disk, false);
}

async function startOn(
  directory: string,
  file: object,
  wrapDisk: (disk: Disk) => Disk,
  bootstrap: boolean,
): Promise<Server> {
  const config = parseServerConfig(file, { environment: {}, configDir: directory, checkElection: electionConfig });
  const logs = openLogSink({ level: "silent", destination: "/dev/null" });
  const onFatal = (error: unknown): never => {
    throw error;
  };
  const node = await startServerNode(config, {
    bootstrap,
    version: "0",
    logs,
    diagnostics: () => diagnosticsOf(config, logs),
    onFatal,
    world: { wrapDisk },
  });
  onTestFinished(() => node.stop());
  const client = createClient({ urls: [node.apiUrl], key: KEY, timeoutMs: 5_000 });
  await waitFor("it to lead", async () => (await client.stats().catch(() => null)) !== null);
  const restarted = async (): Promise<Server> => {
    await node.stop();
    return startOn(directory, file, wrapDisk, false);
  };
  return { node, client, directory, restarted };
}

/** Everything that the archive appends waits for `gate`. */
function held(disk: Disk, gate: () => Promise<void>): Disk {
  const file = (one: DiskFile): DiskFile => ({
    name: one.name,
    append: async (bytes, label) => {
      if (label.startsWith("archive")) await gate();
      await one.append(bytes, label);
    },
    reserve: (sizeBytes, label) => one.reserve(sizeBytes, label),
    truncate: (sizeBytes, label) => one.truncate(sizeBytes, label),
    fdatasync: (label) => one.fdatasync(label),
    close: () => one.close(),
  });
  return new Proxy(disk, {
    get: (target, name) => {
      if (name === "create" || name === "open")
        return async (...args: Parameters<Disk["open"]>) => file(await target[name](...args));
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Submits until that is refused; resolves to why. */
async function submitUntilRefused(node: ServerNode): Promise<{ readonly status: number; readonly error: string }> {
  for (let at = 0; at < JOBS_MAX; at++) {
    const answer = await post(node, "/v1/jobs", { kind: "large", payload: { text: "x".repeat(TEXT_CHARS) } });
    if (answer.status !== 200) return { status: answer.status, error: String(answer.body["error"]) };
  }
  return { status: 200, error: "nothing was refused" };
}

async function get(node: ServerNode, path: string) {
  const answer = await fetch(`${node.apiUrl}${path}`, { headers: { "x-api-key": KEY } });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

async function post(node: ServerNode, path: string, body: object) {
  const headers = { "content-type": "application/json", "x-api-key": KEY };
  const answer = await fetch(`${node.apiUrl}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

async function lease(node: ServerNode, session: string): Promise<Lease> {
  const agent = { name: "a", session, kinds: ["large"], labels: {}, platform: "linux", capacity: 1 };
  const { body } = await post(node, "/v1/leases", { agent, max: 1, wait_ms: 0, ttl_ms: 60_000 });
  return (body["leases"] as Lease[])[0]!;
}

async function complete(node: ServerNode, session: string, one: Lease): Promise<number> {
  const { job_id, job_epoch, lease_id, leader_epoch } = one;
  const result = { job_id, job_epoch, lease_id, leader_epoch, outcome: "completed", result: 1 };
  return (await post(node, "/v1/results", { session, results: [result] })).status;
}

test("a disk that does not keep up: 503 OVERLOADED for new jobs until it has caught up, and never for results", async () => {
  let release = (): void => undefined;
  let gate = Promise.resolve();
  const { node, client } = await serverWith({}, (disk) => held(disk, () => gate));
  onTestFinished(() => release());
  await client.submit({ kind: "large", payload: { text: "the first" } });
  gate = new Promise((resolve) => (release = resolve));
  const leased = await lease(node, "s");
  expect(await submitUntilRefused(node)).toEqual({ status: 503, error: "OVERLOADED" });
  expect(await complete(node, "s", leased)).toBe(200);
  release();
  await waitFor("jobs to be taken again", async () => (await post(node, "/v1/jobs", { kind: "small" })).status === 200);
});

test("a quota that is used up: 507 QUOTA_EXCEEDED for new jobs, and never for results", async () => {
  const { node, client } = await serverWith({ history: { quota_bytes: 2_000_000 } });
  await client.submit({ kind: "large", payload: { text: "the first" } });
  const leased = await lease(node, "s");
  expect(await submitUntilRefused(node)).toEqual({ status: 507, error: "QUOTA_EXCEEDED" });
  expect(await complete(node, "s", leased)).toBe(200);
  await expect(client.submit({ kind: "large" }, { idempotencyKey: null })).rejects.toThrow(TenureError);
  await waitFor("the alert", () => node.cluster.view().alerts.some(({ name }) => name === "history_quota_used"));
});

test("history.keep_days: older events are let go at a start, verify begins behind them, and asking for them is 410 LOG_COMPACTED", async () => {
  const first = await serverWith({ history: { keep_days: KEEP_MS / 86_400_000 } });
  const ids = await Promise.all(Array.from({ length: JOBS }, () => first.client.submit({ kind: "nobody-runs-it" })));
  const beganMs = Date.now();
  expect((await get(first.node, "/api/events/since/0?limit=1")).status).toBe(200);
  expect((await post(first.node, "/v1/admin/snapshot", {})).status).toBe(200);
  await waitFor("that to be old", () => Date.now() > beganMs + KEEP_MS);
  // Age is counted from the newest event.
  await first.client.submit({ kind: "nobody-runs-it" });
  const { node, client } = await first.restarted();
  await waitFor("old events to be gone", async () => (await get(node, "/api/events/since/0?limit=1")).status === 410);
  for (const path of ["/api/events/since/0", `/api/events/since/${LET_GO - 1}`, "/v1/events?since=0"])
    expect(await get(node, path)).toMatchObject({ status: 410, body: { error: "LOG_COMPACTED" } });
  const verdict = (await get(node, "/api/events/verify")).body as { valid: boolean; firstSequence: number };
  expect(verdict.valid).toBe(true);
  expect(verdict.firstSequence).toBe(LET_GO + 1);
  expect((await get(node, `/api/events/since/${LET_GO}?limit=1`)).status).toBe(200);
  // Jobs whose events are gone are jobs all the same.
  for (const id of [ids[0]!, ids.at(-1)!]) expect(await client.job(id)).toMatchObject({ id, state: "pending" });
  await client.cancel(ids[0]!);
  expect(await client.job(ids[0]!)).toMatchObject({ state: "cancelled" });
});

test("history.keep_days lets nothing go of a copy that is restored with --paused, however much later it is written to, until it is resumed", async () => {
  const history = { keep_days: KEEP_MS / 86_400_000 };
  const original = await serverWith({});
  await Promise.all(Array.from({ length: JOBS }, () => original.client.submit({ kind: "nobody-runs-it" })));
  const beganMs = Date.now();
  expect((await post(original.node, "/v1/admin/snapshot", {})).status).toBe(200);
  await waitFor("that to be old", () => Date.now() > beganMs + KEEP_MS);
  const copy = await pausedCopy(original, { ...(await fileOf("")), history });
  await copy.client.submit({ kind: "nobody-runs-it" });
  const again = await copy.restarted();
  expect((await get(again.node, "/api/events/since/0?limit=1")).status).toBe(200);
  expect((await get(again.node, "/api/events/verify")).body).toMatchObject({ valid: true, firstSequence: 1 });
  await waitFor("a leader that resumes", async () => (await post(again.node, "/v1/admin/resume", {})).status === 200);
  expect((await post(again.node, "/v1/admin/snapshot", {})).status).toBe(200);
  const { node } = await again.restarted();
  await waitFor("old events to be gone", async () => (await get(node, "/api/events/since/0?limit=1")).status === 410);
});
