// What our schemas are made of: objects that refuse unknown fields, texts bounded in bytes, integers that a double holds.

import { Type, type TEnum, type TProperties, type TSchema } from "typebox";
import type { Json } from "../core/kit/json.ts";
import { INTEGER_MAX, JSON_BYTES_PER_UNIT_MAX, UTF8_BYTES_PER_UNIT_MAX } from "../core/kit/limits.ts";
import { jsonMistake } from "./json-value.ts";

const encoder = new TextEncoder();
/** Quotes, colon and comma of a name and its value. */
const PAIR_JSON_BYTES = 6;

export function strict<Properties extends TProperties>(properties: Properties) {
  return Type.Object(properties, { additionalProperties: false });
}

/** As electors take it: a lone surrogate becomes U+FFFD in UTF-8, and two names would become one. */
export function text(bytesMax: number, lengthMin = 1) {
  return Type.Refine(
    // The first bound is cheap and keeps the refinement from looking at megabytes.
    Type.String({ minLength: lengthMin, maxLength: bytesMax }),
    (value: string) => value.isWellFormed() && !value.includes("\0") && fits(value, bytesMax),
    () => `must be well-formed text without NUL, of at most ${bytesMax} bytes`,
  );
}

/** What programs print and throw: it may hold anything but half a surrogate pair. */
export function prose(bytesMax: number, lengthMin = 1) {
  return Type.Refine(
    Type.String({ minLength: lengthMin, maxLength: bytesMax }),
    (value: string) => value.isWellFormed() && fits(value, bytesMax),
    () => `must be well-formed text of at most ${bytesMax} bytes`,
  );
}

export function integer(minimum: number, maximum: number = INTEGER_MAX) {
  return Type.Integer({ minimum, maximum });
}

/** The user's own JSON, as it can be stored and hashed: see json-value.ts. */
export function json(bytesMax: number) {
  return Type.Refine(
    Type.Unsafe<Json>(Type.Unknown()),
    (value: unknown) => jsonMistake(value, bytesMax) === null,
    (value: unknown) => jsonMistake(value, bytesMax) ?? "must be JSON",
  );
}

/** `wanted` completes "must be …" where the pattern does not match. */
export function matching(pattern: RegExp, wanted: string) {
  return Type.String({ pattern: pattern.source, wanted });
}

export function oneOf<const Values extends readonly string[]>(...values: Values): TEnum<[...Values]> {
  return Type.Enum([...values]) as TEnum<[...Values]>;
}

export function nullable<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()]);
}

/** A map of the user's own names to texts. */
export function texts(entriesMax: number, bytesMax: number) {
  return Type.Refine(
    Type.Record(Type.String(), Type.String({ maxLength: bytesMax }), { maxProperties: entriesMax }),
    (value: Record<string, string>) => isWellFormed(value) && textsFit(value, bytesMax),
    () => `must be well-formed texts without NUL, of at most ${bytesMax} bytes as JSON`,
  );
}

function isWellFormed(value: Record<string, string>): boolean {
  // The schema looks only at values whose names have no line terminator: its pattern is `^.*$`.
  return Object.keys(value).every((name) => isText(name) && isText(value[name]));
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value.isWellFormed() && !value.includes("\0");
}

/** Most are far below the bound: only the others are written out to be measured. */
function fits(value: string, bytesMax: number): boolean {
  return value.length * UTF8_BYTES_PER_UNIT_MAX <= bytesMax || encoder.encode(value).length <= bytesMax;
}

function textsFit(value: Record<string, string>, bytesMax: number): boolean {
  let atMost = 2;
  for (const name of Object.keys(value)) {
    atMost += PAIR_JSON_BYTES + (name.length + (value[name]?.length ?? 0)) * JSON_BYTES_PER_UNIT_MAX;
  }
  return atMost <= bytesMax || encoder.encode(JSON.stringify(value)).length <= bytesMax;
}
