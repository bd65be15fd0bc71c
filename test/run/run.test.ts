// `tenure run` on a real Postgres: how it ends, what it says, what it passes on.

import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PostgresServer, startPostgres, startProxy, waitFor } from "../servers/index.ts";
import { exits, livingIn, scratch, ticker } from "./test-commands.ts";
import { Instance, Tenure, terminateHolder } from "./test-run.ts";

const SLACK_MS = 1_000;

let server: PostgresServer;
let scopes = 0;

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off" } });
});
afterAll(() => server.end());

function contest(...more: string[]): string[] {
  return ["--scope", `run-${++scopes}`, "--backend", server.url(), "--grace", "500ms", ...more];
}

function run(...command: string[]): Tenure {
  return new Tenure(["run", ...contest(), "--", ...command]);
}

describe("the exit code", () => {
  it("is the command's", async () => {
    expect(await run(...exits(0)).exitCode()).toBe(0);
    expect(await run(...exits(3)).exitCode()).toBe(3);
  });

  it("is 128 + n for a command that died of signal n", async () => {
    expect(await run("sh", "-c", "kill -USR1 $$").exitCode()).toBe(128 + 10);
  });

  it("is 127 for a command that is not there, and 126 for one that may not be run", async () => {
    const missing = run("no-such-command-anywhere");
    expect(await missing.exitCode()).toBe(127);
    expect(missing.stderr).toMatch(/tenure: no-such-command-anywhere can't be started: .*ENOENT/);
    const file = join(scratch(), "not-executable");
    writeFileSync(file, "#!/bin/sh\n");
    chmodSync(file, 0o644);
    const forbidden = run(file);
    expect(await forbidden.exitCode()).toBe(126);
    expect(forbidden.stderr).toMatch(/EACCES/);
  });

  it("is 75 if leadership was not won in time, and nothing was started", async () => {
    const flags = contest();
    const leader = Instance.ticking(flags);
    await leader.ticks();
    const waiter = Instance.ticking([...flags, "--wait", "2s", "--identity", "the-waiter"]);
    expect(await waiter.tenure.exitCode()).toBe(75);
    expect(waiter.notes).toEqual([]);
    expect(waiter.tenure.stderr).toMatch(/waiting: run-.* leads "run-\d+" in epoch 1/);
    expect(waiter.tenure.stderr).toMatch(/was not won within 2000 ms \(--wait\)/);
  });

  it("lets the next one lead at once", async () => {
    const flags = contest();
    const first = new Tenure(["run", ...flags, "--", ...exits(0)]);
    expect(await first.exitCode()).toBe(0);
    const second = new Tenure(["run", ...flags, "--wait", "10s", "--", ...exits(5)]);
    expect(await second.exitCode()).toBe(5);
    expect(second.stderr).toMatch(/leading: "run-\d+" in epoch 2/);
  });
});

describe("the command", () => {
  it("has the environment of `tenure run`, and scope and epoch", async () => {
    const flags = contest();
    const [, scope = ""] = flags;
    const print = "process.stdout.write(JSON.stringify(process.env))";
    const environment = { NODE_OPTIONS: "--no-deprecation", MINE: "yes" };
    const tenure = new Tenure(["run", ...flags, "--", process.execPath, "-e", print], environment);
    expect(await tenure.exitCode()).toBe(0);
    const seen = JSON.parse(tenure.stdout) as Record<string, string>;
    expect(seen).toMatchObject({ ...environment, TENURE_SCOPE: scope, TENURE_EPOCH: "1" });
    expect(Object.keys(seen).filter((name) => name.startsWith("TENURE_"))).toEqual(["TENURE_SCOPE", "TENURE_EPOCH"]);
  });

  it("gets the signals that `tenure run` gets", async () => {
    const passed = ["SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGQUIT"] as const;
    const leader = Instance.ticking(contest(), ...passed);
    await leader.ticks();
    for (const signal of passed) leader.tenure.kill(signal);
    await waitFor("all of them", () => passed.every((signal) => leader.named(signal).length === 1));
    expect(leader.tenure.isRunning).toBe(true);
    leader.tenure.kill("SIGINT");
    expect(await leader.tenure.exitCode()).toBe(128 + 2);
    expect(leader.named("SIGINT")).toHaveLength(1);
    expect(leader.named("SIGTERM")).toEqual([]);
  });

  it("trap 48: with --forever is started again when it ends, and not once it was told to stop", async () => {
    const flags = contest("--forever");
    const script = (file: string): readonly [string, ...string[]] => [
      "sh",
      "-c",
      `echo start $(date +%s%3N) $$ $TENURE_EPOCH >> ${file}; exit 4`,
    ];
    const leader = new Instance(flags, script);
    await leader.tenure.said(/the command ended with 4; it starts again in 1600 ms/);
    const times = leader.starts.map((note) => note.atMs);
    expect(times).toHaveLength(5);
    const pauses = times.slice(1).map((atMs, at) => atMs - times[at]!);
    for (const [at, delayMs] of [100, 200, 400, 800].entries()) expect(pauses[at]).toBeGreaterThanOrEqual(delayMs);
    expect(new Set(leader.starts.map((note) => note.epoch))).toEqual(new Set(["1"]));
    // Trap 48: it waits for the next start, and that must not come.
    leader.tenure.kill("SIGTERM");
    expect(await leader.tenure.exitCode()).toBe(128 + 15);
    expect(leader.starts).toHaveLength(5);
  });

  it("with --forever ends with the code that its stop gave", async () => {
    const leader = Instance.ticking(contest("--forever"));
    await leader.ticks();
    leader.tenure.kill("SIGTERM");
    expect(await leader.tenure.exitCode()).toBe(128 + 15);
    expect(leader.starts).toHaveLength(1);
  });
});

describe("a network that goes silent", () => {
  it("trap 49: ends the command before the server gives the scope away; the other one's comes after", async () => {
    const proxy = await startProxy({ host: "127.0.0.1", port: server.port });
    const flags = contest();
    const cutOff = server.url().replace(String(server.port), String(proxy.port));
    const short = (url: string): string => `${url}?tenure_server_timeout_ms=3000`;
    const flagsOf = (url: string): string[] => flags.map((one) => (one === server.url() ? short(url) : one));
    const leader = Instance.ticking(flagsOf(cutOff), "SIGTERM");
    try {
      await leader.ticks();
      const waiter = Instance.ticking(flagsOf(server.url()));
      await waiter.tenure.said(/waiting:/);
      const cutMs = Date.now();
      proxy.cut();
      await waiter.ticks();
      expect(leader.lastMs).toBeLessThan(waiter.starts[0]!.atMs);
      expect(leader.lastMs - cutMs).toBeLessThan(2_250 + SLACK_MS);
      expect(livingIn(leader.group)).toEqual([]);
      expect(leader.tenure.stderr).toMatch(/lost: epoch 1: it was not proven again in time; the command gets SIGTERM/);
    } finally {
      leader.tenure.kill("SIGKILL");
      await proxy.end();
    }
  });

  it("and comes back before the server has given up: the command starts again in the same epoch", async () => {
    const proxy = await startProxy({ host: "127.0.0.1", port: server.port });
    const knobs = "tenure_server_timeout_ms=6000&tenure_margin_ms=5000&tenure_heartbeat_interval_ms=200";
    const backend = `postgres://postgres@127.0.0.1:${proxy.port}/postgres?${knobs}`;
    const leader = Instance.ticking(
      ["--scope", `run-${++scopes}`, "--backend", backend, "--grace", "300ms"],
      "SIGTERM",
    );
    try {
      await leader.ticks();
      proxy.cut();
      await leader.tenure.said(/it was not proven again in time/);
      await waitFor("the command to be dead", () => livingIn(leader.group).length === 0);
      await proxy.heal("resume");
      await leader.ticks(2);
      expect(leader.starts.map((note) => note.epoch)).toEqual(["1", "1"]);
    } finally {
      leader.tenure.kill("SIGKILL");
      await proxy.end();
    }
  });
});

describe("what it says", () => {
  it("nothing with --quiet, and its errors nevertheless", async () => {
    const silent = new Tenure(["run", ...contest("--quiet"), "--", ...exits(0)]);
    expect(await silent.exitCode()).toBe(0);
    expect(silent.stderr).toBe("");
    const failed = new Tenure(["run", ...contest("--quiet"), "--", "no-such-command"]);
    expect(await failed.exitCode()).toBe(127);
    expect(failed.stderr).toMatch(/^tenure: .*no-such-command/);
  });

  it("as one JSON object a line with --log json", async () => {
    const tenure = new Tenure(["run", ...contest("--log", "json"), "--", "no-such-command"]);
    expect(await tenure.exitCode()).toBe(127);
    const lines = tenure.stderr
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.map((line) => line["event"])).toEqual(["leading", "error"]);
    expect(lines[0]).toMatchObject({ scope: `run-${scopes}`, epoch: 1 });
    expect(lines[1]).toMatchObject({ code: "ENOENT" });
  });

  it("to nobody, if whoever read it is gone: the command is not ended for that", async () => {
    const flags = contest();
    const leader = Instance.ticking(flags);
    await leader.ticks();
    leader.tenure.process.stderr?.destroy();
    await terminateHolder(server, flags[1] ?? "");
    await leader.ticks(2);
    expect(leader.starts.map((note) => note.epoch)).toEqual(["1", "2"]);
  });

  it("that the backend is out of reach, and goes on trying until --wait", async () => {
    const args = ["run", "--scope", "x", "--backend", "postgres://127.0.0.1:1/none", "--wait", "2s", "--", ...exits(0)];
    const tenure = new Tenure(args);
    expect(await tenure.exitCode()).toBe(75);
    expect(tenure.stderr).toMatch(/can't reach Postgres at 127\.0\.0\.1:1\/none: connection refused/);
    expect(tenure.stderr).toMatch(/was not won within/);
  });

  it("what to do about what a retry does not mend, with the registry's exit code", async () => {
    const backend = server.url("postgres", "stranger", "wrong");
    const tenure = new Tenure(["run", "--scope", "x", "--backend", backend, "--", ...exits(0)]);
    expect(await tenure.exitCode()).toBe(77);
    // Once, not as a warning and then again as the error that it is.
    expect(tenure.stderr).toMatch(/^tenure: Postgres at .* Check the user and the password[^\n]*\n$/);
    expect(tenure.stderr).not.toContain("wrong@");
  });
});

it("TENURE_LEADER_ENABLED=false: never leads, tells who does, and ends with a signal", async () => {
  const flags = contest();
  const file = join(scratch(), "ticks");
  const follower = new Tenure(["run", ...flags, "--", ...ticker(file)], { TENURE_LEADER_ENABLED: "false" });
  await follower.said(/TENURE_LEADER_ENABLED=false: this instance never leads/);
  const leader = Instance.ticking(flags);
  await leader.ticks();
  await follower.said(/leads "run-\d+" in epoch 1/);
  leader.tenure.kill("SIGTERM");
  expect(await leader.tenure.exitCode()).toBe(128 + 15);
  follower.kill("SIGTERM");
  expect(await follower.exitCode()).toBe(128 + 15);
  expect(follower.stderr).not.toMatch(/leading:/);
});

it("the backend may come from the environment", async () => {
  const flags = contest();
  const backend = flags[3] ?? "";
  const tenure = new Tenure(["run", "--scope", flags[1] ?? "", "--", ...exits(6)], { TENURE_BACKEND: backend });
  expect(await tenure.exitCode()).toBe(6);
});
