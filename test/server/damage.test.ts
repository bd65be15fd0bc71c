// Damage without a second copy (trap 83), on one real server: its disk is the only one. Each file of the data directory has one
// flipped bit in turn. A start ends in one of two ways, within a limit: with an exit code and a sentence, or serving, and
// then lists come to the present and what is lost is said. It never hangs, and it never shows what is not so.

import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Client, createClient } from "../../src/entry/client.ts";
import { tenure } from "../cli/test-tenure.ts";
import {
  OPERATOR_KEY as key,
  startTenureCluster,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";
import { complete, HISTORY_ELECTION, Load, SMALL_SEGMENTS, verified, viewed } from "./test-history.ts";

const LIMIT_MS = 60_000;
const VIEWS = /^views\.sqlite/;

let cluster: TenureCluster;
let node: TenureNode;
/** The directory as the server left it. */
let saved: string;
let jobs: string[];

beforeAll(async () => {
  // For the commands that work on the directory.
  vi.stubEnv("NODE_OPTIONS", SMALL_SEGMENTS.join(" "));
  cluster = await startTenureCluster({
    nodes: 1,
    election: HISTORY_ELECTION,
    snapshots: { after_entries: 60, keep_entries: 20 },
    prepare: (made) => (made.nodeFlags = SMALL_SEGMENTS),
  });
  [node] = cluster.nodes as [TenureNode];
  const load = new Load([node.url]);
  await load.more(70);
  await load.stop();
  jobs = load.ids;
  await viewed(node);
  await node.term();
  saved = join(cluster.directory, "saved");
  cpSync(node.dataDir, saved, { recursive: true });
}, 240_000);

afterAll(async () => {
  vi.unstubAllEnvs();
  await cluster?.end();
});

function reset(without: RegExp = /^$/): void {
  rmSync(node.dataDir, { recursive: true, force: true });
  cpSync(saved, node.dataDir, { recursive: true });
  for (const name of readdirSync(node.dataDir)) if (without.test(name)) rmSync(join(node.dataDir, name));
}

function segments(): string[] {
  return readdirSync(saved)
    .filter((name) => /^events-[0-9]{16}$/.test(name))
    .toSorted();
}

function flip(name: string, share: number): void {
  const path = join(node.dataDir, name);
  const bytes = readFileSync(path);
  const at = Math.min(bytes.length - 1, Math.floor(bytes.length * share));
  bytes[at]! ^= 4;
  writeFileSync(path, bytes);
}

function newestLog(): string {
  return readdirSync(node.dataDir)
    .filter((name) => name.startsWith("wal-"))
    .toSorted()
    .at(-1)!;
}

/** In the last byte that was written: zeros after it are reserved. */
function flipEnd(name: string): void {
  const path = join(node.dataDir, name);
  const bytes = readFileSync(path);
  bytes[bytes.findLastIndex((byte) => byte !== 0)]! ^= 4;
  writeFileSync(path, bytes);
}

async function alerts(): Promise<string[]> {
  return (await node.view())?.alerts.map(({ name }) => name) ?? [];
}

async function leads(): Promise<void> {
  await waitFor("it to lead alone", async () => (await node.view())?.role === "LEADER", LIMIT_MS);
}

describe("one server, and no other copy", () => {
  test("a damaged part of the history, and lists that are built anew: they come to the present, and what is lost is said", async () => {
    const name = segments()[1]!;
    const first = Number(name.slice("events-".length));
    const last = Number(segments()[2]!.slice("events-".length)) - 1;
    reset(VIEWS);
    flip(name, 0.5);
    node.start();
    await leads();
    await viewed(node);
    await waitFor("the loss to be said", async () => (await alerts()).includes("history_lost"), LIMIT_MS);
    const client = createClient({ urls: [node.url], key });
    // Lists, and ids that nobody knows, are answered: nothing is too stale.
    const listed = await listedBy(client);
    expect(listed.length).toBeGreaterThan(20);
    await expect(client.job("01980000-0000-7000-8000-000000000000")).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect(listed.every(({ state }) => state === "completed")).toBe(true);
    // New jobs run and are shown.
    const id = await client.submit({ kind: "nobody-runs-it" });
    await waitFor("it to be listed", async () => (await listedBy(client)).some((job) => job.id === id));

    const lost = `events ${first} to ${last} are lost: no member of the cluster has them`;
    expect(await verified(node)).toMatchObject({ valid: false, firstBrokenSequence: first, reason: lost });
    const since = await node.call(`/api/events/since/${first - 1}`, { key });
    expect(since).toMatchObject({ status: 410, body: { error: "EVENTS_LOST" } });
    expect(String(since.body["message"])).toContain(`Go on with event ${last + 1}`);
    expect(await node.call(`/api/events/since/${last}`, { key })).toMatchObject({ status: 200 });
    const proof = await node.call(`/v1/events/proof?sequence=${last + 1}`, { key });
    expect(proof).toMatchObject({ status: 410, body: { error: "EVENTS_LOST" } });
    const stream = client.events({ after: 0, signal: AbortSignal.timeout(LIMIT_MS) });
    await expect(drained(stream)).rejects.toMatchObject({ code: "EVENTS_LOST" });
    const { body } = await node.call<{ text: string }>("/metrics", { key });
    expect(body.text).toMatch(/^tenure_archive_segments_lost 1$/m);
    expect(node.log().match(/"event":"history-lost"/g)).toHaveLength(1);

    // A copy turns up: a file of a backup, in its place.
    await node.term();
    cpSync(join(saved, name), join(node.dataDir, name));
    node.start();
    await leads();
    await complete(node);
    await viewed(node);
    expect(await alerts()).not.toContain("history_lost");
    expect(node.log()).toContain("are here again");
    for (const jobId of jobs.slice(0, 40)) expect(await client.job(jobId)).toMatchObject({ state: "completed" });
    await node.term();
  }, 240_000);

  test("a killed server whose last log batch has rotted refuses with the events that are gone, and goes on without them only by hand", async () => {
    reset();
    node.start();
    await leads();
    const client = createClient({ urls: [node.url], key });
    const kept = await client.submit({ kind: "nobody-runs-it" });
    const gone = await client.submit({ kind: "nobody-runs-it" });
    // What it has verified is durable in the history.
    expect(await verified(node)).toMatchObject({ valid: true });
    await node.kill9();
    flipEnd(newestLog());
    const before = readFileSync(join(node.dataDir, newestLog()));

    for (let start = 0; start < 2; start++) {
      node.start();
      await waitFor("it to end", () => node.pid === undefined, LIMIT_MS);
      expect([node.exitCode, refusal()]).toEqual([74, expect.stringContaining("DISK_DAMAGED")]);
    }
    const fatal = node.log().trim().split("\n").at(-1)!;
    expect(fatal).toMatch(/events [0-9]+ to [0-9]+ are in the history of events, and not in the log any more/);
    expect(readFileSync(join(node.dataDir, newestLog()))).toEqual(before);
    const recovery = ["server", "recover", "--force-new-cluster", "--config", node.configFile];
    const { code, stderr } = await tenure(...recovery);
    expect([code, stderr]).toEqual([74, expect.stringMatching(/events [0-9]+ to [0-9]+ are in the history/)]);
    expect(readFileSync(join(node.dataDir, newestLog()))).toEqual(before);

    for (const [name] of fatal.matchAll(/events-[0-9]{16}/g)) rmSync(join(node.dataDir, name));
    for (const name of readdirSync(node.dataDir)) if (VIEWS.test(name)) rmSync(join(node.dataDir, name));
    node.start();
    await leads();
    await viewed(node);
    expect(await verified(node)).toMatchObject({ valid: true });
    expect(await client.job(kept)).toMatchObject({ state: "pending" });
    await expect(client.job(gone)).rejects.toMatchObject({ code: "NOT_FOUND" });
    for (const jobId of jobs.slice(-20)) expect(await client.job(jobId)).toMatchObject({ state: "completed" });
    const next = await client.submit({ kind: "nobody-runs-it" });
    await waitFor("it to be listed", async () => (await listedBy(client)).some((job) => job.id === next));
    await node.term();
  }, 240_000);

  test("one flipped bit in any file: a refusal with its reason, or a server that comes to the present and says what is lost", async () => {
    const all = readdirSync(saved).filter((name) => readFileSync(join(saved, name)).length > 0);
    const sealed = segments();
    // Of the many segments: the first two, the last sealed one and the open one.
    const chosen = all.filter(
      (name) => !sealed.includes(name) || [0, 1, sealed.length - 2, sealed.length - 1].includes(sealed.indexOf(name)),
    );
    const outcomes: Record<string, string> = {};
    for (const name of chosen) {
      for (const [where, share] of [
        ["head", 0.01],
        ["middle", 0.5],
        ["tail", 0.999],
      ] as const) {
        // History is read again only where the views are built anew.
        reset(sealed.includes(name) || name === "events-catalog" ? VIEWS : /^$/);
        flip(name, share);
        outcomes[`${name} ${where}`] = await outcome();
      }
    }
    const text = Object.entries(outcomes).map(([what, how]) => `${what}: ${how}`);
    console.log(text.join("\n"));
    expect(Object.values(outcomes).filter((how) => how.startsWith("WRONG"))).toEqual([]);
    // The matrix has seen both ways.
    expect(Object.values(outcomes).some((how) => how.startsWith("serves"))).toBe(true);
    expect(Object.values(outcomes).some((how) => how.includes("history_lost"))).toBe(true);
  }, 900_000);
});

/** How a start on the directory as it is ends. */
async function outcome(): Promise<string> {
  node.start();
  try {
    const until = Date.now() + LIMIT_MS;
    for (;;) {
      if (node.pid === undefined) return refusal();
      const view = await node.view();
      if (view?.role === "LEADER") break;
      if (Date.now() > until) return `WRONG: neither serves nor ends: ${node.log().slice(-500)}`;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return await serving();
  } finally {
    await node.kill9();
  }
}

function refusal(): string {
  const last = node.log().trim().split("\n").at(-1) ?? "";
  const isSaid = last.includes('"event":"fatal"') && !last.includes('"code":"bug"');
  return node.exitCode !== null && node.exitCode !== 0 && isSaid
    ? `ends with ${node.exitCode}: ${last.slice(0, 300)}`
    : `WRONG: ends with ${node.exitCode} and says ${last}`;
}

async function serving(): Promise<string> {
  const client = createClient({ urls: [node.url], key, timeoutMs: LIMIT_MS });
  try {
    await viewed(node);
  } catch {
    return `WRONG: its lists never come to the present: ${node.log().slice(-500)}`;
  }
  // Every job is shown as it is, or not at all, and then something was said to be lost or damaged.
  const states = new Map<string, number>();
  for (const id of jobs) {
    const state = await client.job(id).then(
      (job) => job.state,
      (error: { code?: string }) => error.code ?? "an error without a code",
    );
    states.set(state, (states.get(state) ?? 0) + 1);
  }
  const wrong = [...states.keys()].filter((state) => state !== "completed" && state !== "NOT_FOUND");
  if (wrong.length > 0) return `WRONG: jobs are shown as ${wrong.join()}`;
  const verdict = await verified(node);
  if (!verdict.valid) await waitFor("it to be said", async () => (await alerts()).includes("history_lost"), LIMIT_MS);
  const said = node.log().includes("damaged") || node.log().includes("torn") || node.log().includes("moved aside");
  if (!verdict.valid && !said) return "WRONG: nothing is said of the damage";
  if (states.has("NOT_FOUND") && verdict.valid)
    return `WRONG: ${states.get("NOT_FOUND")} jobs are gone, and nothing is lost`;
  const shown = [...states].map(([state, count]) => `${count} ${state}`).join(", ");
  return `serves (${shown}); ${(await alerts()).join() || "no alerts"}; verify ${verdict.valid ? "valid" : verdict.reason}`;
}

async function listedBy(client: Client): Promise<{ id: string; state: string }[]> {
  const briefs: { id: string; state: string }[] = [];
  for await (const brief of client.jobs()) briefs.push(brief);
  return briefs;
}

async function drained(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}
