// A guard that stands still while leadership is proven again and again: nothing else falls due, so only its silence
// tells. `tenure run` on a real Postgres, and one part of it alone.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { moment } from "../../src/cli/run/guard-protocol.ts";
import { GuardedCommand } from "../../src/cli/run/guarded.ts";
import { type PostgresServer, startPostgres, waitFor } from "../servers/index.ts";
import { exits, livingIn, ticker } from "./test-commands.ts";
import { childrenOf, Instance, parentOf } from "./test-run.ts";

/** How long a guard may be silent; the trust window is 4.5 s unless a test says otherwise. */
const ANSWER_MS = 5_000;
/** What a busy machine may add. */
const SLACK_MS = 3_000;
const LIMIT_MS = 30_000;

let server: PostgresServer;
let scopes = 0;

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off" } });
});
afterAll(() => server.end());

function contest(...more: string[]): string[] {
  return ["--scope", `frozen-${++scopes}`, "--backend", server.url(), "--grace", "500ms", ...more];
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It is gone.
  }
}

/** Not for ever, if the test fails. */
function freeze(pid: number): number {
  process.kill(pid, "SIGSTOP");
  onTestFinished(() => signal(pid, "SIGCONT"));
  return Date.now();
}

const isThere = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

describe("a guard that is frozen while it waits", () => {
  it("trap 49: is replaced when leadership is won, and the command starts in that epoch", async () => {
    const flags = contest();
    const leader = Instance.ticking(flags);
    await leader.ticks();
    const waiter = Instance.ticking(flags);
    await waiter.tenure.said(/waiting: /);
    const [spare = 0, ...others] = childrenOf(waiter.tenure.pid);
    expect(others).toEqual([]);
    freeze(spare);
    leader.tenure.kill("SIGKILL");
    await waiter.tenure.said(/leading: .* in epoch 2/);
    const ledMs = Date.now();
    await waiter.ticks();
    expect(waiter.starts.map((note) => note.epoch)).toEqual(["2"]);
    expect(waiter.starts[0]!.atMs - ledMs).toBeLessThan(ANSWER_MS + SLACK_MS);
    expect(waiter.tenure.stderr).toMatch(
      /the guard process died or froze before it started the command; another one is tried/,
    );
    await waitFor("the frozen one to be gone", () => !isThere(spare));
  });

  it("is not left behind by a `tenure run` that ends", async () => {
    const flags = contest();
    const leader = Instance.ticking(flags);
    await leader.ticks();
    const waiter = Instance.ticking(flags);
    await waiter.tenure.said(/waiting: /);
    const [spare = 0] = childrenOf(waiter.tenure.pid);
    freeze(spare);
    waiter.tenure.kill("SIGTERM");
    expect(await waiter.tenure.exitCode()).toBe(128 + 15);
    await waitFor("the frozen one to be gone", () => !isThere(spare));
  });

  it("before it was ready is given up", async () => {
    const before = childrenOf(process.pid);
    const startedMs = Date.now();
    const guarded = new GuardedCommand("never-ready", LIMIT_MS);
    const [guard = 0] = childrenOf(process.pid).filter((pid) => !before.includes(pid));
    freeze(guard);
    expect(await guarded.ready).toBe(false);
    expect(Date.now() - startedMs).toBeGreaterThanOrEqual(ANSWER_MS);
    expect(Date.now() - startedMs).toBeLessThan(ANSWER_MS + SLACK_MS);
    expect(guarded.isOver).toBe(true);
  });
});

describe("a guard that is frozen while its command runs", () => {
  it("trap 49: is found by its silence; the command is killed, and the scope let go", async () => {
    const flags = contest();
    const leader = Instance.ticking(flags, "SIGTERM");
    await leader.ticks();
    const waiter = Instance.ticking(flags);
    await waiter.tenure.said(/waiting: /);
    const frozenMs = freeze(parentOf(leader.group));
    expect(await leader.tenure.exitCode()).toBe(70);
    expect(leader.lastMs - frozenMs).toBeLessThan(ANSWER_MS + SLACK_MS);
    expect(livingIn(leader.group)).toEqual([]);
    expect(leader.tenure.stderr).toMatch(/the guard process died or froze, so the command was killed/);
    await waiter.ticks();
    expect(leader.lastMs).toBeLessThan(waiter.starts[0]!.atMs);
  });

  it("trap 49: and ends by itself meanwhile, is found too: nobody leads without a command", async () => {
    const leader = Instance.ticking(contest());
    await leader.ticks();
    freeze(parentOf(leader.group));
    process.kill(leader.group, "SIGKILL");
    expect(await leader.tenure.exitCode()).toBe(70);
  });

  it("together with `tenure run`, but not for as long as trust lasts, is not taken for frozen afterwards", async () => {
    const leader = new Instance(contest(), ticker, { TENURE_SERVER_TIMEOUT_MS: "20000" });
    await leader.ticks();
    const guard = parentOf(leader.group);
    // The guard first, so that a heartbeat's deadline is unanswered when `tenure run` stops too.
    const frozenMs = freeze(guard);
    await waitFor("a heartbeat", () => Date.now() > frozenMs + 1_500);
    freeze(leader.tenure.pid);
    await waitFor("more than an answer may take", () => Date.now() > frozenMs + ANSWER_MS + 1_500);
    leader.tenure.kill("SIGCONT");
    const goesOnMs = Date.now();
    await waitFor("`tenure run` to look after its guard", () => Date.now() > goesOnMs + 500);
    signal(guard, "SIGCONT");
    await waitFor("ticks long afterwards", () => leader.lastMs > goesOnMs + 1_500);
    expect(leader.tenure.isRunning).toBe(true);
    expect(leader.starts).toHaveLength(1);
    expect(leader.named("SIGTERM")).toEqual([]);
  });
});

describe("one command and its guard", () => {
  const start = (trustMs: number) => {
    const { monotonicMs, wallMs } = moment();
    const deadline = { monotonicMs: monotonicMs + trustMs, wallMs: wallMs + trustMs };
    const [command, ...args] = exits(0);
    return { deadline, plan: { onLose: "kill", graceMs: 0 }, command, args, environment: {} } as const;
  };

  it("that died before it read the start has started nothing, and says so", async () => {
    const before = childrenOf(process.pid);
    const guarded = new GuardedCommand("unstarted", LIMIT_MS);
    expect(await guarded.ready).toBe(true);
    const [guard = 0] = childrenOf(process.pid).filter((pid) => !before.includes(pid));
    freeze(guard);
    guarded.start(start(LIMIT_MS));
    process.kill(guard, "SIGKILL");
    expect(await guarded.over).toMatchObject({ kind: "guard-died", windingUp: undefined, started: false });
  });

  it("is not waited for longer than trust lasts", async () => {
    const before = childrenOf(process.pid);
    const trustMs = 1_000;
    const guarded = new GuardedCommand("short-trust", trustMs);
    expect(await guarded.ready).toBe(true);
    const [guard = 0] = childrenOf(process.pid).filter((pid) => !before.includes(pid));
    const frozenMs = freeze(guard);
    // A healthy elector: the deadline stays far away.
    guarded.start(start(LIMIT_MS));
    expect(await guarded.over).toMatchObject({ kind: "guard-died", started: false });
    expect(Date.now() - frozenMs).toBeGreaterThanOrEqual(trustMs);
    expect(Date.now() - frozenMs).toBeLessThan(trustMs + SLACK_MS);
  });
});

it("out of file descriptors there is no guard, and no crash", () => {
  const module = fileURLToPath(new URL("../../src/cli/run/guarded.ts", import.meta.url));
  const program = `
    import { closeSync, openSync } from "node:fs";
    const { GuardedCommand } = await import(${JSON.stringify(module)});
    const open = [];
    try { for (;;) open.push(openSync("/dev/null")); } catch (error) { console.log(error.code); }
    const none = new GuardedCommand("none", 1_000);
    none.dismiss();
    console.log(await none.ready, none.isOver, (await none.over).kind);
    for (const fd of open) closeSync(fd);
    const one = new GuardedCommand("one", 1_000);
    console.log(await one.ready);
    one.dismiss();`;
  const script = 'ulimit -n 128; exec "$0" --input-type=module -e "$1"';
  const said = execFileSync("sh", ["-c", script, process.execPath, program], {
    cwd: join(fileURLToPath(new URL("../..", import.meta.url))),
    encoding: "utf8",
    timeout: LIMIT_MS,
  });
  expect(said.trim().split("\n")).toEqual(["EMFILE", "false true guard-died", "true"]);
});
