// Leaders that are processes of their own, killed and stopped, and who leads after them.

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Elector, EtcdTerm } from "./test-elector.ts";
import { electorAt } from "./test-elector.ts";
import { type EtcdServer, startEtcd, waitFor } from "../servers/index.ts";
import { freshScope, noEtcd, QUICK } from "./test-seat.ts";

const TTL_MS = 2_000;
/** etcd looks for leases that are over every half second; the rest is for a busy machine. Measured: 200 to 400 ms. */
const LATE_MS_MAX = 3_000;

interface Said {
  readonly kind: string;
  readonly epoch?: number;
  readonly reason?: string;
  readonly isLeader?: boolean;
}

describe.skipIf(noEtcd)("a leader in etcd that is a process", () => {
  let server: EtcdServer;
  beforeAll(async () => {
    server = await startEtcd(QUICK);
  });
  afterAll(() => server.end());

  async function leadingChild(scope: string): Promise<{ child: ChildProcess; said: Said[]; epoch: number }> {
    const script = new URL("./test-leader.ts", import.meta.url).pathname;
    const args = [script, server.endpoint, scope, String(TTL_MS / 1_000)];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    onTestFinished(() => {
      child.kill("SIGKILL");
    });
    const said: Said[] = [];
    createInterface({ input: child.stdout }).on("line", (line) => said.push(JSON.parse(line) as Said));
    await waitFor("the child to lead", () => said.some(({ kind }) => kind === "leading"));
    return { child, said, epoch: said.find(({ kind }) => kind === "leading")?.epoch ?? 0 };
  }

  async function waitingHere(scope: string): Promise<{ elector: Elector<EtcdTerm>; leads: Promise<number> }> {
    const elector = electorAt(server.endpoint, scope, TTL_MS / 1_000);
    const leads = elector.acquire().then(() => performance.now());
    // It waits for real once it knows whom it waits for.
    await waitFor("the waiter to see the leader", async () => (await elector.leader()) !== null);
    return { elector, leads };
  }

  test("killed with SIGKILL: the next one leads soon after the TTL", async () => {
    const scope = freshScope();
    const { child, epoch } = await leadingChild(scope);
    const { elector, leads } = await waitingHere(scope);
    const killedMs = performance.now();
    child.kill("SIGKILL");
    const tookMs = (await leads) - killedMs;
    console.log(`kill -9 to the next leader, TTL ${TTL_MS} ms: ${Math.round(tookMs)} ms`);
    expect(elector.gate.requireLeader()).toBeGreaterThan(epoch);
    // etcd keeps the lease of a dead process: not much sooner than the TTL after its last beat.
    expect(tookMs).toBeGreaterThan(TTL_MS / 2);
    expect(tookMs).toBeLessThan(TTL_MS + LATE_MS_MAX);
  });

  test("trap 34: stopped for longer than the TTL, its gate is closed when it goes on", async () => {
    const scope = freshScope();
    const { child, said, epoch } = await leadingChild(scope);
    const { elector, leads } = await waitingHere(scope);
    const stoppedMs = performance.now();
    child.kill("SIGSTOP");
    const tookMs = (await leads) - stoppedMs;
    console.log(`SIGSTOP to the next leader, TTL ${TTL_MS} ms: ${Math.round(tookMs)} ms`);
    expect(tookMs).toBeLessThan(TTL_MS + LATE_MS_MAX);
    expect(elector.gate.requireLeader()).toBeGreaterThan(epoch);
    child.kill("SIGCONT");
    await waitFor("the old leader's end", () => said.some(({ kind }) => kind === "ended"));
    expect(said.filter(({ kind }) => kind === "thawed")).toMatchObject([{ isLeader: false }]);
    expect(said.filter(({ kind }) => kind === "ended")).toMatchObject([{ epoch }]);
    expect(elector.gate.isLeader).toBe(true);
  });
});
