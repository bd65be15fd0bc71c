import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Json } from "../kit/json.ts";
import { parseJson } from "../kit/parse-json.ts";
import { JSON_DEPTH_MAX } from "../kit/limits.ts";
import { canonicalJson } from "./canonical.ts";
import { JsonScanner } from "./json-scanner.ts";
import { JsonError, parseStrictJson } from "./strict-json.ts";
import { TEXT_UNITS } from "./test-events.ts";

const stringUnit = fc.constantFrom(...TEXT_UNITS);

/** What one text or another has a meaning for. */
const EDITS = [...'{}[],:"\\ 019.eE+-utnl'.split(""), "\u0001", "é", "😀"];

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const parse = (text: string): Json => parseStrictJson(bytesOf(text));

function problemOf(bytes: Uint8Array): string {
  try {
    return `accepted ${JSON.stringify(parseStrictJson(bytes))}`;
  } catch (error) {
    if (error instanceof JsonError) return error.message;
    throw error;
  }
}

describe("trap 57: strict JSON refuses, and says where,", () => {
  test.each([
    ['{"a":1,"b":2,"a":3}', "a key that occurs twice at byte 13"],
    [String.raw`{"a":1,"\u0061":2}`, "a key that occurs twice at byte 7"],
    ['{"é":1,"é":2}', "a key that occurs twice at byte 8"],
    [`{${Array.from({ length: 20 }, (_, i) => `"k${i}":0`).join(",")},"k3":1}`, "a key that occurs twice at byte 151"],
    ['[{"x":{"y":1,"y":1}}]', "a key that occurs twice at byte 13"],
    ["[9007199254740992]", "a number beyond 2^53-1 at byte 1"],
    ["-9007199254740992", "a number beyond 2^53-1 at byte 0"],
    ["1e400", "a number beyond 2^53-1 at byte 0"],
    ["1e20", "a number beyond 2^53-1 at byte 0"],
    [String.raw`"a\ud83d"`, "half of a surrogate pair at byte 2"],
    [String.raw`"\udc00"`, "half of a surrogate pair at byte 1"],
    [String.raw`"\ud83dA"`, "half of a surrogate pair at byte 1"],
    [String.raw`"\ud83d\ud83d"`, "half of a surrogate pair at byte 1"],
    [String.raw`"\x41"`, "an unknown escape at byte 1"],
    [String.raw`"\u12g4"`, "an unknown escape at byte 1"],
    ["{} {}", "something follows the value at byte 3"],
    ["1\0", "something follows the value at byte 1"],
    ["", "a value was expected at byte 0"],
    ["\uFEFF1", "a value was expected at byte 0"],
    ["01", "a number with a leading zero at byte 0"],
    ["1.", "a digit was expected at byte 2"],
    ["-", "a digit was expected at byte 1"],
    ["1e+", "a digit was expected at byte 3"],
    ["[1,]", "a value was expected at byte 3"],
    ['{"a":1,}', "a key was expected at byte 7"],
    ['{"a" 1}', "a colon was expected at byte 5"],
    ["[1 2]", "a comma or the end was expected at byte 3"],
    ['"a', "a string without an end at byte 2"],
    ['"a\nb"', "a control character in a string at byte 2"],
    ["nul", "a value was expected at byte 0"],
    ["NaN", "a value was expected at byte 0"],
  ])("%s", (text, problem) => {
    expect(problemOf(bytesOf(text))).toBe(problem);
  });

  test.each([
    ["an overlong slash", [0xc0, 0xaf]],
    ["an overlong euro", [0xf0, 0x82, 0x82, 0xac]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
    ["a code beyond U+10FFFF", [0xf4, 0x90, 0x80, 0x80]],
    ["a lone continuation", [0x80]],
    ["a sequence cut short", [0xe2, 0x82]],
    ["a byte that never occurs", [0xff]],
  ])("what is not UTF-8: %s", (_, inside) => {
    expect(problemOf(Uint8Array.of(0x22, ...inside, 0x22))).toBe("bytes that are not UTF-8 at byte 1");
  });

  test("nesting one past the bound, and takes it at the bound", () => {
    expect(parse("[".repeat(JSON_DEPTH_MAX) + "]".repeat(JSON_DEPTH_MAX))).toHaveLength(1);
    const past = JSON_DEPTH_MAX + 1;
    expect(() => parse("[".repeat(past) + "]".repeat(past))).toThrow(
      `nesting deeper than ${JSON_DEPTH_MAX} at byte ${JSON_DEPTH_MAX}`,
    );
    expect(() => parse('{"a":'.repeat(100_000))).toThrow("nesting");
  });
});

describe("strict JSON", () => {
  test("takes the largest exact integers, fractions, and escapes of every kind", () => {
    expect(parse("[9007199254740991,-9007199254740991,-0,1E2,0.1e-2]")).toEqual([
      9007199254740991, -9007199254740991, -0, 100, 0.001,
    ]);
    expect(parse(String.raw` {"a\n\/\u00e9" : "\ud83d\ude00😀", "b":[true,false,null]} `)).toEqual({
      "a\n/é": "😀😀",
      b: [true, false, null],
    });
  });

  test("trap 63: __proto__ is data and harmless", () => {
    const value = parse('{"__proto__":{"isAdmin":true}}') as Record<string, Json>;
    expect(Object.keys(value)).toEqual(["__proto__"]);
    expect(value["isAdmin"]).toBeUndefined();
    expect(problemOf(bytesOf('{"__proto__":1,"__proto__":2}'))).toBe("a key that occurs twice at byte 15");
  });

  test("reads what the platform reads, to the same value", () => {
    fc.assert(
      fc.property(fc.json({ stringUnit, depthSize: "xsmall" }), fc.nat(3), (text, indent) => {
        const spaced = JSON.stringify(parseJson(text), null, indent);
        if (/[0-9]{16}|e\+/.test(spaced)) return;
        expect(parse(spaced)).toEqual(parseJson(spaced));
      }),
      { numRuns: 300 },
    );
  });

  test("accepts nothing that JSON.parse refuses: of texts with a few bytes changed", () => {
    fc.assert(
      fc.property(
        fc.json({ depthSize: "xsmall" }),
        fc.array(fc.tuple(fc.nat(), fc.constantFrom(...EDITS)), { maxLength: 3 }),
        (text, edits) => {
          let edited = text;
          for (const [at, character] of edits) {
            const place = at % (edited.length + 1);
            edited = edited.slice(0, place) + character + edited.slice(place + (at % 2));
          }
          const bytes = bytesOf(edited);
          let value: Json;
          try {
            value = parseStrictJson(bytes);
          } catch (error) {
            expect(error).toBeInstanceOf(JsonError);
            expect((error as JsonError).offset).toBeLessThanOrEqual(bytes.length);
            return;
          }
          expect(value).toEqual(parseJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
        },
      ),
      { numRuns: 400 },
    );
  });
});

describe("the canonical grammar", () => {
  const isCanonical = (bytes: Uint8Array): boolean => {
    try {
      new JsonScanner(bytes, JSON_DEPTH_MAX, "canonical").document();
      return true;
    } catch (error) {
      if (error instanceof JsonError) return false;
      throw error;
    }
  };

  const sameAgain = (bytes: Uint8Array): boolean => {
    try {
      return Buffer.from(canonicalJson(parseStrictJson(bytes))).equals(Buffer.from(bytes));
    } catch {
      return false;
    }
  };

  test.each([
    ' {"a":1}',
    '{"a": 1}',
    '{"b":1,"a":2}',
    '{"a":1,"a":2}',
    '{"\ufb33":1,"😀":2}',
    "-0",
    "1.0",
    "1e2",
    "1E-7",
    "1790000000000.10",
    "1790000000000.0",
    "1790000000000.0001",
    String.raw`"\/"`,
    String.raw`"\u0041"`,
    String.raw`"\u000F"`,
    String.raw`"\u000a"`,
    String.raw`"\ud83d\ude00"`,
  ])("refuses another spelling: %s", (text) => {
    expect(isCanonical(bytesOf(text))).toBe(false);
    expect(sameAgain(bytesOf(text))).toBe(false);
  });

  test("accepts exactly what encoding again leaves as it is", () => {
    const spellings = fc.oneof(
      fc.jsonValue({ stringUnit, depthSize: "xsmall" }).map((value) => bytesOf(canonicalJson(value as Json))),
      fc.json({ stringUnit, depthSize: "xsmall" }).map(bytesOf),
      fc.string().map((text) => bytesOf(JSON.stringify(text).replaceAll("a", String.raw`\u0061`))),
      fc.tuple(fc.nat(2 ** 43), fc.nat(9_999)).map(([whole, part]) => bytesOf(`${whole}.${part}`)),
      fc
        .tuple(fc.maxSafeInteger(), fc.nat(999))
        .map(([whole, part]) => bytesOf(`${whole}.${String(part).padStart(3, "0")}`)),
      fc.double().map((value) => bytesOf(String(value))),
    );
    fc.assert(
      fc.property(spellings, (bytes) => {
        expect(isCanonical(bytes)).toBe(sameAgain(bytes));
      }),
      { numRuns: 700 },
    );
  });

  test("times with microseconds are read as the platform reads them", () => {
    const times = fc.tuple(fc.integer({ min: 1, max: 2 ** 43 - 1 }), fc.nat(999));
    fc.assert(
      fc.property(times, ([whole, part]) => {
        const text = `${whole}.${String(part).padStart(3, "0")}`;
        expect(new JsonScanner(bytesOf(text), 1, "strict").number()).toBe(Number(text));
      }),
      { numRuns: 500 },
    );
  });
});
