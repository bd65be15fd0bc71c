// What a call sends, looked at before a handler works with it: all its mistakes at once.

import { describeMistakes, type FieldErrors, type Shape } from "../contract/index.ts";
import type { ErrorCode } from "../core/kit/errors.ts";
import { Refusal } from "./refusal.ts";

/** Throws BAD_REQUEST with every field that is wrong, or the code of the first one. */
export function checked(shape: Shape, value: unknown, whole: string, codes: FieldErrors = {}): unknown {
  const result = shape.check(value);
  if (result.ok) return result.value;
  const [first] = result.mistakes;
  const field = first === undefined || first.field === "" ? whole.replace(/^the /, "") : first.field;
  throw new Refusal(codeOf(codes, field, value), sentence(describeMistakes(result.mistakes, whole)), { field });
}

/** Of the first mistake; the message has all. An empty text or null is no value. */
function codeOf(codes: FieldErrors, field: string, value: unknown): ErrorCode {
  const name = /^[^.[]*/.exec(field)![0];
  if (!Object.hasOwn(codes, name)) return "BAD_REQUEST";
  const given = (value as Readonly<Record<string, unknown>>)[name] ?? "";
  return codes[name]![given === "" ? 0 : 1];
}

function sentence(text: string): string {
  return text.startsWith("the ") ? `T${text.slice(1)}` : text;
}
