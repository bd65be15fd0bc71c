// Reads single values out of payloads that other sites wrote: any of them may be missing, of another type, or huge. Nothing here throws;
// what is not as it should be is null, and what is too long is cut.

import type { Json } from "../../kit/json.ts";

type Members = { readonly [key: string]: Json };

const NOTHING: Members = {};

/** An empty object for whatever is none. */
export function objectOf(value: Json | undefined): Members {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : NOTHING;
}

/** Own members only: `payload.constructor` of a payload without one is no value. */
export function member(members: Members, key: string): Json | undefined {
  return Object.hasOwn(members, key) ? members[key] : undefined;
}

export function textOf(value: Json | undefined, lengthMax: number): string | null {
  return typeof value === "string" ? cut(value, lengthMax) : null;
}

/** A whole number from `min` on. */
export function integerOf(value: Json | undefined, min: number): number | null {
  return Number.isSafeInteger(value) && (value as number) >= min ? (value as number) : null;
}

/** A positive number of milliseconds. */
export function timeOf(value: Json | undefined): number | null {
  return typeof value === "number" && value > 0 && value <= Number.MAX_SAFE_INTEGER ? value : null;
}

export function textsOf(value: Json | undefined, countMax: number, lengthMax: number): readonly string[] {
  if (!Array.isArray(value)) return [];
  const texts: string[] = [];
  for (const one of value as readonly Json[]) {
    if (texts.length >= countMax) break;
    if (typeof one === "string") texts.push(cut(one, lengthMax));
  }
  return texts;
}

/** As pairs in the order of their names: an object could have a member `__proto__`, and its order is the sender's. */
export function labelsOf(
  value: Json | undefined,
  countMax: number,
  lengthMax: number,
): readonly (readonly [string, string])[] {
  const pairs: (readonly [string, string])[] = [];
  for (const [name, label] of Object.entries(objectOf(value))) {
    if (typeof label === "string") pairs.push([cut(name, lengthMax), cut(label, lengthMax)]);
  }
  return pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).slice(0, countMax);
}

/** A cut may part a surrogate pair, and half of one has no canonical JSON. */
function cut(text: string, lengthMax: number): string {
  return (text.length > lengthMax ? text.slice(0, lengthMax) : text).toWellFormed();
}
