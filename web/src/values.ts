// Values as they are shown: their size, and their content as text. Pure.

import type { Json, StoredValue } from "../../src/client/index.ts";

export interface ListedValue extends StoredValue {
  /** Of its content, as the servers keep it. */
  readonly bytes: number;
}

/** Indented, 64 KiB of short items deep inside are more than a megabyte. */
const INDENTED_LETTERS_MAX = 256 * 1_024;
/** What has no shape of its own, or turns the text around it: as a string literal may hold it only inside of quotes, its escape is the same JSON. */
const UNSEEN = new RegExp(String.raw`[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]`, "g");
const encoder = new TextEncoder();

/** Measured once for each answer, not each time that it is drawn. */
export function measured(value: StoredValue): ListedValue {
  return { ...value, bytes: encoder.encode(JSON.stringify(value.value)).length };
}

/** All of it: on lines of their own, or on one where those would be too many. */
export function contentText(value: Json): string {
  const indented = JSON.stringify(value, null, 2);
  const text = indented.length <= INDENTED_LETTERS_MAX ? indented : JSON.stringify(value);
  return text.replaceAll(UNSEEN, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
