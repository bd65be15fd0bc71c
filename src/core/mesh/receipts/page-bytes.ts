// A page in binary form, as records and receipts carry it:
//
//   line text | after uint53 | count u32 | items | checkpoint text
//   item = 0, text | 1, hash of 32 bytes
//
// Invariant: one page has one encoding. The texts of items stay bytes where nobody asks for them: applying a page parses no event.

import { bytesOfHash, HASH_BYTES, hexOf } from "../../events/hex.ts";
import { ByteReader, ByteWriter, DecodeError } from "../../kit/bytes.ts";
import type { LineId, Page, PageItem } from "../model.ts";
import { itemBytes, PAGE_ITEM_BYTES_MAX, PAGE_ITEMS_MAX } from "../proof/index.ts";
import { CHECKPOINT_BYTES_MAX, LINE_NAME_BYTES_MAX } from "./limits.ts";

const ITEM_TEXT = 0;
const ITEM_HASH = 1;
const ITEM_HEAD_BYTES = 5;
const PAGE_HEAD_BYTES = 256;

/** An event's canonical bytes, or the hash of one that is withheld. */
export type HeldItem = { readonly bytes: Uint8Array } | { readonly hash: string };

/** A page whose texts are views of the bytes that it was read from. */
export interface HeldPage {
  readonly line: LineId;
  readonly after: number;
  readonly items: readonly HeldItem[];
  readonly checkpoint: string;
}

export function encodePage(page: Page): Uint8Array {
  const bytes = page.items.reduce((sum, item) => sum + ITEM_HEAD_BYTES + itemBytes(item), PAGE_HEAD_BYTES);
  const writer = new ByteWriter(bytes + page.checkpoint.length);
  writer.text(page.line);
  writer.uint53(page.after);
  writer.u32(page.items.length);
  for (const item of page.items) writeItem(writer, item);
  writer.text(page.checkpoint);
  return writer.finish();
}

function writeItem(writer: ByteWriter, item: PageItem): void {
  if (typeof item === "string") {
    writer.u8(ITEM_TEXT);
    writer.text(item);
  } else {
    writer.u8(ITEM_HASH);
    writer.bytes(bytesOfHash(item.hash));
  }
}

/** Throws a DecodeError. */
export function decodePage(bytes: Uint8Array): HeldPage {
  const reader = new ByteReader(bytes);
  const [line, after, count] = [reader.text(LINE_NAME_BYTES_MAX), reader.uint53(), reader.u32()];
  if (count === 0 || count > PAGE_ITEMS_MAX) throw new DecodeError("malformed", `a page of ${count} items`);
  const items = Array.from({ length: count }, () => readItem(reader));
  const checkpoint = reader.text(CHECKPOINT_BYTES_MAX);
  if (reader.remainingBytes > 0) throw new DecodeError("malformed", "bytes follow a page");
  return { line, after, items, checkpoint };
}

function readItem(reader: ByteReader): HeldItem {
  const kind = reader.u8();
  if (kind === ITEM_TEXT) return { bytes: reader.bytes(PAGE_ITEM_BYTES_MAX) };
  if (kind !== ITEM_HASH) throw new DecodeError("malformed", `an item of kind ${kind}`);
  return { hash: readHash(reader) ?? missingHash() };
}

function missingHash(): never {
  throw new DecodeError("malformed", "an item without a hash");
}

/** As 64 digits; null for no bytes. */
export function readHash(reader: ByteReader): string | null {
  const hash = reader.bytes(HASH_BYTES);
  if (hash.length === 0) return null;
  if (hash.length !== HASH_BYTES) throw new DecodeError("malformed", "a hash");
  return hexOf(hash);
}

export function writeHash(writer: ByteWriter, hash: string | null): void {
  writer.bytes(hash === null ? new Uint8Array(0) : bytesOfHash(hash));
}

const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The same with texts, for whoever sends it on. */
export function pageOf({ line, after, items, checkpoint }: HeldPage): Page {
  const texts = items.map((item) => ("hash" in item ? { hash: item.hash } : textDecoder.decode(item.bytes)));
  return { line, after, items: texts, checkpoint };
}
