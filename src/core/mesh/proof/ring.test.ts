import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { ringOf } from "../test-site.ts";
import { bytesOfBase64, fromBase64, toBase64 } from "./base64.ts";
import { RING_KEYS_MAX } from "./limits.ts";
import { controllerOf, isLineId, lineIdOf } from "./line-id.ts";
import { isControllerId, ringHashOf, ringProblem } from "./ring.ts";
import { isWithheld } from "./withheld.ts";

const ring = ringOf("site-a", ["n1", "n2"], digest);
const [n1, n2] = ring.keys as [(typeof ring.keys)[0], (typeof ring.keys)[0]];

describe("a ring", () => {
  test("has one hash, in whatever order its fields are, and no other has it", () => {
    const { keys, author, generation, controller } = ring;
    const hash = ringHashOf(ring, digest);
    expect(
      ringHashOf({ keys: keys.map(({ node, key }) => ({ key, node })), author, generation, controller }, digest),
    ).toBe(hash);
    const others = [{ controller: "site-b" }, { generation: 2 }, { author: "x" }, { keys: [n1] }, { keys: [n2] }];
    const hashes = others.map((other) => ringHashOf({ ...ring, ...other }, digest));
    expect(new Set([hash, ...hashes]).size).toBe(others.length + 1);
  });

  test("names its line", () => {
    const line = lineIdOf(ring, digest);
    expect(line).toBe(`site-a.${ringHashOf(ring, digest).slice(0, 32)}`);
    expect(isLineId(line)).toBe(true);
    expect(controllerOf(line)).toBe("site-a");
  });

  test("is what it is, up to as many keys as a cluster has nodes", () => {
    expect(ringProblem(ring)).toBeNull();
    const nodes = Array.from({ length: RING_KEYS_MAX + 1 }, (_, at) => `n${100 + at}`);
    expect(ringProblem(ringOf("site-a", nodes.slice(1), digest))).toBeNull();
    expect(ringProblem(ringOf("site-a", nodes, digest))).toBe("a ring has 1 to 32 keys");
  });

  test.each([
    [null, "is an object"],
    [[], "is an object"],
    [{ ...ring, more: 1 }, "has the fields"],
    [{ ...ring, keys: undefined, more: 1 }, "has the fields"],
    [JSON.parse('{"__proto__":1,"author":"a","controller":"a","keys":[]}'), "has the fields"],
    [{ ...ring, controller: "Site" }, "controller"],
    [{ ...ring, controller: "a.b" }, "controller"],
    [{ ...ring, generation: 0 }, "generation"],
    [{ ...ring, generation: 1.5 }, "generation"],
    [{ ...ring, generation: "1" }, "generation"],
    [{ ...ring, author: "" }, "author"],
    [{ ...ring, author: "\ud800" }, "author"],
    [{ ...ring, author: "é".repeat(129) }, "author"],
    [{ ...ring, keys: [] }, "1 to 32 keys"],
    [{ ...ring, keys: [n2, n1] }, "sorted by node"],
    [{ ...ring, keys: [n1, n1] }, "each node once"],
    [{ ...ring, keys: [{ node: "n 1", key: n1.key }] }, "a node of a ring"],
    [{ ...ring, keys: [{ node: "n+1", key: n1.key }] }, "a node of a ring"],
    [{ ...ring, keys: [{ node: "n1" }] }, "the fields key and node"],
    [{ ...ring, keys: [{ node: "n1", key: `${n1.key}=` }] }, "32 bytes in base64"],
    [{ ...ring, keys: [{ node: "n1", key: n1.key.replace("=", "") }] }, "32 bytes in base64"],
  ])("is not %j", (value, problem) => {
    expect(ringProblem(value)).toContain(problem);
  });
});

describe("names", () => {
  test.each(["a", "0", "site-a", "a".repeat(63)])("%s is a controller's id", (id) =>
    expect(isControllerId(id)).toBe(true),
  );
  test.each(["", "-a", "A", "a.b", "a/b", "a b", "a\n", "é", "a".repeat(64), null, 1])("%j is none", (id) =>
    expect(isControllerId(id)).toBe(false),
  );
  test.each([
    "a",
    `a.${"0".repeat(31)}`,
    `a.${"0".repeat(33)}`,
    `a.${"A".repeat(32)}`,
    `.${"0".repeat(32)}`,
    `a.${"0".repeat(32)}\n`,
    null,
  ])("%j is no line's id", (id) => expect(isLineId(id)).toBe(false));
});

test.each([
  ["build:log", true],
  ["key:created", true],
  ["key:anything", true],
  ["build:logs", false],
  ["build:submitted", false],
  ["keys:created", false],
  ["monkey:created", false],
  ["controller:registered", false],
])("%s is withheld: %s", (eventType, expected) => expect(isWithheld(eventType)).toBe(expected));

describe("base64", () => {
  test("is Node's, of any bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        const text = Buffer.from(bytes).toString("base64");
        expect(toBase64(bytes)).toBe(text);
        expect(fromBase64(text, bytes.length)).toEqual(bytes);
        expect(fromBase64(text, bytes.length + 1)).toBeNull();
        expect(bytesOfBase64(text)).toEqual(bytes);
      }),
    );
  });

  test("has no second text of the same bytes", () => {
    const units = fc.constantFrom("A", "B", "/", "+", "=", "-", "_", "\n", "é", "z");
    fc.assert(
      fc.property(fc.string({ unit: units, maxLength: 12 }), (text) => {
        const bytes = bytesOfBase64(text);
        if (bytes !== null) expect(Buffer.from(bytes).toString("base64")).toBe(text);
      }),
      { numRuns: 2_000 },
    );
    for (const text of ["A", "AA", "AAA", "AB==", "AAB=", "A===", "====", "AA=A", "AA==AAAA"])
      expect(bytesOfBase64(text)).toBeNull();
  });
});
