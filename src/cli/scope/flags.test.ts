import { describe, expect, it } from "vitest";
import { UsageError } from "../kit/flags.ts";
import { readScopeFlags } from "./flags.ts";

const BACKEND = { TENURE_BACKEND: "postgres://127.0.0.1/x" };

describe("the command line of tenure scope", () => {
  it("takes a scope as a word, behind --, or as a flag for names that begin with a dash", () => {
    for (const args of [
      ["show", "jobs"],
      ["show", "--scope", "jobs"],
      ["show", "--", "jobs"],
    ]) {
      expect(readScopeFlags(args, BACKEND)).toMatchObject({ verb: "show", scope: "jobs", output: "table" });
    }
    expect(readScopeFlags(["show", "--scope", "-a"], BACKEND)).toMatchObject({ scope: "-a" });
    expect(readScopeFlags(["show", "--", "-o"], BACKEND)).toMatchObject({ scope: "-o", output: "table" });
  });

  it("takes -o json in every spelling", () => {
    for (const output of [["-o", "json"], ["-o=json"], ["--output", "json"], ["--output=json"]]) {
      expect(readScopeFlags(["list", ...output], BACKEND)).toMatchObject({ verb: "list", scope: "", output: "json" });
    }
  });

  it("waits 10 s for a resignation unless told otherwise", () => {
    expect(readScopeFlags(["resign", "a"], BACKEND)).toMatchObject({ waitMs: 10_000, force: false });
    expect(readScopeFlags(["resign", "a", "--wait", "1m", "--force"], BACKEND)).toMatchObject({
      waitMs: 60_000,
      force: true,
    });
  });

  it.each([
    [[], "say what to do"],
    [["shwo", "a"], "did you mean show?"],
    [["elect", "a"], "give list, show, watch, history, resign"],
    [["show"], "show needs a scope"],
    [["show", ""], "show needs a scope"],
    [["list", "a"], "list takes no scope"],
    [["show", "a", "b"], "one scope"],
    [["show", "a", "--scope", "b"], "one scope"],
    [["list", "--force"], "--force belongs to resign"],
    [["show", "a", "--wait", "1s"], "--wait belongs to resign"],
    [["resign", "a", "--wait", "soon"], "--wait takes a duration"],
    [["list", "-o", "yaml"], "-o takes table or json"],
    [["list", "--bakend", "x"], "did you mean --backend?"],
  ])("refuses %j", (args, words) => {
    expect(() => readScopeFlags(args, BACKEND)).toThrow(UsageError);
    expect(() => readScopeFlags(args, BACKEND)).toThrow(words);
  });

  it("wants a backend, from the flag or from the environment", () => {
    expect(() => readScopeFlags(["list"], {})).toThrow("--backend is missing");
    expect(readScopeFlags(["list", "--backend", "etcd://a"], BACKEND)).toMatchObject({ backend: "etcd://a" });
  });
});
