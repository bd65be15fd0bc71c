// A leader that keeps its cursor on three real servers, as examples/servers-values.ts does: it is killed, frozen, and its cluster loses leaders. Each step
// of the cursor is there once, and what comes late with an old epoch is refused.

import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { ServersTerm, ServersValues, ValueItem } from "../../src/entry/servers.ts";
import { createElector, type Term } from "../../src/entry/index.ts";
import { CLIENT_KEY, startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";
import { freshScope, quickServers } from "./test-electors.ts";

/** Three processes from source, on a machine with other tests on it. */
const START_MS_MAX = 60_000;
const LIMIT_MS = 120_000;
const CURSOR = "example-counter";

let cluster: TenureCluster;
beforeAll(async () => {
  cluster = await startTenureCluster();
}, START_MS_MAX);
afterAll(() => cluster?.end());

/** Every change of a value from now on, as the servers made them. */
async function watched(name: string): Promise<{ readonly changes: ValueItem[]; readonly values: ServersValues }> {
  const values = quickServers(cluster.urls, { key: CLIENT_KEY }).values();
  onTestFinished(() => values.close());
  const changes: ValueItem[] = [];
  const isCurrent = Promise.withResolvers<void>();
  void (async () => {
    for await (const item of values.watch({ prefix: name })) {
      if (item.kind === "current") isCurrent.resolve();
      else changes.push(item);
    }
  })().catch((error: unknown) => isCurrent.reject(error));
  await isCurrent.promise;
  return { changes, values };
}

/** What was counted, in order: each number once, and epochs that only grow. */
function expectWhole(changes: readonly ValueItem[]): void {
  const puts = changes.flatMap((item) => (item.kind === "put" ? [item] : []));
  const counts = puts.map(({ value }) => Number(value));
  expect(counts).toEqual(counts.map((_, at) => (counts[0] ?? 0) + at));
  const epochs = puts.map(({ epoch = 0 }) => epoch);
  expect(epochs).toEqual(epochs.toSorted((a, b) => a - b));
  expect(new Set(puts.map(({ version }) => version)).size).toBe(puts.length);
}

class Example {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  errors = "";
  #out = "";

  constructor() {
    const env = { ...process.env, TENURE_SERVERS: cluster.urls.join(","), TENURE_KEY: CLIENT_KEY };
    const args = ["--no-warnings", "--conditions=tenure-source", "examples/servers-values.ts"];
    this.child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => (this.#out += text));
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.errors += text));
    this.ended = new Promise((resolve) => this.child.once("close", (code) => resolve(code)));
    onTestFinished(() => void this.child.kill("SIGKILL"));
  }

  get lines(): { readonly epoch: number; readonly count: number }[] {
    const whole = this.#out.slice(0, this.#out.lastIndexOf("\n") + 1).split("\n");
    return whole.filter((line) => line !== "").map((line) => JSON.parse(line) as { epoch: number; count: number });
  }

  async counts(more: number): Promise<void> {
    const from = this.lines.length;
    await waitFor(
      "it to count",
      () => {
        if (this.child.exitCode !== null) throw new Error(`it has ended by itself:\n${this.errors}`);
        return this.lines.length >= from + more;
      },
      30_000,
    );
  }

  async stops(): Promise<void> {
    this.child.kill("SIGTERM");
    expect(await this.ended, this.errors).toBe(0);
  }
}

/** Past all of our code: the answer of whichever node leads. */
async function rawPut(name: string, body: object): Promise<{ readonly status: number; readonly error: unknown }> {
  for (;;) {
    for (const url of cluster.urls) {
      const headers = { "x-api-key": CLIENT_KEY, "content-type": "application/json" };
      const answer = await fetch(`${url}/v1/values/${name}`, { method: "PUT", headers, body: JSON.stringify(body) });
      const { error } = (await answer.json()) as { readonly error?: unknown };
      if (error !== "NOT_LEADER") return { status: answer.status, error };
    }
    await sleep(50);
  }
}

async function leading(): Promise<readonly [leader: Example, other: Example]> {
  const [first, second] = [new Example(), new Example()];
  await waitFor("one of them to count", () => first.lines.length > 20 || second.lines.length > 20, 30_000);
  return first.lines.length > 20 ? [first, second] : [second, first];
}

describe("the cursor of a leader", { timeout: LIMIT_MS }, () => {
  test("that is killed goes on where it stopped, and no step is lost or done twice", async () => {
    const { changes } = await watched(CURSOR);
    const [killed, other] = await leading();
    killed.child.kill("SIGKILL");
    await killed.ended;
    await other.counts(20);
    await other.stops();
    await waitFor("the watch", () => changes.length >= killed.lines.length + other.lines.length);
    expectWhole(changes);
    // What it was told is there; the last write may have been committed without its hearing of it.
    const [last = 0, next = 0] = [killed.lines.at(-1)?.count, other.lines[0]?.count];
    expect([last + 1, last + 2]).toContain(next);
    expect(other.lines[0]!.epoch).toBeGreaterThan(killed.lines[0]!.epoch);
  });

  test("that is frozen goes on at the next one; what it sends when it wakes, with its old epoch, is refused", async () => {
    const { changes, values } = await watched(CURSOR);
    const [frozen, other] = await leading();
    frozen.child.kill("SIGSTOP");
    await other.counts(20);
    const { epoch } = frozen.lines[0]!;
    const late = { value: -1, scope: "example-values", epoch };
    expect(await rawPut(CURSOR, late)).toEqual({ status: 409, error: "STALE_EPOCH" });
    frozen.child.kill("SIGCONT");
    await other.counts(20);
    expect(frozen.child.exitCode, frozen.errors).toBeNull();
    // It campaigns again by itself, and leads when the other one is gone.
    await other.stops();
    await frozen.counts(20);
    await frozen.stops();
    const final = await values.get(CURSOR);
    await waitFor("the watch", () => changes.at(-1)?.version === final?.version);
    expectWhole(changes);
    expect(new Set(frozen.lines.map((line) => line.epoch)).size).toBe(2);
  });

  test("whose cluster loses its leader again and again has each step once", async () => {
    const { changes, values } = await watched(CURSOR);
    const [leader, other] = await leading();
    for (let round = 0; round < 4; round++) {
      const id = await cluster.leader();
      if (round % 2 === 0) await cluster.kill(id);
      else cluster.freeze(id);
      const steps = leader.lines.length + other.lines.length;
      await waitFor("the cursor to go on", () => leader.lines.length + other.lines.length > steps + 20, 60_000);
      if (round % 2 === 0) cluster.start(id);
      else cluster.thaw(id);
      await cluster.steady();
    }
    await Promise.all([leader.stops(), other.stops()]);
    const final = await values.get(CURSOR);
    await waitFor("the watch", () => changes.at(-1)?.version === final?.version, 30_000);
    expectWhole(changes);
  });
});

describe("a term on real servers", { timeout: LIMIT_MS }, () => {
  async function terms(): Promise<{ readonly scope: string; readonly next: () => Promise<Term & ServersTerm> }> {
    const scope = freshScope();
    const next = async (): Promise<Term & ServersTerm> => {
      const elector = createElector({ scope, backend: quickServers(cluster.urls, { key: CLIENT_KEY }) });
      onTestFinished(() => elector.close());
      return elector.acquire();
    };
    return { scope, next };
  }

  test("writes on a version, deletes, and reads what is there", async () => {
    const { scope, next } = await terms();
    const term = await next();
    const name = `${scope}/ü €`;
    expect(await term.get(name)).toBeNull();
    const { version } = await term.put(name, { at: [1, "é"] }, { ifVersion: 0 });
    await expect(term.put(name, 2, { ifVersion: 0 })).rejects.toMatchObject({ code: "VERSION_CONFLICT", version });
    expect(await term.get(name)).toMatchObject({ value: { at: [1, "é"] }, version, scope, epoch: term.epoch });
    const again = await term.put(name, null, { ifVersion: version });
    expect(again.version).toBeGreaterThan(version);
    const gone = await term.delete(name, { ifVersion: again.version });
    expect(gone).toEqual({ deleted: true, version: expect.any(Number) });
    expect(await term.delete(name)).toEqual({ deleted: false, version: null });
    await expect(term.put(name, 1, { ifVersion: gone.version! })).rejects.toMatchObject({ version: null });
    await expect(term.put(name, "x".repeat(70_000))).rejects.toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
    await term.resign();
    await expect(term.put(name, 1)).rejects.toMatchObject({ code: "NOT_LEADER" });
  });

  test("that was taken away unseen is refused with StaleEpochError, and is over", async () => {
    const { scope, next } = await terms();
    const headers = { "x-api-key": cluster.key, "content-type": "application/json" };
    const path = `/v1/admin/scopes/${encodeURIComponent(scope)}/resign`;
    const seen = new Set<string>();
    let term = await next();
    // Whether a put is on its way in the moment of the end is chance: until one was.
    while (!seen.has("STALE_EPOCH")) {
      const late: Promise<unknown>[] = [];
      const held = term;
      const ticks = setInterval(() => void late.push(held.put(scope, late.length).catch((error: unknown) => error)), 2);
      onTestFinished(() => clearInterval(ticks));
      await sleep(50);
      for (const url of cluster.urls) {
        const asked = await fetch(url + path, { method: "POST", headers, body: JSON.stringify({ force: true }) });
        if (asked.status === 200) break;
      }
      await held.ended;
      clearInterval(ticks);
      const outcomes = await Promise.all(late);
      for (const one of outcomes) seen.add(one instanceof Error ? String("code" in one ? one.code : one) : "written");
      term = await next();
      const last = outcomes.filter((one) => !(one instanceof Error)).length - 1;
      if (last >= 0) expect(await term.get(scope)).toMatchObject({ value: last, epoch: held.epoch });
    }
    expect(["written", "NOT_LEADER", "STALE_EPOCH"]).toEqual(expect.arrayContaining([...seen]));
  });

  test("is followed by those who watch, and listed", async () => {
    const { scope, next } = await terms();
    const { changes, values } = await watched(`${scope}/`);
    const term = await next();
    for (const at of [1, 2, 3]) await term.put(`${scope}/${at}`, at);
    await term.delete(`${scope}/2`);
    await term.put("other", 1);
    await waitFor("the watch", () => changes.length === 4);
    expect(changes.map((item) => item.kind)).toEqual(["put", "put", "put", "deleted"]);
    const listed: unknown[] = [];
    for await (const { value } of values.list({ prefix: `${scope}/` })) listed.push(value);
    expect(listed).toEqual([1, 3]);
    expect(await values.get(`${scope}/2`)).toBeNull();
    await values.close();
    await expect(values.get("other")).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
  });
});
