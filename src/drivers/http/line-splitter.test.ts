import { expect, test } from "vitest";
import { LineSplitter } from "./line-splitter.ts";

const bytes = new TextEncoder();

test("lines come out whole, wherever the network cut them", () => {
  const text = '{"a":"ü€😀"}\n\n{"b":1}\r\n{"c"';
  const whole = bytes.encode(text);
  for (let size = 1; size <= whole.length; size++) {
    const splitter = new LineSplitter(1_024);
    const lines: string[] = [];
    for (let at = 0; at < whole.length; at += size) lines.push(...splitter.push(whole.subarray(at, at + size)));
    expect(lines.map((line) => line.trim())).toEqual(['{"a":"ü€😀"}', '{"b":1}']);
    expect(splitter.push(bytes.encode(":2}\n"))).toEqual(['{"c":2}']);
  }
});

test("a line may be as long as the bound, and not longer", () => {
  const fits = new LineSplitter(4);
  expect(fits.push(bytes.encode("abcd\nefgh\n"))).toEqual(["abcd", "efgh"]);
  expect(fits.push(bytes.encode("ab"))).toEqual([]);
  expect(() => fits.push(bytes.encode("cde"))).toThrow("more than 4 bytes");
});
