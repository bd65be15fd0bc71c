import { describe, expect, test } from "vitest";
import { DECISION_BYTES_MAX } from "../../../controller/journal/limits.ts";
import type { PageItem } from "../model.ts";
import { NOTE_LENGTH_MAX, PAGE_BYTES_MAX, PAGE_ITEM_BYTES_MAX, PAGE_ITEMS_MAX } from "./limits.ts";
import { itemBytes, pageProblem } from "./page.ts";

const HASH = "0".repeat(64);
const pageOf = (items: readonly PageItem[], more: object = {}): object => ({
  line: `site-a.${"0".repeat(32)}`,
  after: 0,
  items,
  checkpoint: "note",
  ...more,
});
const problemOf = (items: readonly PageItem[], more?: object): string | null => pageProblem(pageOf(items, more));

describe("a page's bounds, at the limit and one past it:", () => {
  test("items", () => {
    expect(problemOf(Array.from({ length: PAGE_ITEMS_MAX }, () => "x"))).toBeNull();
    expect(problemOf(Array.from({ length: PAGE_ITEMS_MAX + 1 }, () => "x"))).toBe("items are not 1 to 512");
    expect(problemOf([])).toBe("items are not 1 to 512");
  });

  test.each(["x", "é", "€", "😀"])("bytes of several items, made of %s", (letter) => {
    const bytes = Buffer.byteLength(letter);
    const half = letter.repeat(PAGE_BYTES_MAX / 2 / bytes);
    const rest = "x".repeat(PAGE_BYTES_MAX - Buffer.byteLength(half));
    expect(problemOf([half, rest])).toBeNull();
    expect(problemOf([half, `${rest}x`])).toBe(`items have more than ${PAGE_BYTES_MAX} bytes`);
    expect(problemOf([half, rest, { hash: HASH }])).toBe(`items have more than ${PAGE_BYTES_MAX} bytes`);
  });

  test("bytes of a single item: the largest event that a journal writes", () => {
    expect(PAGE_ITEM_BYTES_MAX).toBe(DECISION_BYTES_MAX);
    expect(problemOf(["x".repeat(PAGE_ITEM_BYTES_MAX)])).toBeNull();
    expect(problemOf(["x".repeat(PAGE_ITEM_BYTES_MAX + 1)])).toBe(`items have more than ${PAGE_ITEM_BYTES_MAX} bytes`);
    expect(problemOf(["x".repeat(PAGE_ITEM_BYTES_MAX), "x"])).toBe(`items have more than ${PAGE_BYTES_MAX} bytes`);
  });

  test("the note and the sequence", () => {
    expect(problemOf(["x"], { checkpoint: "x".repeat(NOTE_LENGTH_MAX) })).toBeNull();
    expect(problemOf(["x"], { checkpoint: "x".repeat(NOTE_LENGTH_MAX + 1) })).toBe("checkpoint is not a note");
    expect(problemOf(["x"], { after: Number.MAX_SAFE_INTEGER - 1 })).toBeNull();
    expect(problemOf(["x"], { after: Number.MAX_SAFE_INTEGER })).toBe("after is not a sequence");
  });
});

describe("an item", () => {
  test.each([
    ["x", 1],
    ["é€😀", 9],
    [{ hash: HASH }, 64],
  ] as const)("%j counts its bytes", (item, bytes) => {
    expect(itemBytes(item)).toBe(bytes);
  });

  test.each([null, 1, ["x"], {}, { hash: 1 }, { hash: HASH, more: 1 }, { hash: `${HASH}0` }, "\ud800", "\udc00x"])(
    "%j is none",
    (item) => {
      expect(problemOf(["x", item as PageItem])).toBe("item 1 is neither a text nor a hash");
    },
  );
});
