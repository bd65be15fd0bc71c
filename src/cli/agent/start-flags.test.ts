import { describe, expect, it } from "vitest";
import { readAgentStartFlags } from "./start-flags.ts";
import { UsageError } from "../kit/flags.ts";

const read = (...args: readonly string[]) => readAgentStartFlags(args, {});

const wrong = (...args: readonly string[]): string => {
  try {
    read(...args);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
  }
  throw new Error(`${JSON.stringify(args)} was taken`);
};

describe("tenure agent start", () => {
  it("needs nothing but a server, and has defaults", () => {
    expect(read()).toEqual({
      connection: {},
      name: null,
      capacity: 1,
      labels: {},
      platform: process.platform,
      leaseMs: 15_000,
      graceMs: 5_000,
      drainMs: 30_000,
      logLevel: "info",
    });
    expect(read("--help")).toBe("help");
  });

  it("takes several servers and labels, and durations", () => {
    const args = [
      "--server",
      "http://a",
      "--server",
      "http://b",
      "--label",
      "a=1",
      "--label",
      "b=x=y",
      "--capacity",
      "4",
    ];
    expect(
      read(...args, "--lease", "2s", "--grace", "0s", "--drain", "1m", "--kinds", "exec", "--name", "w.1"),
    ).toMatchObject({
      connection: { url: "http://a,http://b" },
      labels: { a: "1", b: "x=y" },
      capacity: 4,
      leaseMs: 2_000,
      graceMs: 0,
      drainMs: 60_000,
      name: "w.1",
    });
    expect(readAgentStartFlags([], { TENURE_LOG_LEVEL: "warn" })).toMatchObject({ logLevel: "warn" });
    expect(readAgentStartFlags(["--log-level", "debug"], { TENURE_LOG_LEVEL: "x" })).toMatchObject({
      logLevel: "debug",
    });
  });

  it("says what is wrong before anything is started", () => {
    expect(wrong("w1")).toBe('start takes no "w1"; its name is --name');
    expect(wrong("--", "make")).toBe('start takes no "make"; its name is --name');
    expect(wrong("--name", "a b")).toMatch(/^--name takes a name of letters.*, not "a b"$/);
    expect(wrong("--capacity", "0")).toBe('--capacity takes a whole number from 1 to 1000, not "0"');
    expect(wrong("--label", "gpu")).toBe('--label takes NAME=VALUE, not "gpu"');
    expect(wrong("--kinds", "exec,build")).toBe('--kinds takes exec, not "build"');
    expect(wrong("--lease", "999ms")).toBe("--lease takes at least 1s, not 999ms");
    expect(wrong("--lease", "1h")).toMatch(/^--lease takes at most/);
    expect(wrong("--grace", "soon")).toMatch(/^--grace takes a duration/);
    expect(wrong("--server", "http://a", "--url", "http://b")).toBe("give --server or --url, not both");
    expect(wrong("--log-level", "loud")).toMatch(/^--log-level takes trace or .*, not "loud"$/);
    expect(() => readAgentStartFlags([], { TENURE_LOG_LEVEL: "loud" })).toThrow(/^TENURE_LOG_LEVEL takes/);
    expect(wrong("--capcity", "4")).toBe("there is no --capcity; did you mean --capacity?");
  });
});
