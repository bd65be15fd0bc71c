import { describe, expect, it } from "vitest";
import { readAgentFlags } from "./flags.ts";
import { UsageError } from "../kit/flags.ts";

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
    expect(step("drain", "a1")).toEqual({ verb: "drain", name: "a1", undo: false });
    expect(step("drain", "a1", "--undo")).toEqual({ verb: "drain", name: "a1", undo: true });
    expect(step("--help")).toBe("help");
  });

  it("says what is wrong before anything is asked", () => {
    expect(wrong()).toBe("say what to do: start, list, show, drain, remove");
    expect(wrong("lst")).toBe('there is no "lst"; did you mean list?');
    expect(wrong("frobnicate")).toBe('there is no "frobnicate"; give start, list, show, drain, remove');
    expect(wrong("--url", "http://x", "start")).toBe(
      "start stands in front of its flags: tenure agent start --url URL",
    );
    expect(wrong("list", "a1")).toBe('list takes no "a1"');
    expect(wrong("show")).toBe("show needs a name: tenure agent show NAME");
    expect(wrong("remove", "")).toBe("remove needs a name: tenure agent remove NAME");
    expect(wrong("remove", "a1", "a2")).toBe("remove takes one name, not 2");
    expect(wrong("drain")).toBe("drain needs a name: tenure agent drain NAME");
    expect(wrong("remove", "a1", "--undo")).toBe("--undo belongs to drain, not to remove");
    expect(wrong("list", "--ulr", "x")).toBe("there is no --ulr; did you mean --url?");
  });
});
