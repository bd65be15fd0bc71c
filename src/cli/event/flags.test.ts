import { describe, expect, it } from "vitest";
import { readEventFlags } from "./flags.ts";
import { UsageError } from "../kit/flags.ts";

const step = (...args: readonly string[]) => {
  const found = readEventFlags(args);
  return found === "help" ? found : found.step;
};

const wrong = (...args: readonly string[]): string => {
  try {
    readEventFlags(args);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
  }
  throw new Error(`${JSON.stringify(args)} was taken`);
};

const ALL = {
  verb: "tail",
  after: undefined,
  types: undefined,
  entityId: undefined,
  entityType: undefined,
  limit: Number.POSITIVE_INFINITY,
  isFollowed: true,
};

describe("tenure event", () => {
  it("tails everything from now on, or what was asked for", () => {
    expect(step("tail")).toEqual(ALL);
    expect(step("tail", "--after", "0", "--limit", "3", "--no-follow")).toEqual({
      ...ALL,
      after: 0,
      limit: 3,
      isFollowed: false,
    });
    const types = ["build:*", "queue:paused", "key:created"];
    expect(
      step(
        "tail",
        "--type",
        "build:*,queue:paused",
        "--type",
        "key:created",
        "--entity-id",
        "j",
        "--entity-type",
        "key",
      ),
    ).toEqual({ ...ALL, types, entityId: "j", entityType: "key" });
    expect(step("verify")).toEqual({ verb: "verify" });
    expect(step("--help")).toBe("help");
  });

  it("says what is wrong before anything is asked", () => {
    expect(wrong()).toBe("say what to do: tail, verify");
    expect(wrong("tial")).toBe('there is no "tial"; did you mean tail?');
    expect(wrong("tail", "5")).toBe('tail takes no "5"');
    const number = (min: number) => `takes a whole number from ${min} to 999999999999999`;
    expect(wrong("tail", "--after", "-1")).toBe(`--after ${number(0)}, not "-1"`);
    expect(wrong("tail", "--after", "x")).toBe(`--after ${number(0)}, not "x"`);
    expect(wrong("tail", "--limit", "0")).toBe(`--limit ${number(1)}, not "0"`);
    expect(wrong("tail", "--entity-id", "")).toBe("--entity-id must not be empty");
    expect(wrong("tail", "--entity-type", "job")).toBe(
      '--entity-type takes build, worker, queue, schedule, key, certificate, controller, not "job"; did you mean build?',
    );
    expect(wrong("tail", "--entity-type", "quue")).toMatch(/, not "quue"; did you mean queue\?$/);
    expect(wrong("tail", "--entity-type", "toString")).toMatch(/, not "toString"$/);
    expect(wrong("tail", "--type", "build:complete")).toBe(
      '--type has "build:complete", and there are no such events; did you mean build:completed?',
    );
    expect(wrong("tail", "--type", "job:done")).toMatch(
      /^--type has "job:done", and there are no such events; give build:\*, /,
    );
    expect(wrong("tail", "--type", "build:*,")).toMatch(/^--type has "", and there are no such events/);
    expect(wrong("verify", "--after", "3")).toBe("--after belongs to tail, not to verify");
    expect(wrong("verify", "--type", "build:*")).toBe("--type belongs to tail, not to verify");
    expect(wrong("verify", "--no-follow")).toBe("--no-follow belongs to tail, not to verify");
  });
});
