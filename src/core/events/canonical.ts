// Canonical JSON (RFC 8785): one value has one text. Keys are sorted by UTF-16 code units, numbers and strings are written
// as ECMAScript writes them, nothing stands between the tokens. What is hashed and stored is made here, once, when an event
// is sealed; nothing is ever canonicalised in order to check a hash (trap 57).
//
// Invariants:
// - What it can't say for certain it refuses with EVENT_INVALID: NaN, infinities, lone surrogates, `undefined` and other
//   things that are not JSON, nesting past EVENT_DEPTH_MAX (so also cycles).
// - With `numberMax` at INTEGER_MAX its text is always accepted by the strict parser of this room.

import { TenureError } from "../kit/errors.ts";
import type { Json } from "../kit/json.ts";
import { EVENT_DEPTH_MAX } from "../kit/limits.ts";
import { NAME_TEXTS_MAX, NAME_TEXT_LENGTH_MAX } from "./limits.ts";

/** What can't stand between quotes as it is. A surrogate can, in a pair: it takes the slow way, which looks. */
// oxlint-disable-next-line no-control-regex -- the control characters are what is looked for
const NEEDS_CARE = /["\\\u0000-\u001f\ud800-\udfff]/;

/**
 * `numberMax`: the largest magnitude that is accepted; the RFC takes every finite number. `depth`: how deep the value stands
 * in what it is written into, 1 for nothing around it.
 */
export function canonicalJson(value: Json, numberMax = Number.MAX_VALUE, depth = 1): string {
  return isInOrder(value, numberMax, depth) ? JSON.stringify(value) : textOf(value, numberMax, depth);
}

export function canonicalString(value: string): string {
  if (!NEEDS_CARE.test(value)) return `"${value}"`;
  // The platform would escape it, and no reader could tell which of the two spellings was meant.
  if (!value.isWellFormed())
    throw refusal(`a text with half of a surrogate pair (${JSON.stringify(value.slice(0, 40))})`);
  return JSON.stringify(value);
}

/**
 * Whether the platform's own text is the canonical one: plain JSON with its keys in order already, as our own events have them.
 * It is made in half the time. What is not so, for whatever reason, is written, or refused, piece by piece.
 */
function isInOrder(value: Json, numberMax: number, depth: number): boolean {
  switch (typeof value) {
    case "string":
      return value.isWellFormed();
    case "number":
      return Math.abs(value) <= numberMax;
    case "boolean":
      return true;
    case "object":
      if (value === null) return true;
      if (depth > EVENT_DEPTH_MAX) return false;
      return isArray(value) ? areInOrder(value, numberMax, depth) : hasOrder(value, numberMax, depth);
    default:
      return false;
  }
}

function areInOrder(items: readonly Json[], numberMax: number, depth: number): boolean {
  for (let at = 0; at < items.length; at++) if (!isInOrder(items[at] as Json, numberMax, depth + 1)) return false;
  return true;
}

function hasOrder(members: { readonly [key: string]: Json }, numberMax: number, depth: number): boolean {
  // Others may have a text of their own making (`toJSON`).
  if (Object.getPrototypeOf(members) !== Object.prototype) return false;
  let last = "";
  for (const key in members) {
    if (key < last || !key.isWellFormed() || !Object.hasOwn(members, key)) return false;
    if (!isInOrder(members[key] as Json, numberMax, depth + 1)) return false;
    last = key;
  }
  return true;
}

/** `depth`: of the arrays and objects around what is in `value`, itself included. */
function textOf(value: Json, numberMax: number, depth: number): string {
  switch (typeof value) {
    case "string":
      return canonicalString(value);
    case "number":
      // Written so that NaN fails too.
      if (!(Math.abs(value) <= numberMax)) throw refusal(`the number ${value}`);
      return String(value);
    case "boolean":
      return value ? "true" : "false";
    case "object":
      if (value === null) return "null";
      if (depth > EVENT_DEPTH_MAX) throw refusal(`nesting deeper than ${EVENT_DEPTH_MAX}`);
      return isArray(value) ? arrayText(value, numberMax, depth) : objectText(value, numberMax, depth);
    default:
      throw refusal(`a value of the type ${typeof value}`);
  }
}

function arrayText(items: readonly Json[], numberMax: number, depth: number): string {
  let text = "[";
  for (let at = 0; at < items.length; at++) {
    if (at > 0) text += ",";
    text += textOf(items[at] as Json, numberMax, depth + 1);
  }
  return `${text}]`;
}

function objectText(members: { readonly [key: string]: Json }, numberMax: number, depth: number): string {
  const keys = Object.keys(members);
  if (!areSorted(keys)) keys.sort();
  let text = "{";
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at] as string;
    if (at > 0) text += ",";
    text += (nameTexts.get(key) ?? nameText(key)) + textOf(members[key] as Json, numberMax, depth + 1);
  }
  return `${text}}`;
}

const nameTexts = new Map<string, string>();

function nameText(key: string): string {
  const text = `${canonicalString(key)}:`;
  if (nameTexts.size >= NAME_TEXTS_MAX) nameTexts.clear();
  if (key.length <= NAME_TEXT_LENGTH_MAX) nameTexts.set(key, text);
  return text;
}

function areSorted(keys: readonly string[]): boolean {
  for (let at = 1; at < keys.length; at++) if ((keys[at - 1] as string) > (keys[at] as string)) return false;
  return true;
}

/** `Array.isArray` does not narrow a read-only array. */
function isArray(value: readonly Json[] | { readonly [key: string]: Json }): value is readonly Json[] {
  return Array.isArray(value);
}

function refusal(what: string): TenureError {
  return new TenureError(
    "EVENT_INVALID",
    `an event can't hold ${what}: it has no canonical JSON (RFC 8785) that is read back as the same value. Send another value.`,
  );
}
