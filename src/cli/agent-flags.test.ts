import { describe, expect, it } from "vitest";
import { readAgentFlags } from "./agent-flags.ts";
import { UsageError } from "./flags.ts";

const step = (...args: readonly string[]) => {
  const found = readAgentFlags(args);
  return found === "help" ? found : found.step;
};

const wrong = (...args: readonly string[]): string => {
  try {
    readAgentFlags(args);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
  }
  throw new Error(`${JSON.stringify(args)} was taken`);
};

describe("tenure agent", () => {
  it("takes a name to show and to remove, and none to list", () => {
    expect(step("list", "-o", "jsonl")).toEqual({ verb: "list" });
    expect(step("show", "a1")).toEqual({ verb: "show", name: "a1" });
    expect(step("remove", "--url", "http://x", "a1")).toEqual({ verb: "remove", name: "a1" });
    expect(step("remove", "--", "-a1")).toEqual({ verb: "remove", name: "-a1" });
    expect(step("--help")).toBe("help");
  });

  it("says what is wrong before anything is asked", () => {
    expect(wrong()).toBe("say what to do: list, show, remove");
    expect(wrong("lst")).toBe('there is no "lst"; did you mean list?');
    expect(wrong("frobnicate")).toBe('there is no "frobnicate"; give list, show, remove');
    expect(wrong("list", "a1")).toBe('list takes no "a1"');
    expect(wrong("show")).toBe("show needs a name: tenure agent show NAME");
    expect(wrong("remove", "")).toBe("remove needs a name: tenure agent remove NAME");
    expect(wrong("remove", "a1", "a2")).toBe("remove takes one name, not 2");
    expect(wrong("list", "--ulr", "x")).toBe("there is no --ulr; did you mean --url?");
  });
});
