// The backend on three real servers: the cluster's leader is killed and frozen while others lead through it; the commands.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { servers } from "../../src/entry/servers.ts";
import { start, tenure } from "../cli/test-tenure.ts";
import { CLIENT_KEY, OPERATOR_KEY, startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";
import { electorAt, freshScope, never, quickServers, seatAt } from "./test-electors.ts";

/** Three processes from source, on a machine with other tests on it. */
const START_MS_MAX = 60_000;
/** A lease that outlives an election of three processes on a busy machine: nobody's gate may close meanwhile. */
const PATIENT_MS = 8_000;

let cluster: TenureCluster;

beforeAll(async () => {
  cluster = await startTenureCluster();
}, START_MS_MAX);

afterAll(() => cluster?.end());

function url(key = OPERATOR_KEY): string {
  return `${cluster.urls.join(",")}?tenure_api_key=${key}&tenure_server_timeout_ms=2000`;
}

test("a holder keeps its epoch and an open gate over kill -9 of each leader of the cluster in turn", async () => {
  const backend = quickServers(cluster.urls, { key: CLIENT_KEY, ttlMs: PATIENT_MS });
  const { elector, transitions } = electorAt(backend, freshScope(), "a");
  const term = await elector.acquire();
  for (let round = 0; round < 3; round++) {
    const id = await cluster.leader();
    await cluster.kill(id);
    const beats = elector.stats().heartbeatUpdateMs.count;
    await waitFor("two beats at another leader", () => elector.stats().heartbeatUpdateMs.count >= beats + 2);
    expect(elector.gate.requireLeader()).toBe(term.epoch);
    cluster.start(id);
    await cluster.steady();
  }
  expect(transitions.map(({ kind }) => kind)).toEqual(["campaigning", "leading"]);
  await term.resign();
});

test("a leader of the cluster that is frozen for longer than the lease ends nobody's term, and grants nothing when it thaws", async () => {
  const scope = freshScope();
  const backend = quickServers(cluster.urls, { key: CLIENT_KEY, ttlMs: PATIENT_MS });
  const { elector, transitions } = electorAt(backend, scope, "a");
  const term = await elector.acquire();
  const waiting = electorAt(backend, scope, "b");
  const campaign = waiting.elector.acquire();
  const id = await cluster.leader();
  cluster.freeze(id);
  const frozenMs = performance.now();
  await waitFor("another leader", async () => (await cluster.leader()) !== id);
  const beats = elector.stats().heartbeatUpdateMs.count;
  await waitFor("beats at it for longer than the lease", () => {
    const isLong = performance.now() - frozenMs > PATIENT_MS + 500;
    return isLong && elector.stats().heartbeatUpdateMs.count >= beats + 3;
  });
  cluster.thaw(id);
  await cluster.steady();
  await sleep(500);
  expect(elector.gate.requireLeader()).toBe(term.epoch);
  expect(waiting.elector.gate.isLeader).toBe(false);
  expect(transitions.map(({ kind }) => kind)).toEqual(["campaigning", "leading"]);
  await term.resign();
  const next = await campaign;
  expect(next.epoch).toBeGreaterThan(term.epoch);
  await next.resign();
});

test("a wrong key is refused, and a client may not play the operator", async () => {
  const { seat } = seatAt(quickServers(cluster.urls, { key: "wrong-key" }), freshScope());
  await expect(seat.acquire(never)).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  const admin = servers(cluster.urls, { key: CLIENT_KEY }).admin();
  onTestFinished(() => admin.close());
  await expect(admin.askResign(freshScope(), false)).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
});

test("an acquire that is abandoned while it waits leaves nothing behind", async () => {
  const scope = freshScope();
  const backend = quickServers(cluster.urls, { key: CLIENT_KEY, ttlMs: 600_000, heartbeatMs: 1_000 });
  const first = seatAt(backend, scope, "first");
  const { epoch } = await first.seat.acquire(never);
  const second = seatAt(backend, scope, "second");
  const campaign = second.seat.acquire(never).catch(() => undefined);
  await sleep(100);
  await first.seat.release(epoch);
  second.seat.abandon();
  await campaign;
  const third = seatAt(backend, scope, "third");
  // Within the limit of the test, and not after the ten minutes of a stranded lease.
  expect((await third.seat.acquire(never)).epoch).toBeGreaterThan(epoch);
});

test("tenure scope list, show, history, resign and watch work on the cluster", async () => {
  const scope = freshScope();
  const { elector } = electorAt(quickServers(cluster.urls, { key: CLIENT_KEY }), scope, "holder");
  const watch = start(["scope", "watch", scope, "--backend", url(), "-o", "json"]);
  onTestFinished(() => void watch.child.kill("SIGKILL"));
  const led = elector.lead(
    (term) => new Promise<void>((resolve) => term.signal.addEventListener("abort", () => resolve())),
    {
      onLost: "throw",
    },
  );
  led.catch(() => undefined);
  await waitFor("the holder", () => elector.gate.isLeader);
  const list = await tenure("scope", "list", "--backend", url(), "-o", "json");
  const { scopes } = JSON.parse(list.stdout) as { scopes: { scope: string; state: string; identity: string }[] };
  expect(scopes).toContainEqual(expect.objectContaining({ scope, state: "held", identity: "holder" }));
  const show = await tenure("scope", "show", scope, "--backend", url(CLIENT_KEY));
  expect(show).toMatchObject({ code: 0, stdout: expect.stringMatching(/state\s+held/) });
  const denied = await tenure("scope", "resign", scope, "--backend", url(CLIENT_KEY));
  expect(denied).toMatchObject({ code: 77, stderr: expect.stringContaining("operator") });
  const resign = await tenure("scope", "resign", scope, "--backend", url(), "-o", "json");
  expect(JSON.parse(resign.stdout)).toMatchObject({ outcome: "stepped-down", identity: "holder" });
  const history = await tenure("scope", "history", scope, "--backend", url(), "-o", "json");
  const { transitions } = JSON.parse(history.stdout) as { transitions: { reason: string }[] };
  expect(transitions.map(({ reason }) => reason).slice(-2)).toEqual(["resigned", "acquired"]);
  await waitFor("the watch to have seen it all", () => /"held"[^]*"free"/.test(watch.said.stdout));
  const unknown = await tenure("scope", "show", "never-led", "--backend", url());
  expect(unknown.code).toBe(66);
  watch.child.kill("SIGINT");
  expect((await watch.ended).code).toBe(130);
});

test("tenure doctor finds a healthy cluster healthy, and names a wrong key", async () => {
  const healthy = await tenure("doctor", "--backend", url(CLIENT_KEY), "-o", "json");
  const report = JSON.parse(healthy.stdout) as { backend: string; checks: { name: string; level: string }[] };
  expect(report.backend).toBe("servers");
  const names = ["connection", "cluster", "version", "access", "cluster leader", "voters", "alerts", "latency"];
  expect(report.checks.map(({ name }) => name)).toEqual(names);
  expect(report.checks.filter(({ level, name }) => level === "problem" && name !== "alerts")).toEqual([]);
  const wrong = await tenure("doctor", "--backend", url("wrong-key"));
  expect(wrong).toMatchObject({ code: 1, stdout: expect.stringContaining("TENURE_API_KEY") });
  expect(wrong.stdout).not.toContain("wrong-key");
});

test("the example's counter misses nothing and counts nothing twice when its leader is killed", async () => {
  const directory = mkdtempSync(join(tmpdir(), "tenure-example-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const env = {
    ...process.env,
    TENURE_SERVERS: cluster.urls.join(","),
    TENURE_KEY: CLIENT_KEY,
    FILE: join(directory, "db"),
  };
  const [first, second] = [new Example(env), new Example(env)];
  onTestFinished(() => [first, second].forEach((one) => void one.child.kill("SIGKILL")));
  const leads = (one: Example): boolean => one.lines.length > 20;
  await waitFor("one of them to count", () => leads(first) || leads(second));
  const [killed, other] = leads(first) ? [first, second] : [second, first];
  killed.child.kill("SIGKILL");
  await killed.ended;
  await waitFor("the other to count", () => leads(other));
  other.child.kill("SIGTERM");
  expect(await other.ended).toBe(0);
  const [before, after] = [killed.lines, other.lines];
  const values = [...before, ...after].map(({ value }) => value);
  // The kill may have come between a write and its line.
  expect([before.length + 1, before.length + 2]).toContain(after[0]?.value);
  expect(values).toEqual(values.toSorted((a, b) => a - b));
  expect(new Set(values).size).toBe(values.length);
  expect(after[0]?.epoch).toBeGreaterThan(before[0]?.epoch ?? 0);
});

class Example {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  #out = "";

  constructor(env: NodeJS.ProcessEnv) {
    const args = ["--no-warnings", "--conditions=tenure-source", "examples/servers-fence.ts"];
    this.child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "inherit"] });
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => (this.#out += text));
    this.ended = new Promise((resolve) => this.child.once("close", (code) => resolve(code)));
  }

  get lines(): { readonly epoch: number; readonly value: number }[] {
    const whole = this.#out.slice(0, this.#out.lastIndexOf("\n") + 1);
    return whole
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as { epoch: number; value: number });
  }
}

test("tenure run runs a command while it leads, and exits with its code", async () => {
  const flags = ["--scope", freshScope(), "--backend", url(CLIENT_KEY)];
  const run = await tenure(
    "run",
    ...flags,
    "--",
    process.execPath,
    "-e",
    "console.log(process.env.TENURE_EPOCH); process.exit(3)",
  );
  expect(run.code, run.stderr).toBe(3);
  expect(Number(run.stdout)).toBeGreaterThan(0);
});
