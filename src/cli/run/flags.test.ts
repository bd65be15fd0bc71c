import { describe, expect, it } from "vitest";
import type { Timing } from "../../core/trust/window.ts";
import { UsageError } from "../kit/flags.ts";
import { guardPlan, readRunFlags } from "./flags.ts";

const BASE = ["--scope", "s", "--backend", "postgres://h/d"];

it("reads a whole command line, and leaves the command alone", () => {
  const args = [...BASE, "--on-lose=kill", "--grace", "1.5s", "--drain=1m", "--forever", "--wait", "500ms"];
  expect(readRunFlags([...args, "--log", "json", "--quiet", "--", "./job", "--scope", "--", "x"], {})).toEqual({
    scope: "s",
    backend: "postgres://h/d",
    onLose: "kill",
    graceMs: 1_500,
    drainMs: 60_000,
    mode: "forever",
    waitMs: 500,
    identity: undefined,
    enabled: true,
    quiet: true,
    json: true,
    command: "./job",
    args: ["--scope", "--", "x"],
  });
});

it.each([
  [["--", "x"], /--scope is missing/],
  [["--scope", "", "--", "x"], /--scope must not be empty/],
  [["--scope", "s", "--", "x"], /--backend is missing/],
  [BASE, /the command is missing: write it after --/],
  [[...BASE, "--"], /the command is missing/],
  [[...BASE, "./job"], /"\.\/job" belongs to no flag; the command goes after --/],
  [[...BASE, "--grace", "2", "--", "x"], /--grace takes a duration such as 500ms, 2s or 1m, not "2"/],
  [[...BASE, "--wait", "25h", "--", "x"], /--wait takes at most 24h/],
  [[...BASE, "--wait", "--", "x"], /--wait takes a value/],
  [[...BASE, "--on-lose", "ignore", "--", "x"], /--on-lose takes stop or kill, not "ignore"/],
  [[...BASE, "--once", "--forever", "--", "x"], /--once .* --forever/],
  [[...BASE, "--once=yes", "--", "x"], /--once takes no value/],
  [[...BASE, "--scope", "t", "--", "x"], /--scope is given twice/],
  [[...BASE, "--gracee", "2s", "--", "x"], /there is no --gracee; did you mean --grace\?/],
  [[...BASE, "-q", "--", "x"], /there is no -q/],
])("%j is refused in one line that names what is wrong", (args, message) => {
  expect(() => readRunFlags(args, {})).toThrow(UsageError);
  expect(() => readRunFlags(args, {})).toThrow(message);
});

it("a permanent follower is one by the environment, and a typing mistake does not lead", () => {
  const enabled = (value: string): unknown => {
    const flags = readRunFlags([...BASE, "--", "x"], { TENURE_LEADER_ENABLED: value });
    return flags === "help" ? flags : flags.enabled;
  };
  expect(["", "true", "ON", "false", "0", "No"].map(enabled)).toEqual([true, true, true, false, false, false]);
  expect(() => enabled("flase")).toThrow(/TENURE_LEADER_ENABLED is true or false/);
});

describe("the grace", () => {
  const timing: Timing = {
    serverTimeoutMs: 6_000,
    marginMs: 1_500,
    heartbeatMs: 1_000,
    retryMinMs: 200,
    retryMaxMs: 800,
    holdBackMs: 250,
    releaseTimeoutMs: 1_000,
  };

  it("is two seconds, or what the heartbeats leave of the trust", () => {
    expect(guardPlan({ onLose: "stop", graceMs: undefined }, timing).graceMs).toBe(2_000);
    expect(guardPlan({ onLose: "stop", graceMs: undefined }, { ...timing, heartbeatMs: 2_000 }).graceMs).toBe(500);
    expect(guardPlan({ onLose: "stop", graceMs: 2_500 }, timing).graceMs).toBe(2_500);
  });

  it("that would end a healthy command between two heartbeats is refused with the largest that fits", () => {
    expect(() => guardPlan({ onLose: "stop", graceMs: 2_501 }, timing)).toThrow(/--grace 2501ms .* at most 2500ms/);
    expect(guardPlan({ onLose: "kill", graceMs: 60_000 }, timing).graceMs).toBe(60_000);
  });
});
