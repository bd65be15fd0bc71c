// The shape and the bounds of a page, before anything in it is believed. Whether it continues a line, intake.ts says.
//
// Invariant: a page without a problem has 1 to PAGE_ITEMS_MAX items of PAGE_BYTES_MAX together, or one item of PAGE_ITEM_BYTES_MAX at
// most; its texts have no half of a surrogate pair, so that their UTF-8 is the bytes that the site hashed.

import { isHash } from "../../events/hex.ts";
import { INTEGER_MAX, UTF8_BYTES_PER_UNIT_MAX } from "../../kit/limits.ts";
import type { Page, PageItem } from "../model.ts";
import { NOTE_LENGTH_MAX, PAGE_BYTES_MAX, PAGE_ITEM_BYTES_MAX, PAGE_ITEMS_MAX, PAGE_SCRATCH_BYTES } from "./limits.ts";
import { isLineId } from "./line-id.ts";
import { hasExactly, isRecord } from "./ring.ts";

const PAGE_FIELDS = ["after", "checkpoint", "items", "line"];
const HASH_DIGITS = 64;
const textEncoder = new TextEncoder();
const scratch = new Uint8Array(PAGE_SCRATCH_BYTES);

/** Why this is not a page, or null: then it is a `Page`. */
export function pageProblem(page: unknown): string | null {
  if (!isRecord(page) || !hasExactly(page, PAGE_FIELDS))
    return "a page has the fields line, after, items and checkpoint";
  const { line, after, items, checkpoint } = page;
  if (!isLineId(line)) return "line is not the id of a line";
  if (!Number.isSafeInteger(after) || (after as number) < 0) return "after is not a sequence";
  if (typeof checkpoint !== "string" || checkpoint.length > NOTE_LENGTH_MAX) return "checkpoint is not a note";
  if (!Array.isArray(items) || items.length === 0 || items.length > PAGE_ITEMS_MAX)
    return `items are not 1 to ${PAGE_ITEMS_MAX}`;
  if ((after as number) > INTEGER_MAX - items.length) return "after is not a sequence";
  for (const [at, item] of (items as readonly unknown[]).entries()) {
    if (!isItem(item)) return `item ${at} is neither a text nor a hash`;
  }
  return boundsProblem(items as Page["items"]);
}

/** Bytes that an item counts for: of its text in UTF-8, or of its hash's digits. */
export function itemBytes(item: PageItem): number {
  return typeof item === "string" ? utf8Bytes(item) : HASH_DIGITS;
}

/** The bytes of a well-formed text, until the next call. */
export function bytesUntilNext(text: string): Uint8Array {
  if (text.length * UTF8_BYTES_PER_UNIT_MAX > scratch.length) return textEncoder.encode(text);
  return scratch.subarray(0, textEncoder.encodeInto(text, scratch).written);
}

function boundsProblem(items: Page["items"]): string | null {
  const bytesMax = items.length === 1 ? PAGE_ITEM_BYTES_MAX : PAGE_BYTES_MAX;
  let bytes = 0;
  for (const item of items) {
    bytes += itemBytes(item);
    if (bytes > bytesMax) return `items have more than ${bytesMax} bytes`;
  }
  return null;
}

function isItem(item: unknown): item is PageItem {
  if (typeof item === "string") return item.isWellFormed();
  return isRecord(item) && hasExactly(item, ["hash"]) && isHash(item["hash"]);
}

/** Of well-formed text. */
function utf8Bytes(text: string): number {
  // More units than bytes are allowed: how many bytes it has does not matter any more.
  if (text.length > PAGE_ITEM_BYTES_MAX) return text.length;
  // The platform counts ten times as fast as a loop here, and every page is counted.
  if (text.length * UTF8_BYTES_PER_UNIT_MAX <= scratch.length) return textEncoder.encodeInto(text, scratch).written;
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    // Each half of a surrogate pair is two bytes of its four.
    if (unit > 0x7f) bytes += unit > 0x7ff && (unit < 0xd800 || unit > 0xdfff) ? UTF8_BYTES_PER_UNIT_MAX - 1 : 1;
  }
  return bytes;
}
