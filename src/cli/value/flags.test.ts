import { describe, expect, it } from "vitest";
import { UsageError } from "../kit/flags.ts";
import { readValueFlags } from "./flags.ts";

const step = (args: string, environment: Record<string, string> = {}) => {
  const found = readValueFlags(args.split(" "), environment);
  return found === "help" ? found : found.step;
};

describe("tenure value", () => {
  it("takes a name to get, a value to put, conditions to write", () => {
    expect(step("get a/b")).toEqual({ verb: "get", name: "a/b" });
    expect(step("put a {}")).toEqual({ verb: "put", name: "a", value: { json: {} }, conditions: {} });
    expect(step("put a null --if-version 0")).toMatchObject({ value: { json: null }, conditions: { ifVersion: 0 } });
    expect(step("put a -")).toMatchObject({ value: null });
    expect(step("put a -- -5")).toMatchObject({ value: { json: -5 } });
    expect(step("delete a --scope s --epoch 3 --if-version=4")).toEqual({
      verb: "delete",
      name: "a",
      conditions: { ifVersion: 4, scope: "s", epoch: 3 },
    });
    expect(step("list --prefix job/")).toEqual({ verb: "list", prefix: "job/" });
    expect(step("watch --after 7")).toEqual({ verb: "watch", prefix: undefined, after: 7 });
    expect(step("put --help")).toBe("help");
  });

  it("takes epochs and versions up to the largest there may be, of 16 digits: a cluster that is restored in 2033 has such", () => {
    const [last, tooLarge] = ["9007199254740991", "9007199254740993"];
    const led = { TENURE_SCOPE: "s", TENURE_EPOCH: last };
    expect(step(`put a 1 --if-version ${last}`, led)).toMatchObject({
      conditions: { ifVersion: Number(last), epoch: Number(last) },
    });
    expect(step(`watch --after ${last}`)).toMatchObject({ after: Number(last) });
    expect(() => step(`watch --after ${tooLarge}`)).toThrowError(UsageError);
  });

  it("writes under the epoch in which tenure run has started it; flags count instead", () => {
    const led = { TENURE_SCOPE: "payer", TENURE_EPOCH: "12" };
    expect(step("put a 1", led)).toMatchObject({ conditions: { scope: "payer", epoch: 12 } });
    expect(step("put a 1 --scope s --epoch 3", led)).toMatchObject({ conditions: { scope: "s", epoch: 3 } });
    expect(step("get a", { TENURE_SCOPE: "payer" })).toEqual({ verb: "get", name: "a" });
    for (const [environment, args, message] of [
      [{ TENURE_SCOPE: "payer" }, "put a 1", "TENURE_SCOPE needs TENURE_EPOCH too"],
      [{ TENURE_EPOCH: "12" }, "delete a", "TENURE_EPOCH needs TENURE_SCOPE too"],
      [{ ...led, TENURE_EPOCH: "x" }, "put a 1", "TENURE_EPOCH takes a whole number"],
      [led, "put a 1 --epoch 3", "--epoch needs --scope too"],
    ] as const) {
      expect(() => step(args, environment)).toThrowError(new RegExp(message));
      expect(() => step(args, environment)).toThrowError(UsageError);
    }
  });
});
