// What our schemas are made of: objects that refuse unknown fields, texts bounded in bytes, integers that a double holds.

import { Type, type TEnum, type TProperties, type TSchema } from "typebox";
import { INTEGER_MAX } from "../core/kit/limits.ts";

const encoder = new TextEncoder();

export function strict<Properties extends TProperties>(properties: Properties) {
  return Type.Object(properties, { additionalProperties: false });
}

/** As electors take it: a lone surrogate becomes U+FFFD in UTF-8, and two names would become one. */
export function text(bytesMax: number, lengthMin = 1) {
  return Type.Refine(
    // The first bound is cheap and keeps the refinement from looking at megabytes.
    Type.String({ minLength: lengthMin, maxLength: bytesMax }),
    (value: string) => value.isWellFormed() && !value.includes("\0") && encoder.encode(value).length <= bytesMax,
    () => `must be well-formed text without NUL, of at most ${bytesMax} bytes`,
  );
}

export function integer(minimum: number, maximum: number = INTEGER_MAX) {
  return Type.Integer({ minimum, maximum });
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
    (value: Record<string, string>) => isWellFormed(value) && encoder.encode(JSON.stringify(value)).length <= bytesMax,
    () => `must be well-formed texts without NUL, of at most ${bytesMax} bytes as JSON`,
  );
}

function isWellFormed(value: Record<string, string>): boolean {
  // The schema looks only at values whose names have no line terminator: its pattern is `^.*$`.
  return Object.entries(value).every((pair: readonly unknown[]) =>
    pair.every((one) => typeof one === "string" && one.isWellFormed() && !one.includes("\0")),
  );
}
