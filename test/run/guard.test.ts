// The guard process on real processes, without an elector: the test is its supervisor.

import { readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { GuardPlan } from "../../src/core/supervise/guard.ts";
import { waitFor } from "../servers/index.ts";
import { deserter, exits, family, livingIn, named, notes, scratch, ticker } from "./test-commands.ts";
import { inMs, TestGuard } from "./test-guard.ts";

const STOP: GuardPlan = { onLose: "stop", graceMs: 300 };
const KILL: GuardPlan = { onLose: "kill", graceMs: 300 };
/** What a busy machine may add to the moment of a kill. */
const SLACK_MS = 1_000;
/** Long enough for a command to start on a busy machine. */
const DEADLINE_MS = 2_500;
const LONG_MS = 60_000;

async function guardedTicker(plan: GuardPlan, deadlineMs: number, ...ignored: NodeJS.Signals[]) {
  const file = join(scratch(), "ticks");
  const guard = new TestGuard();
  await guard.heard("ready");
  const deadline = inMs(deadlineMs);
  guard.start(ticker(file, ...ignored), deadline, plan);
  await waitFor("the first tick", () => named(file, "tick").length > 0);
  return { file, guard, deadline };
}

const lastMs = (file: string): number => notes(file).at(-1)?.atMs ?? Number.NaN;

describe("the deadline", () => {
  it("ends a command that nobody extends: SIGTERM a grace before it, SIGKILL at it", async () => {
    const { file, guard, deadline } = await guardedTicker(STOP, DEADLINE_MS, "SIGTERM");
    const done = await guard.heard("done");
    expect(done).toEqual({ kind: "done", why: "deadline", survivors: 0 });
    expect(guard.message("ended")).toEqual({ kind: "ended", code: null, signal: "SIGKILL" });
    const [term] = named(file, "SIGTERM");
    expect(term?.atMs).toBeGreaterThanOrEqual(deadline.wallMs - STOP.graceMs - 1);
    expect(term?.atMs).toBeLessThan(deadline.wallMs);
    expect(lastMs(file)).toBeGreaterThan(term!.atMs);
    expect(lastMs(file)).toBeLessThan(deadline.wallMs + SLACK_MS);
  });

  it("is moved by the supervisor, for as long as that goes on", async () => {
    const { file, guard } = await guardedTicker(KILL, DEADLINE_MS);
    const until = Date.now() + DEADLINE_MS;
    let deadline = inMs(DEADLINE_MS);
    await waitFor("the end of the extensions", () => {
      deadline = inMs(1_000);
      guard.send({ kind: "deadline", deadline });
      return Date.now() > until;
    });
    await guard.heard("done");
    expect(lastMs(file)).toBeGreaterThan(until);
    expect(lastMs(file)).toBeLessThan(deadline.wallMs + SLACK_MS);
    expect(guard.messages.filter((one) => one.kind === "started")).toHaveLength(1);
  });

  it("trap 49: holds for a guard that was stopped itself: it kills as soon as it runs again", async () => {
    const { file, guard, deadline } = await guardedTicker(STOP, DEADLINE_MS);
    guard.process.kill("SIGSTOP");
    await waitFor("the deadline to pass", () => Date.now() > deadline.wallMs + 300);
    const continuedMs = Date.now();
    guard.process.kill("SIGCONT");
    expect((await guard.heard("done")).why).toBe("deadline");
    expect(lastMs(file)).toBeLessThan(continuedMs + SLACK_MS);
  });

  it("ends a command that has stopped itself", async () => {
    const { guard, file } = await guardedTicker(STOP, DEADLINE_MS);
    process.kill(guard.group!, "SIGSTOP");
    await guard.heard("done");
    expect(named(file, "SIGTERM")).toHaveLength(1);
  });

  it("that is over already starts nothing", async () => {
    const guard = new TestGuard();
    const file = join(scratch(), "ticks");
    guard.start(ticker(file), inMs(200), STOP);
    expect((await guard.heard("done")).why).toBe("too-late");
    expect(guard.message("started")).toBeUndefined();
    expect(notes(file)).toEqual([]);
  });
});

describe("the end of the supervisor", () => {
  it("trap 48: kills the command at once, which may ignore every signal", async () => {
    const { file, guard } = await guardedTicker(STOP, LONG_MS, "SIGTERM", "SIGINT", "SIGHUP");
    const goneMs = Date.now();
    guard.hangUp();
    await waitFor("the guard to end", () => guard.exited);
    expect(livingIn(guard.group!)).toEqual([]);
    expect(lastMs(file)).toBeLessThan(goneMs + SLACK_MS);
  });

  it("trap 48: kills grandchildren too", async () => {
    const file = join(scratch(), "ticks");
    const guard = new TestGuard();
    guard.start(family(file), inMs(LONG_MS), STOP);
    await waitFor("the grandchild's first tick", () => named(file, "tick").length > 0);
    expect(named(file, "tick")[0]?.pid).not.toBe(guard.group);
    expect(livingIn(guard.group!)).toHaveLength(2);
    guard.hangUp();
    await waitFor("the guard to end", () => guard.exited);
    expect(livingIn(guard.group!)).toEqual([]);
  });

  it("ends a guard that has no command yet", async () => {
    const guard = new TestGuard();
    await guard.heard("ready");
    guard.hangUp();
    await waitFor("the guard to end", () => guard.exited);
    expect(guard.process.exitCode).toBe(0);
  });
});

describe("a command", () => {
  it("that ends by itself is reported with its code", async () => {
    const guard = new TestGuard();
    guard.start(exits(3), inMs(LONG_MS), STOP);
    expect(await guard.heard("done")).toEqual({ kind: "done", why: "ended", survivors: 0 });
    expect(guard.message("ended")).toEqual({ kind: "ended", code: 3, signal: null });
  });

  it("trap 48: that leaves somebody of its group behind has ended when nobody is left", async () => {
    const file = join(scratch(), "ticks");
    const guard = new TestGuard();
    guard.start(deserter(file), inMs(LONG_MS), STOP);
    await guard.heard("ended");
    await guard.heard("done");
    expect(livingIn(guard.group!)).toEqual([]);
    expect(named(file, "SIGTERM").length).toBeGreaterThan(0);
    expect(guard.message("ended")).toEqual({ kind: "ended", code: 0, signal: null });
  });

  it("gets what is forwarded, and goes on", async () => {
    const { file, guard } = await guardedTicker(STOP, LONG_MS, "SIGHUP", "SIGUSR1");
    guard.send({ kind: "forward", signal: "SIGHUP" });
    guard.send({ kind: "forward", signal: "SIGUSR1" });
    await waitFor("both signals", () => named(file, "SIGHUP").length + named(file, "SIGUSR1").length === 2);
    expect(guard.exited).toBe(false);
  });

  it("that is lost gets SIGTERM at once, and SIGKILL when the grace is over", async () => {
    const { file, guard } = await guardedTicker(STOP, LONG_MS, "SIGTERM");
    const lostMs = Date.now();
    guard.send({ kind: "lost" });
    expect((await guard.heard("done")).why).toBe("lost");
    expect(named(file, "SIGTERM")[0]!.atMs - lostMs).toBeLessThan(SLACK_MS);
    expect(lastMs(file) - lostMs).toBeGreaterThan(STOP.graceMs / 2);
    expect(lastMs(file) - lostMs).toBeLessThan(STOP.graceMs + SLACK_MS);
  });

  it("that is lost with `kill` gets nothing but SIGKILL", async () => {
    const { file, guard } = await guardedTicker(KILL, LONG_MS, "SIGTERM");
    const lostMs = Date.now();
    guard.send({ kind: "lost" });
    await guard.heard("done");
    expect(named(file, "SIGTERM")).toEqual([]);
    expect(lastMs(file) - lostMs).toBeLessThan(SLACK_MS);
  });

  it("that does not exist, or may not be run, is reported as that", async () => {
    const missing = new TestGuard();
    missing.start(["/nowhere/at/all"], inMs(LONG_MS), STOP);
    expect((await missing.heard("failed")).code).toBe("ENOENT");
    const directory = new TestGuard();
    directory.start([scratch()], inMs(LONG_MS), STOP);
    expect((await directory.heard("failed")).code).toBe("EACCES");
    await waitFor("both guards to end", () => missing.exited && directory.exited);
  });

  it.runIf(process.platform === "linux")("inherits nothing of the guard beside the three streams", async () => {
    const { guard } = await guardedTicker(STOP, LONG_MS);
    const pipe = readlinkSync(`/proc/${guard.process.pid}/fd/3`);
    const ownFd = (fd: number): string => {
      try {
        return readlinkSync(`/proc/${guard.group}/fd/${fd}`);
      } catch {
        return "closed";
      }
    };
    expect(pipe).toMatch(/^socket:/);
    expect(Array.from({ length: 64 }, (_, fd) => ownFd(fd))).not.toContain(pipe);
    const environment = readFileSync(`/proc/${guard.group}/environ`, "utf8");
    expect(environment.split("\0").map((one) => one.split("=")[0])).toEqual(["PATH", ""]);
  });
});

it("the guard outlives the signals that a whole control group gets, for as long as its command lives", async () => {
  const { file, guard } = await guardedTicker(STOP, LONG_MS, "SIGTERM", "SIGINT", "SIGHUP");
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) guard.process.kill(signal);
  guard.send({ kind: "forward", signal: "SIGHUP" });
  await waitFor("the forwarded signal", () => named(file, "SIGHUP").length > 0);
  expect(guard.exited).toBe(false);
  guard.send({ kind: "kill" });
  await waitFor("the guard to end", () => guard.exited);
});
