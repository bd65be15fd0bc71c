// A schema that was compiled, and mistakes as people read them: each names its field and says what is wanted. All of
// a value's mistakes are told at once, up to a bound; none repeats the value, which may be a secret or a megabyte.

import { type Static, type TObject, type TSchema, Type } from "typebox";
import { Compile } from "typebox/compile";
import { sentenceEnd, suggestion } from "../core/kit/suggestion.ts";

const MISTAKES_MAX = 16;
const FIELD_LENGTH_MAX = 128;

export interface Mistake {
  /** `keys[0].name`; empty for the value itself. */
  readonly field: string;
  readonly message: string;
}

export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly mistakes: Mistake[] };

export interface Shape<T = unknown> {
  readonly schema: TSchema;
  check(value: unknown): Checked<T>;
}

/** What is typed `T` after a check of a `Shape<T>`. */
export type ValueOf<S> = S extends Shape<infer T> ? T : never;

export function shape<Schema extends TSchema>(schema: Schema): Shape<Static<Schema>> {
  const compiled = Compile(schema);
  return {
    schema,
    check: (value) =>
      compiled.Check(value) ? { ok: true, value } : { ok: false, mistakes: explain(schema, compiled.Errors(value)) },
  };
}

/**
 * One of two objects, told apart by a field that only the second has: so that mistakes are those of the one that is meant.
 * `oneName` says what the first is, to whoever sends both at once.
 */
export function either<One extends TObject, Many extends TObject>(
  one: One,
  many: Many,
  field: string,
  oneName: string,
): Shape<Static<One> | Static<Many>> {
  const shapes = { one: shape(one), many: shape(many) };
  return {
    schema: Type.Union([one, many]),
    check: (value) => {
      if (typeof value !== "object" || value === null || !Object.hasOwn(value, field)) return shapes.one.check(value);
      const both = Object.keys(value).filter((name) => name in one.properties && !(name in many.properties));
      if (both.length === 0) return shapes.many.check(value);
      const message = `stands beside ${field}: send either ${oneName} or \`${field}\``;
      return { ok: false, mistakes: both.slice(0, MISTAKES_MAX).map((name) => ({ field: name, message })) };
    },
  };
}

/** `a must be …; b is missing.` */
export function describeMistakes(mistakes: readonly Mistake[], whole: string): string {
  const each = mistakes.map(({ field, message }) => `${field === "" ? whole : field} ${message}`);
  const text = each.join("; ").replaceAll("?; ", "? ");
  return `${text}${sentenceEnd(text)}`;
}

interface SchemaError {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message: string;
}

interface Fragment {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly wanted?: string;
}

function explain(schema: TSchema, errors: readonly SchemaError[]): Mistake[] {
  const found = new Map<string, Mistake>();
  // A misspelt name first: it explains the one that is missing.
  const rank = ({ keyword }: SchemaError): number => (keyword === "additionalProperties" ? 0 : 1);
  for (const error of errors.toSorted((a, b) => rank(a) - rank(b))) {
    for (const mistake of mistakesOf(schema, error)) {
      if (found.size < MISTAKES_MAX && !found.has(mistake.field)) found.set(mistake.field, mistake);
    }
  }
  return [...found.values()];
}

function mistakesOf(schema: TSchema, error: SchemaError): Mistake[] {
  const at = fieldOf(error.instancePath);
  const fragment = fragmentAt(schema, error.schemaPath);
  const params = error.params;
  switch (error.keyword) {
    // Said once more by `additionalProperties`, with the object's other names.
    case "boolean":
      return [];
    case "additionalProperties": {
      const known = Object.keys(fragment.properties ?? {});
      return (params["additionalProperties"] as string[]).map((name) => ({
        field: below(at, name),
        message: `is not known${suggestion(name, known)}`,
      }));
    }
    case "required":
      return (params["requiredProperties"] as string[]).map((name) => ({
        field: below(at, name),
        message: "is missing",
      }));
    default:
      return [{ field: at, message: wanted(error, fragment) }];
  }
}

function wanted({ keyword, params, message }: SchemaError, fragment: Fragment): string {
  if (fragment.wanted !== undefined) return `must be ${fragment.wanted}`;
  const limit = String(params["limit"]);
  switch (keyword) {
    case "type":
      return `must be ${ARTICLES[params["type"] as string] ?? String(params["type"])}`;
    case "minimum":
      return `must be at least ${limit}`;
    case "maximum":
      return `must be at most ${limit}`;
    case "minLength":
      return limit === "1" ? "must not be empty" : `must have at least ${limit} characters`;
    case "maxLength":
      return `must have at most ${limit} bytes`;
    case "maxItems":
    case "maxProperties":
      return `must have at most ${limit} entries`;
    case "enum":
      return `must be one of ${(params["allowedValues"] as string[]).join(", ")}`;
    default:
      return message;
  }
}

const ARTICLES: Readonly<Record<string, string>> = {
  object: "an object",
  array: "a list",
  string: "a text",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
};

/** Where the schema itself stands at a pointer such as `#/properties/a`. */
function fragmentAt(schema: TSchema, pointer: string): Fragment {
  let at: unknown = schema;
  for (const step of pointer.split("/").slice(1)) {
    if (typeof at !== "object" || at === null) return {};
    at = (at as Record<string, unknown>)[unescaped(step)];
  }
  return typeof at === "object" && at !== null ? at : {};
}

function fieldOf(pointer: string): string {
  return pointer
    .split("/")
    .slice(1)
    .reduce((field, step) => below(field, unescaped(step)), "");
}

function below(field: string, step: string): string {
  const name = printable(step);
  const whole = /^\d+$/.test(name) && field !== "" ? `${field}[${name}]` : `${field}${field === "" ? "" : "."}${name}`;
  return whole.length > FIELD_LENGTH_MAX ? `${whole.slice(0, FIELD_LENGTH_MAX)}…` : whole;
}

/** Names come from outside and go into logs and terminals. */
function printable(name: string): string {
  return name === "" ? '""' : name.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, "?");
}

function unescaped(step: string): string {
  return step.replaceAll("~1", "/").replaceAll("~0", "~");
}
