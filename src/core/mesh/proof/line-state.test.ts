import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { DecodeError } from "../../kit/bytes.ts";
import type { LineState } from "../model.ts";
import { ringOf, TestSite } from "../test-site.ts";
import { decodeLineState, emptyLine, encodeLineState, rootOf } from "./line-state.ts";
import { exampleSite, readTo, toolsOf } from "./test-pages.ts";

const site = exampleSite(digest);
const state = readTo(site, [12], toolsOf(digest));

describe("a line's state", () => {
  test("comes back from its bytes", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 32 }), fc.nat(30), (nodes, events) => {
        const names = Array.from({ length: nodes }, (_, at) => `n${100 + at}`);
        const any = new TestSite(ringOf("site-a", names, digest), digest);
        any.writeMany(events);
        const known = readTo(any, events === 0 ? [] : [events], toolsOf(digest));
        expect(decodeLineState(encodeLineState(known))).toEqual(known);
      }),
      { numRuns: 30 },
    );
  });

  test("has the tree of its events", () => {
    expect(rootOf(state, digest)).toBe(site.root(12));
    expect(rootOf(site.start, digest)).toBe(digest.sha256Hex(""));
  });

  test("is these bytes, for ever", () => {
    const key = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    const ring = { controller: "site-a", generation: 1, author: "site-a", keys: [{ node: "n1", key }] };
    const example: LineState = {
      ...emptyLine(ring, digest),
      size: 1,
      hash: digest.sha256Hex("e"),
      timestamp: 1_790_000_000_000.001,
      frontier: Uint8Array.of(1, 2),
      checkpoint: "note",
    };
    expect(Buffer.from(encodeLineState(example)).toString("hex")).toBe(
      "0100000027736974652d612e633966633035373764643262383664333661373464303332393832383239353300000006736974652d61" +
        "000000000000000100000006736974652d6101000000026e310000002c3131715941594b7843726656532f3754795751484f67376863" +
        "76506170694d6c727749616150634855526f3d0000000000000001000000203f79bb7b435b05321651daefd374cdc681dc06faa65e37" +
        "4e38337b88ca046dea00000011313739303030303030303030302e303031000000020102000000046e6f7465",
    );
  });

  test("is refused cut, longer, and with any byte changed it is refused or another state", () => {
    const bytes = encodeLineState(state);
    const states = new Set([Buffer.from(bytes).toString("hex")]);
    for (let at = 0; at < bytes.length; at++) {
      expect(() => decodeLineState(bytes.slice(0, at))).toThrow(DecodeError);
      const changed = bytes.slice();
      changed[at]! ^= 0x41;
      try {
        states.add(Buffer.from(encodeLineState(decodeLineState(changed))).toString("hex"));
      } catch (error) {
        expect(error).toBeInstanceOf(DecodeError);
      }
    }
    expect(() => decodeLineState(Uint8Array.of(...bytes, 0))).toThrow("bytes follow");
    expect(states.size).toBeGreaterThan(1);
  });

  test.each([
    ["a size without a hash", { hash: null }, "does not fit"],
    ["a hash without a size", { size: 0 }, "does not fit"],
    ["a size without a tree", { frontier: new Uint8Array(0) }, "does not fit"],
    ["a time before all times", { timestamp: -1 }, "a timestamp"],
    ["no time", { timestamp: Number.NaN }, "a timestamp"],
    ["a line that is none", { line: "x" }, "a line's id"],
    ["a ring without keys", { ring: { ...state.ring, keys: [] } }, "1 to 32 keys"],
  ])("is refused with %s", (_, more, problem) => {
    expect(() => decodeLineState(encodeLineState({ ...state, ...more }))).toThrow(problem);
  });
});
