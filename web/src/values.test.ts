import fc from "fast-check";
import { expect, it } from "vitest";
import type { Json } from "../../src/client/index.ts";
import { contentText, measured } from "./values.ts";

it("the content that is shown is the same JSON, whatever it is, and all of it", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(JSON.parse(contentText(value as Json))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

it("lines are indented, unless they would be more than a page should hold", () => {
  expect(contentText({ at: 1, of: [true] })).toBe('{\n  "at": 1,\n  "of": [\n    true\n  ]\n}');
  let deep: Json = Array.from({ length: 20_000 }, () => 0);
  for (let depth = 0; depth < 30; depth++) deep = [deep];
  expect(contentText(deep)).toBe(JSON.stringify(deep));
});

it("what can't be seen, or would turn the line around, is shown as its escape", () => {
  expect(contentText("a\u202eb\u200b\u2028\u0085 é 😀")).toBe(String.raw`"a\u202eb\u200b\u2028\u0085 é 😀"`);
});

it("its size is that of the bytes that are kept", () => {
  const value = { name: "a", value: { ä: "😀" }, version: 1, updatedAtMs: 0 };
  expect(measured(value).bytes).toBe(13);
});
