// Mistakes as people read them: with and without what was found.

import { Type } from "typebox";
import { describe, expect, it } from "vitest";
import { foundText } from "./found.ts";
import { oneOf, strict } from "./schema-kit.ts";
import { describeMistakes, either, listMistakes, oneOfKinds, type Shape, shape, shapeShown } from "./shape.ts";

const SCHEMA = strict({
  name: Type.String({ minLength: 1 }),
  key: Type.Optional(Type.String({ maxLength: 3 })),
  level: Type.Optional(oneOf("low", "high")),
});
const closed = shape(SCHEMA);
const open = shape(SCHEMA, (field) => field !== "key");

function told(value: unknown, by: Shape = open): string[] {
  const checked = by.check(value);
  return checked.ok ? [] : checked.mistakes.map(({ field, message }) => `${field} ${message}`);
}

describe("a shape", () => {
  it("tells what was found where its user says that it may", () => {
    expect(told({ name: 3, level: "loud" })).toEqual([
      "name must be a text, found 3",
      'level must be one of low, high, found "loud"',
    ]);
    expect(told({ name: 3, level: "loud" }, closed)).toEqual(["name must be a text", "level must be one of low, high"]);
  });

  it("never tells what stands where a secret does", () => {
    expect(told({ name: "a", key: "geheim" })).toEqual(["key must have at most 3 bytes, found a text of 6 characters"]);
    expect(told({ name: "a", key: 4_711 })).toEqual(["key must be a text, found a number"]);
  });

  it("tells what is expected of what is missing, and which names there are", () => {
    expect(told({ frobnicate: 1 })).toEqual([
      "frobnicate is not known: expected name, key, level",
      "name is missing: expected a text",
    ]);
    expect(told({ frobnicate: 1 }, closed)).toEqual(["frobnicate is not known", "name is missing"]);
    expect(told({ nam: "a" })[0]).toBe("nam is not known; did you mean name?");
    expect(told({ name: "" })).toEqual(["name must not be empty"]);
  });

  it("names unknown fields also where there are more than the checker looks for", () => {
    const many = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`x/${at}`, 1]));
    for (const one of [open, closed]) {
      const found = told({ name: "a", ...many }, one);
      expect(found.length).toBeGreaterThanOrEqual(8);
      expect(found[0]).toMatch(/^x\/0 is not known/);
    }
  });
});

it("one mistake is a sentence, several are a line each", () => {
  const one = { field: "a", message: "is missing" };
  const two = { field: "", message: "is not known; did you mean b?" };
  expect(listMistakes("It is wrong:", [one], "Look.")).toBe("It is wrong: a is missing. Look.");
  expect(listMistakes("It is wrong:", [one, two], "Look.")).toBe(
    "It is wrong:\n  a is missing\n  the file is not known; did you mean b?\nLook.",
  );
});

it.each<[unknown, string]>([
  ["a", '"a"'],
  ["\u001B[31m", '"?[31m"'],
  ["x".repeat(81), "a text of 81 characters"],
  ["http://u:p@h", "a text of 12 characters"],
  [Number.NEGATIVE_INFINITY, "-inf"],
  [Number.NaN, "nan"],
  [null, "null"],
  [[1], "a list"],
  [{}, "an object"],
  [undefined, "nothing"],
  [Symbol("a date"), "a date"],
])("found: %o", (value, text) => expect(foundText(value, true)).toBe(text));

describe("one of two objects", () => {
  const one = strict({ id: Type.String(), sequence: Type.Number(), at: Type.Number() });
  const many = strict({ controller: Type.String(), heads: Type.Optional(Type.Number()) });
  const both = either(one, many, "controller", "one event");
  const said = (value: unknown): string => {
    const checked = both.check(value);
    return checked.ok ? "" : describeMistakes(checked.mistakes, "the body");
  };

  it("that is empty, or has fields of both, is told once which two there are", () => {
    expect(said({})).toBe("the body is empty: send either one event or `controller`.");
    expect(said({ id: "a", sequence: 1, at: 1, controller: "x" })).toBe(
      "id can't be sent together with controller: send either one event or `controller`.",
    );
  });

  it("that has fields of one of them alone has the mistakes of that one", () => {
    expect(said({ heads: 1 })).toBe("controller is missing.");
    expect(said({ id: "a" })).toBe("sequence is missing; at is missing.");
    expect(said({ constructor: 1 })).toMatch(/^constructor is not known; id is missing/);
    expect(said({ id: "a", sequence: 1, at: 1 })).toBe("");
    expect(said({ controller: "a" })).toBe("");
  });
});

describe("one of several kinds", () => {
  const put = strict({ op: oneOf("put"), name: Type.String(), value: Type.Number() });
  const drop = strict({ op: oneOf("drop"), name: Type.String() });
  const list = (one: Parameters<typeof Type.Array>[0]) => strict({ all: Type.Array(one) });
  const kinds = shapeShown(list(oneOfKinds("op", put, drop)), list(Type.Union([put, drop])));
  const said = (all: unknown): string[] => told({ all }, kinds);

  it("is taken as its kind has it, and shown with all kinds", () => {
    expect(
      said([
        { op: "put", name: "a", value: 1 },
        { op: "drop", name: "a" },
      ]),
    ).toEqual([]);
    expect(JSON.stringify(kinds.schema)).toContain('"anyOf"');
  });

  it("has the mistakes of its own kind, at its own place", () => {
    const drops = { op: "drop", name: "a" };
    expect(said([drops, { op: "put", name: 5 }])).toEqual(["all[1] is no put: value is missing; name must be a text"]);
    expect(said([{ ...drops, value: 1 }])).toEqual(["all[0] is no drop: value is not known"]);
    // The same one again: it is not looked at anew.
    const wrong = { op: "drop" };
    expect([said([wrong]), said([wrong])]).toEqual([
      ["all[0] is no drop: name is missing"],
      ["all[0] is no drop: name is missing"],
    ]);
  });

  it("that is of no known kind is told which there are", () => {
    for (const op of ["take", "constructor", 5, null])
      expect(said([{ op }])).toEqual(["all[0].op must be one of put, drop"]);
    expect(said([{}])).toEqual(["all[0].op is missing"]);
    for (const one of [5, null, "put", []]) expect(said([one])).toEqual(["all[0] must be an object"]);
  });
});
