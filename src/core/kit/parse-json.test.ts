// Keys with escapes, after the process has parsed whatever would make the platform take them for others.

import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import type { Json } from "./json.ts";
import { parseJson, withItsKeys } from "./parse-json.ts";

const UNITS = ["a", "b", "\\", '"', "\n", "\t", "\u0000", "/", "u", "0", "ﬀ", "\u{1f600}", "__proto__", ":", "{", ","];
const text = fc.string({ unit: fc.constantFrom(...UNITS), maxLength: 6 });

/** Keys of backslashes and letters, one after another in every order: the platform remembers them. */
beforeAll(() => {
  const keys = ["\\", "a\\", "b\\", "\\u", "a\\u", "a\\n", "aa\\", "ab\\"];
  for (const first of ["x", "a", "b", ...keys])
    for (const second of keys) JSON.parse(JSON.stringify({ [first]: 1, [second]: 2 }));
});

test("nodejs/node #63785: a key keeps its name, whatever was parsed before", () => {
  expect(Object.keys(parseJson(String.raw`{"x":1,"a\"":2}`) as object)).toEqual(["x", 'a"']);
  expect(Object.keys(parseJson(String.raw`{"x":1,"\t":2}`) as object)).toEqual(["x", "\t"]);
  expect(Object.keys(parseJson(String.raw`{"x" : 1, "a\u0022" : 2}`) as object)).toEqual(["x", 'a"']);
});

test("what is written is what is read, for any value and any spaces", () => {
  fc.assert(
    fc.property(
      fc.jsonValue({ stringUnit: fc.constantFrom(...UNITS) }),
      fc.constantFrom("", " ", "\t"),
      (value, space) => {
        const written = JSON.stringify(value, null, space);
        // Compared as text: nothing is parsed a second time.
        expect(JSON.stringify(parseJson(written), null, space)).toBe(written);
      },
    ),
    { seed: 63_785, numRuns: 2_000 },
  );
});

test("objects of such keys alone", () => {
  fc.assert(
    fc.property(fc.uniqueArray(text, { maxLength: 8 }), (keys) => {
      const written = `{${keys.map((key, i) => `${JSON.stringify(key)}:${i}`).join(",")}}`;
      const read = Object.entries(parseJson(written) as Record<string, Json>);
      expect(new Map(read)).toEqual(new Map(keys.map((key, i) => [key, i])));
    }),
    { seed: 63_785, numRuns: 2_000 },
  );
});

test("__proto__ is a key like any other, and of two equal keys the last counts, where the first stood", () => {
  const read = parseJson(String.raw`{"\"":0,"__proto__":{"a":1},"b":1,"\"":2}`) as Record<string, Json>;
  expect(Object.entries(read)).toEqual([
    ['"', 2],
    ["__proto__", { a: 1 }],
    ["b", 1],
  ]);
  expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
});

test("of keys that are spelt in several ways the last counts too", () => {
  for (const [text, value] of [
    [String.raw`{"a":1,"\u0061":2,"a":3,"\"":0}`, { a: 3, '"': 0 }],
    [String.raw`{"\u0061":1,"a":2,"\"":0,"\u0022":1}`, { a: 2, '"': 1 }],
  ] as const) {
    expect(parseJson(text)).toEqual(value);
  }
});

test("a text may have the names that are made up here, in whatever spelling", () => {
  const text = String.raw`{"~0~":1,"\u007e1~":2,"\"":3,"\\":["~2~",{"\t":4,"~3~":5}]}`;
  expect(parseJson(text)).toEqual({ "~0~": 1, "~1~": 2, '"': 3, "\\": ["~2~", { "\t": 4, "~3~": 5 }] });
});

test("a byte order mark that somebody has passed over already is passed over here", () => {
  const text = String.raw`{"a\"":1}`;
  expect(withItsKeys(`\ufeff${text}`, JSON.parse(text))).toEqual({ 'a"': 1 });
});

test("depth costs no stack", () => {
  const depth = 200_000;
  let read = parseJson(`${'{"\\"":'.repeat(depth)}1${"}".repeat(depth)}`);
  for (let i = 0; i < depth; i++) read = (read as Record<string, Json>)['"']!;
  expect(read).toBe(1);
});

test("what is no JSON is refused as the platform refuses it", () => {
  for (const wrong of ["", "{", '{"\\":1}', '{"a\\"":}', '["\\x"]', '"\\', '{"\\"":1}}']) {
    expect(() => parseJson(wrong), wrong).toThrow(SyntaxError);
  }
});
