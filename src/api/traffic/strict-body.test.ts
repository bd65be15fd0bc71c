import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseStrictJson } from "../../core/events/strict-json.ts";
import type { Json } from "../../core/kit/json.ts";
import { EVENT_DEPTH_MAX } from "../../core/kit/limits.ts";
import { Refusal } from "../refusal.ts";
import { parseBody } from "./strict-body.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const joined = (...parts: readonly (string | readonly number[])[]): Uint8Array =>
  Uint8Array.from(parts.flatMap((part) => (typeof part === "string" ? [...bytesOf(part)] : part)));

function problemOf(body: string | Uint8Array): string {
  try {
    return `accepted ${JSON.stringify(parseBody(typeof body === "string" ? bytesOf(body) : body))}`;
  } catch (error) {
    if (error instanceof Refusal && error.code === "BAD_REQUEST") return error.message;
    throw error;
  }
}

/** Names that meet each other, escapes, marks, all lengths of UTF-8. */
const name = fc.constantFrom("a", "b", "kind", "é", "😀", "\ufeffa", '"', "\\", "\n", "constructor", "toString", "7");
const text = fc.array(fc.constantFrom("a", "é", "€", "😀", '"', "\\", "\n", "\u0000", "\ufeff", "/"), { maxLength: 6 });
const { value } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom<Json>(null, true, false, 0, -1, 1.5, 1e-7, 2 ** 53 - 1),
    text.map((units) => units.join("")),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(name, tie("value"), { maxKeys: 5 }),
  ),
}));

/** As another writer might spell it: spaces, escapes of any letter, in either case. */
function spelt(json: Json, random: () => number): string {
  const space = (): string => ["", "", " ", "\n", "\t"][Math.floor(random() * 5)] as string;
  const letters = (from: string): string => {
    const units = Array.from({ length: from.length }, (_, at) => from.charCodeAt(at));
    const escaped = (unit: number): string => {
      const hex = unit.toString(16).padStart(4, "0");
      return `\\u${random() < 0.5 ? hex : hex.toUpperCase()}`;
    };
    const isAll = random() < 0.3;
    return isAll ? `"${units.map(escaped).join("")}"` : JSON.stringify(from);
  };
  if (typeof json === "string") return letters(json);
  if (typeof json !== "object" || json === null) return JSON.stringify(json);
  const inner = Array.isArray(json)
    ? json.map((one) => spelt(one, random))
    : Object.entries(json).map(([key, one]) => `${letters(key)}${space()}:${space()}${spelt(one, random)}`);
  const [open, close] = Array.isArray(json) ? ["[", "]"] : ["{", "}"];
  return `${open}${space()}${inner.join(`${space()},${space()}`)}${space()}${close}`;
}

const seeded = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => (state = (state * 1_664_525 + 1_013_904_223) >>> 0) / 2 ** 32;
};

describe("a body is refused, and the answer says where,", () => {
  it.each([
    ['{"a":1,"a":2}', "a key that occurs twice, at byte 7"],
    [String.raw`{"kind":"a","\u006bind":"b"}`, "a key that occurs twice, at byte 12"],
    ['{"jobs":[{"kind":"a"},{"kind":"a","payload":{"x":{"y":1,"y":1}}}]}', "a key that occurs twice, at byte 56"],
    ["\ufeff{}", "a value was expected, at byte 0"],
    [joined('{"a":"', [0xff], '"}'), "bytes that are not UTF-8, at byte 6"],
    [joined('{"a":"', [0xc0, 0xaf], '"}'), "bytes that are not UTF-8, at byte 6"],
    [joined('{"a":"', [0xe0, 0x80, 0xaf], '"}'), "bytes that are not UTF-8, at byte 6"],
    [joined('{"a":"', [0xed, 0xa0, 0x80], '"}'), "bytes that are not UTF-8, at byte 6"],
    [joined('{"a":"', [0xf4, 0x90, 0x80, 0x80], '"}'), "bytes that are not UTF-8, at byte 6"],
    [joined('{"a":"', [0xe2, 0x82], '"}'), "bytes that are not UTF-8, at byte 6"],
    [joined('{"a":1}', [0xc3]), "something follows the value, at byte 7"],
    [String.raw`{"a": "\ud83d"}`, "half of a surrogate pair, at byte 7"],
    [String.raw`{"\uD83D":1}`, "half of a surrogate pair, at byte 2"],
    ['{"a": 9007199254740993}', "a number beyond 2^53-1, at byte 6"],
    ["{", "it ends too early, at byte 1"],
    ["[".repeat(100_000), `nesting deeper than ${EVENT_DEPTH_MAX}, at byte ${EVENT_DEPTH_MAX}`],
    [" ".repeat(5), "it ends too early, at byte 5"],
    ['{"a":{"__proto__":{}}}', 'it names "__proto__"'],
    [String.raw`{"a":{"\u005F_proto__":{}}}`, 'it names "__proto__"'],
    [
      `{"a":${'{"x":'.repeat(40)}{"constructor" : {"prototype":1}}${"}".repeat(40)}}`,
      'it names "__proto__" or "constructor.prototype"',
    ],
    ["{a:1}", "a key was expected, at byte 1"],
    ["{} {}", "something follows the value, at byte 3"],
  ])("%#", (body, problem) => {
    expect(problemOf(body)).toContain(`The body is not taken as JSON: ${problem}`);
  });
});

describe("of any JSON", () => {
  it("what one writes is what is read, however it is spelt", () => {
    fc.assert(
      fc.property(value, fc.nat(), (json, seed) => {
        expect(parseBody(bytesOf(JSON.stringify(json)))).toEqual(json);
        expect(parseBody(bytesOf(spelt(json, seeded(seed))))).toEqual(json);
      }),
      { numRuns: 500 },
    );
  });

  it("a name that is given twice is refused, at any depth and in any spelling", () => {
    const twice = fc.tuple(fc.dictionary(name, value, { minKeys: 1, maxKeys: 4 }), value, fc.nat(), fc.nat(40));
    fc.assert(
      fc.property(twice, ([members, second, seed, depth]) => {
        const random = seeded(seed);
        const [first] = Object.keys(members) as [string];
        const again = Object.entries({ [first]: second }).map(([key, one]) => spelt({ [key]: one }, random).trim());
        const inside = `${spelt(members, random).slice(0, -1)},${(again[0] as string).slice(1)}`;
        const body = `${'{"d":['.repeat(depth / 2)}${inside}${"]}".repeat(depth / 2)}`;
        expect(problemOf(body)).toMatch(/a key that occurs twice, at byte \d+|nesting deeper/);
      }),
      { numRuns: 500 },
    );
  });

  it("bytes that were changed, cut or added are refused or read as the strict parser reads them, and nothing else happens", () => {
    const edit = fc.tuple(fc.nat(), fc.constantFrom("set", "cut", "add"), fc.nat(255));
    fc.assert(
      fc.property(value, fc.array(edit, { minLength: 1, maxLength: 3 }), (json, edits) => {
        let bytes = [...bytesOf(JSON.stringify(json))];
        for (const [where, how, byte] of edits) {
          const at = where % (bytes.length + 1);
          if (how === "set") bytes[at] = byte;
          else if (how === "add") bytes.splice(at, 0, byte);
          else bytes = bytes.slice(0, at);
        }
        const body = Uint8Array.from(bytes);
        const problem = problemOf(body);
        let strict: Json | undefined;
        try {
          strict = parseStrictJson(body, EVENT_DEPTH_MAX);
        } catch {
          strict = undefined;
        }
        if (strict === undefined) {
          // What the value still shows is the schema's to refuse, by the field's name.
          if (problem.startsWith("accepted")) expect(problem).toMatch(/\d{16}|e\+|\\ud/);
        } else expect(problem).toBe(`accepted ${JSON.stringify(strict)}`);
      }),
      { numRuns: 2_000 },
    );
  });
});
