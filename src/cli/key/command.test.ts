import { describe, expect, it } from "vitest";
import { ROUTES } from "../../contract/index.ts";
import { UsageError } from "../kit/flags.ts";
import { KEY_NAME } from "../../contract/names.ts";
import { readStep } from "./command.ts";

const wrong = (words: readonly string[], values: Parameters<typeof readStep>[1] = {}): string => {
  try {
    readStep(words, values);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
  }
  throw new Error(`${JSON.stringify(words)} was taken`);
};

describe("tenure key", () => {
  it("knows the names that the servers know", () => {
    const takes = (name: string): boolean =>
      ROUTES.createKey.body.check({ name, role: "viewer", sha256: "0".repeat(64) }).ok;
    const names = ["a", "a".repeat(64), "a".repeat(65), "", "-a", ".a", "a.b_c-D9", "a b", "ä", "a/b", "A"];
    expect(names.map((name) => KEY_NAME.test(name))).toEqual(names.map(takes));
    expect(takes("anonymous")).toBe(false);
  });

  it("takes a role and perhaps a name to create, a name to revoke, and nothing to list", () => {
    const made = { verb: "create", role: "agent", name: null, isOffline: false };
    expect(readStep(["create"], { role: "agent" })).toEqual(made);
    expect(readStep(["create"], { role: "agent", name: "w1", offline: "" })).toEqual({
      ...made,
      name: "w1",
      isOffline: true,
    });
    expect(readStep(["list"], {})).toEqual({ verb: "list" });
    expect(readStep(["revoke", "w1"], {})).toEqual({ verb: "revoke", name: "w1" });
  });

  it("says what is wrong before anything is asked", () => {
    expect(wrong([])).toContain("create, list, revoke");
    expect(wrong(["creat"])).toContain("did you mean create?");
    expect(wrong(["create"])).toContain("--role viewer|submitter|agent|client|backup|controller|operator");
    expect(wrong(["create"], { role: "admin" })).toContain("--role takes");
    expect(wrong(["create", "w1"], { role: "agent" })).toContain("--name NAME");
    expect(wrong(["create"], { role: "agent", name: "anonymous" })).toContain("callers without a key");
    expect(wrong(["create"], { role: "agent", name: "a b" })).toContain('not "a b"');
    expect(wrong(["list", "w1"])).toContain("list takes no");
    expect(wrong(["list"], { role: "agent" })).toBe("--role belongs to create, not to list");
    expect(wrong(["revoke"])).toContain("tenure key revoke NAME");
    expect(wrong(["revoke", "a", "b"])).toContain("takes one name, not 2");
    expect(wrong(["revoke", "a"], { offline: "" })).toBe("--offline belongs to create, not to revoke");
  });
});
