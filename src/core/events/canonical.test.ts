import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Json } from "../kit/json.ts";
import { parseJson } from "../kit/parse-json.ts";
import { EVENT_DEPTH_MAX, INTEGER_MAX } from "../kit/limits.ts";
import { canonicalJson } from "./canonical.ts";
import { TEXT_UNITS } from "./test-events.ts";

const stringUnit = fc.constantFrom(...TEXT_UNITS);

/** RFC 8785, appendix B: the bits of a double, and its text. */
const NUMBERS: readonly (readonly [string, string])[] = [
  ["0000000000000000", "0"],
  ["8000000000000000", "0"],
  ["0000000000000001", "5e-324"],
  ["8000000000000001", "-5e-324"],
  ["7fefffffffffffff", "1.7976931348623157e+308"],
  ["ffefffffffffffff", "-1.7976931348623157e+308"],
  ["4340000000000000", "9007199254740992"],
  ["c340000000000000", "-9007199254740992"],
  ["4430000000000000", "295147905179352830000"],
  ["44b52d02c7e14af5", "9.999999999999997e+22"],
  ["44b52d02c7e14af6", "1e+23"],
  ["44b52d02c7e14af7", "1.0000000000000001e+23"],
  ["444b1ae4d6e2ef4e", "999999999999999700000"],
  ["444b1ae4d6e2ef4f", "999999999999999900000"],
  ["444b1ae4d6e2ef50", "1e+21"],
  ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
  ["3eb0c6f7a0b5ed8d", "0.000001"],
  ["41b3de4355555553", "333333333.3333332"],
  ["41b3de4355555554", "333333333.33333325"],
  ["41b3de4355555555", "333333333.3333333"],
  ["41b3de4355555556", "333333333.3333334"],
  ["41b3de4355555557", "333333333.33333343"],
  ["becbf647612f3696", "-0.0000033333333333333333"],
  ["43143ff3c1cb0959", "1424953923781206.2"],
];

function doubleOf(bits: string): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt(`0x${bits}`));
  return view.getFloat64(0);
}

describe("canonical JSON (RFC 8785)", () => {
  test.each(NUMBERS)("appendix B: the double %s is written %s", (bits, text) => {
    expect(canonicalJson(doubleOf(bits))).toBe(text);
  });

  test.each(["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])("the double %s is refused", (bits) => {
    expect(() => canonicalJson({ a: [doubleOf(bits)] })).toThrow(expect.objectContaining({ code: "EVENT_INVALID" }));
  });

  test("section 3.2.2: the structured example, to the byte", () => {
    const input = String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`;
    const hex =
      "7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c226e756d62657273223a5b3333333333333333332e33333333333333" +
      "2c31652b33302c342e352c302e3030322c31652d32375d2c22737472696e67223a22e282ac245c75303030665c6e4127425c225c5c5c5c5c222f227d";
    expect(Buffer.from(canonicalJson(JSON.parse(input) as Json)).toString("hex")).toBe(hex);
  });

  test("section 3.2.3: keys are sorted by UTF-16 code units", () => {
    const members = {
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis",
    };
    expect(JSON.parse(canonicalJson(members))).toEqual(members);
    const order = [...canonicalJson(members).matchAll(/:"([^"]+)"/g)].map((match) => match[1]);
    expect(order).toEqual([
      "Carriage Return",
      "One",
      "Control",
      "Latin Small Letter O With Diaeresis",
      "Euro Sign",
      "Emoji: Grinning Face",
      "Hebrew Letter Dalet With Dagesh",
    ]);
  });

  test.each(["\ud800", "a\udc00b", "\udc00\ud800"])(
    "trap 57: half of a surrogate pair is refused, as a value and as a key",
    (half) => {
      expect(() => canonicalJson(half)).toThrow("surrogate");
      expect(() => canonicalJson({ [half]: 1 })).toThrow("surrogate");
    },
  );

  test("trap 63: __proto__ is a key like any other", () => {
    expect(canonicalJson(JSON.parse('{"z":1,"__proto__":{"b":1,"a":2}}') as Json)).toBe(
      '{"__proto__":{"a":2,"b":1},"z":1}',
    );
  });

  test("what is not JSON is refused instead of left out", () => {
    for (const value of [undefined, () => 1, Symbol("a"), 1n]) {
      expect(() => canonicalJson({ a: value } as unknown as Json)).toThrow("a value of the type");
      expect(() => canonicalJson([value] as unknown as Json)).toThrow("a value of the type");
    }
    expect(() => canonicalJson(new Array<Json>(1))).toThrow("a value of the type undefined");
    for (const value of [Number.NaN, Infinity, -Infinity])
      expect(() => canonicalJson({ a: value })).toThrow("the number");
  });

  test("what an object says of itself, or has from another one, is not asked: its members count", () => {
    class Named {
      a = 1;
      toJSON(): string {
        return "something else";
      }
    }
    const inherits = Object.assign(Object.create({ b: 1 }) as Record<string, Json>, { a: 1 });
    for (const value of [new Named(), { a: 1, __proto__: null }, inherits]) {
      expect(canonicalJson({ of: value } as unknown as Json)).toBe('{"of":{"a":1}}');
    }
  });

  test("names that are numbers stand in the order of their letters", () => {
    expect(canonicalJson({ "9": 1, "10": 2, a: 3 })).toBe('{"10":2,"9":1,"a":3}');
  });

  test("nesting is accepted at the bound and refused one past it, and so is a cycle", () => {
    const nested = (depth: number): Json => JSON.parse("[".repeat(depth) + "]".repeat(depth)) as Json;
    expect(canonicalJson(nested(EVENT_DEPTH_MAX))).toHaveLength(2 * EVENT_DEPTH_MAX);
    expect(() => canonicalJson(nested(EVENT_DEPTH_MAX + 1))).toThrow("nesting");
    const cycle: Record<string, Json> = {};
    cycle["self"] = cycle;
    expect(() => canonicalJson(cycle)).toThrow("nesting");
  });

  test("numbers past the caller's maximum are refused", () => {
    expect(canonicalJson([INTEGER_MAX, -INTEGER_MAX], INTEGER_MAX)).toBe("[9007199254740991,-9007199254740991]");
    expect(() => canonicalJson([INTEGER_MAX + 1], INTEGER_MAX)).toThrow("9007199254740992");
    expect(() => canonicalJson([-1e300], INTEGER_MAX)).toThrow("-1e+300");
  });

  test("says the same value, whatever order the keys came in", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit, depthSize: "xsmall" }), (value) => {
        const text = canonicalJson(value as Json);
        // JSON knows no negative zero.
        expect(parseJson(text)).toEqual(parseJson(JSON.stringify(value)));
        expect(canonicalJson(reversed(value as Json))).toBe(text);
      }),
      { numRuns: 300 },
    );
  });
});

function reversed(value: Json): Json {
  if (Array.isArray(value)) return value.map((item) => reversed(item as Json));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, item]) => [key, reversed(item)]),
  );
}
