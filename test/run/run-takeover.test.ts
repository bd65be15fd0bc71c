// Two `tenure run` compete for one scope on a real Postgres; one is killed, frozen, stopped or cut off. What counts is
// what the commands themselves have written down, with their own clocks.

import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type PostgresServer, startPostgres, waitFor } from "../servers/index.ts";
import { family, livingIn, ticker } from "./test-commands.ts";
import { acquiredMs, childrenOf, Instance, parentOf, Tenure, terminateHolder } from "./test-run.ts";

/** What a busy machine may add to the moment of a kill. */
const SLACK_MS = 1_000;
/** Where a test waits for it; elsewhere the default, so that a busy machine is not taken for a frozen one. */
const SHORT_TIMEOUT_MS = 3_000;
const SHORT = { TENURE_SERVER_TIMEOUT_MS: String(SHORT_TIMEOUT_MS) };
const GRACE_MS = 500;

let server: PostgresServer;
let scopes = 0;

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off" } });
});
afterAll(() => server.end());

/** A fresh scope, and the flags of everybody who competes for it. */
function contest(...more: string[]): { scope: string; flags: string[] } {
  const scope = `takeover-${++scopes}`;
  return { scope, flags: ["--scope", scope, "--backend", server.url(), "--grace", `${GRACE_MS}ms`, ...more] };
}

/** So that a frozen guard does not stay behind if the test has failed. */
function thaw(pid: number): void {
  try {
    process.kill(pid, "SIGCONT");
  } catch {
    // It is gone, as it should be.
  }
}

async function leaderAndWaiter(
  flags: readonly string[],
  ignored: readonly NodeJS.Signals[] = [],
  environment: Readonly<Record<string, string>> = {},
): Promise<[Instance, Instance]> {
  const leader = new Instance(flags, (file) => ticker(file, ...ignored), environment);
  await leader.ticks();
  const waiter = new Instance(flags, ticker, environment);
  await waiter.tenure.said(/waiting: .* leads ".*" in epoch 1/);
  return [leader, waiter];
}

describe("the leader's `tenure run` is killed", () => {
  it("trap 48: its command dies with it, and the other's begins", async () => {
    const [leader, waiter] = await leaderAndWaiter(contest().flags, ["SIGTERM"]);
    const killedMs = Date.now();
    leader.tenure.kill("SIGKILL");
    await waiter.ticks();
    await waitFor("the group to be gone", () => livingIn(leader.group).length === 0);
    expect(leader.lastMs).toBeLessThan(killedMs + SLACK_MS);
    expect(waiter.starts[0]).toMatchObject({ epoch: "2" });
    expect(leader.starts[0]).toMatchObject({ epoch: "1" });
  });

  it("trap 48: grandchildren die with it", async () => {
    const leader = new Instance(contest().flags, family);
    await leader.ticks();
    const grandchild = leader.group;
    const child = parentOf(grandchild);
    expect(livingIn(child)).toHaveLength(2);
    const killedMs = Date.now();
    leader.tenure.kill("SIGKILL");
    await waitFor("the group to be gone", () => livingIn(child).length === 0);
    expect(leader.lastMs).toBeLessThan(killedMs + SLACK_MS);
  });
});

describe("the leader's `tenure run` is frozen", () => {
  it("trap 49: its command is dead before the next epoch begins, and does not come back with it", async () => {
    const { flags, scope } = contest();
    const [leader, waiter] = await leaderAndWaiter(flags, ["SIGTERM"], SHORT);
    const frozenMs = Date.now();
    leader.tenure.kill("SIGSTOP");
    await waiter.ticks();
    const nextMs = await acquiredMs(server, scope);
    expect(leader.lastMs).toBeLessThan(nextMs);
    expect(leader.lastMs).toBeGreaterThan(frozenMs);
    expect(livingIn(leader.group)).toEqual([]);
    // SIGTERM came first, a grace before the end.
    const [term] = leader.named("SIGTERM");
    expect(leader.lastMs - term!.atMs).toBeGreaterThan(GRACE_MS / 2);

    leader.tenure.kill("SIGCONT");
    await leader.tenure.said(/waiting: .* leads ".*" in epoch 2/);
    expect(leader.starts).toHaveLength(1);
    // And it can win again.
    waiter.tenure.kill("SIGKILL");
    await leader.ticks(2);
    expect(leader.starts[1]).toMatchObject({ epoch: "3" });
  });

  it("for a moment only, nothing happens", async () => {
    const leader = Instance.ticking(contest().flags);
    await leader.ticks();
    leader.tenure.kill("SIGSTOP");
    const until = Date.now() + 300;
    await waitFor("a short pause", () => Date.now() > until);
    leader.tenure.kill("SIGCONT");
    const later = Date.now() + 1_000;
    await waitFor("ticks after the pause", () => leader.lastMs > later);
    expect(leader.starts).toHaveLength(1);
    expect(leader.named("SIGTERM")).toEqual([]);
  });
});

describe("the leader's `tenure run` is stopped", () => {
  it("trap 48: the scope is free only when nothing of its command lives", async () => {
    const { flags, scope } = contest();
    const [leader, waiter] = await leaderAndWaiter(flags, ["SIGTERM"]);
    const stoppedMs = Date.now();
    leader.tenure.kill("SIGTERM");
    await waiter.ticks();
    const nextMs = await acquiredMs(server, scope);
    expect(leader.lastMs).toBeLessThan(nextMs);
    expect(leader.lastMs - stoppedMs).toBeGreaterThan(GRACE_MS / 2);
    expect(leader.named("SIGTERM")).toHaveLength(1);
    expect(await leader.tenure.exitCode()).toBe(128 + 9);
  });

  it("a long drain outlasts the server timeout, and the scope is held meanwhile", async () => {
    const { flags, scope } = contest("--drain", "4s");
    const [leader, waiter] = await leaderAndWaiter(flags, ["SIGTERM"], SHORT);
    const stoppedMs = Date.now();
    leader.tenure.kill("SIGTERM");
    await waiter.ticks();
    expect(leader.lastMs).toBeLessThan(await acquiredMs(server, scope));
    expect(leader.lastMs - stoppedMs).toBeGreaterThan(SHORT_TIMEOUT_MS);
  });

  it("twice: the command is killed at once", async () => {
    const leader = Instance.ticking(contest("--drain", "60s").flags, "SIGTERM");
    await leader.ticks();
    leader.tenure.kill("SIGTERM");
    await waitFor("the first signal to arrive", () => leader.named("SIGTERM").length === 1);
    leader.tenure.kill("SIGTERM");
    expect(await leader.tenure.exitCode()).toBe(128 + 9);
    expect(livingIn(leader.group)).toEqual([]);
  });

  it("trap 48: nothing is started once it was told to stop", async () => {
    const [leader, waiter] = await leaderAndWaiter(contest().flags);
    waiter.tenure.kill("SIGTERM");
    leader.tenure.kill("SIGTERM");
    expect(await waiter.tenure.exitCode()).toBe(128 + 15);
    expect(await leader.tenure.exitCode()).toBe(128 + 15);
    expect(waiter.notes).toEqual([]);
    expect(leader.starts).toHaveLength(1);
  });
});

describe("leadership is lost, and that is known at once", () => {
  it("the command gets SIGTERM, and starts again in the next term", async () => {
    const { flags, scope } = contest();
    const leader = Instance.ticking(flags);
    await leader.ticks();
    await terminateHolder(server, scope);
    await leader.ticks(2);
    expect(leader.named("SIGTERM")).toHaveLength(1);
    expect(leader.starts.map((note) => note.epoch)).toEqual(["1", "2"]);
    const [first] = leader.starts;
    const last = leader.notes.filter((note) => note.pid === first?.pid).at(-1);
    expect(last!.atMs).toBeLessThanOrEqual(leader.starts[1]!.atMs);
    expect(leader.tenure.stderr).toMatch(/lost: epoch 1: the session with the backend ended/);
  });

  it("with --on-lose kill it gets SIGKILL alone", async () => {
    const { flags, scope } = contest("--on-lose", "kill");
    const leader = Instance.ticking(flags);
    await leader.ticks();
    await terminateHolder(server, scope);
    await leader.ticks(2);
    expect(leader.named("SIGTERM")).toEqual([]);
  });

  it("with --once it exits with 76 when the command is dead", async () => {
    const { flags, scope } = contest("--once");
    const leader = Instance.ticking(flags, "SIGTERM");
    await leader.ticks();
    await terminateHolder(server, scope);
    expect(await leader.tenure.exitCode()).toBe(76);
    expect(livingIn(leader.group)).toEqual([]);
    expect(leader.starts).toHaveLength(1);
  });
});

describe("the guard itself", () => {
  it("killed -9: `tenure run` kills the command, and exits with 70", async () => {
    const leader = Instance.ticking(contest().flags, "SIGTERM");
    await leader.ticks();
    const killedMs = Date.now();
    process.kill(parentOf(leader.group), "SIGKILL");
    expect(await leader.tenure.exitCode()).toBe(70);
    expect(livingIn(leader.group)).toEqual([]);
    expect(leader.lastMs).toBeLessThan(killedMs + SLACK_MS);
    expect(leader.tenure.stderr).toMatch(/guard process died or froze/);
  });

  it("frozen: `tenure run` kills the command when that is due", async () => {
    const { flags, scope } = contest("--once");
    const leader = Instance.ticking(flags, "SIGTERM");
    await leader.ticks();
    const guard = parentOf(leader.group);
    process.kill(guard, "SIGSTOP");
    onTestFinished(() => thaw(guard));
    const lostMs = Date.now();
    await terminateHolder(server, scope);
    expect(await leader.tenure.exitCode()).toBe(76);
    expect(livingIn(leader.group)).toEqual([]);
    expect(leader.lastMs - lostMs).toBeLessThan(GRACE_MS + 2 * SLACK_MS);
  });

  it("killed -9 while it waits without a command is replaced", async () => {
    const { flags } = contest();
    const [leader, waiter] = await leaderAndWaiter(flags);
    const children = childrenOf(waiter.tenure.pid);
    expect(children).toHaveLength(1);
    process.kill(children[0]!, "SIGKILL");
    leader.tenure.kill("SIGKILL");
    await waiter.ticks();
  });
});

it("trap 48: an operator's `tenure scope resign` ends the command before another goes first", async () => {
  const { flags, scope } = contest();
  const [leader, waiter] = await leaderAndWaiter(flags, ["SIGTERM"]);
  const resign = new Tenure(["scope", "resign", scope, "--backend", server.url()]);
  expect(await resign.exitCode()).toBe(0);
  await waiter.ticks();
  expect(leader.lastMs).toBeLessThan(await acquiredMs(server, scope));
  expect(leader.named("SIGTERM")).toHaveLength(1);
  await leader.tenure.said(/waiting: .* in epoch 2/);
  expect(leader.starts).toHaveLength(1);
  expect(livingIn(leader.group)).toEqual([]);
  expect(leader.tenure.stderr).toMatch(/lost: epoch 1: an operator asked for it/);
});

it("a restart of the database ends the command, and starts it again with a higher epoch", async () => {
  const { flags } = contest();
  const leader = Instance.ticking(flags);
  await leader.ticks();
  await server.restart();
  await leader.ticks(2);
  expect(leader.named("SIGTERM")).toHaveLength(1);
  expect(leader.starts.map((note) => note.epoch)).toEqual(["1", "2"]);
});
