// A schema that was compiled, and mistakes as people read them: each names its field and says what is wanted. All of
// a value's mistakes are reported at once, up to a bound. What was found is told only where the schema's user says which fields are
// open: elsewhere a value may be a secret or a megabyte.

import { type Static, type TObject, type TSchema, Type } from "typebox";
import { Compile } from "typebox/compile";
import { sentenceEnd, suggestion } from "../core/kit/suggestion.ts";
import { foundText, printable } from "./found.ts";
import { FIELD_SHOWN_LENGTH_MAX, MISTAKES_MAX } from "./limits.ts";

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

/** `isOpen`: mistakes tell what was found, and show texts and numbers of the fields of which it is true. */
export function shape<Schema extends TSchema>(
  schema: Schema,
  isOpen?: (field: string) => boolean,
): Shape<Static<Schema>> {
  const compiled = Compile(schema);
  return {
    schema,
    check: (value) => {
      if (compiled.Check(value)) return { ok: true, value };
      const found =
        isOpen &&
        ((pointer: string): string => `, found ${foundText(valueAt(value, pointer), isOpen(fieldOf(pointer)))}`);
      return { ok: false, mistakes: explain(schema, compiled.Errors(value), found) };
    },
  };
}

/** What is checked as `checked` is, and is shown as `schema` to whoever reads what is allowed: a refinement hides what it looks at. */
export function shapeShown<Schema extends TSchema>(checked: Schema, schema: TSchema): Shape<Static<Schema>> {
  return { ...shape(checked), schema };
}

/**
 * An object of one of several kinds, distinguished by a field that names the kind. Its mistakes are those of the kind that is meant: a union would tell those
 * of all others too.
 */
export function oneOfKinds<const Kinds extends readonly TObject[]>(field: string, ...kinds: Kinds) {
  const shapes = new Map(kinds.map((kind) => [kindOf(kind, field), shape(kind)]));
  const named = Type.Object({ [field]: Type.Enum([...shapes.keys()]) });
  /** The checker asks several times what is wrong, and a value may be large. */
  const known = new WeakMap<object, string>();
  const mistakeOf = (value: unknown): string | null => {
    if (typeof value !== "object" || value === null) return null;
    const before = known.get(value);
    if (before !== undefined) return before;
    const name = (value as Readonly<Record<string, unknown>>)[field] as string;
    const found = shapes.get(name)?.check(value);
    if (found === undefined || found.ok) return null;
    const mistake = `is no ${name}: ${describeMistakes(found.mistakes, "it").replace(/\.$/, "")}`;
    known.set(value, mistake);
    return mistake;
  };
  return Type.Refine(
    Type.Unsafe<Static<Kinds[number]>>(named),
    (value: unknown) => mistakeOf(value) === null,
    (value: unknown) => mistakeOf(value) ?? `must have a known ${field}`,
  );
}

function kindOf({ properties }: TObject, field: string): string {
  const { enum: names = [] }: { readonly enum?: readonly string[] } = properties[field] ?? {};
  return names[0] ?? "";
}

/**
 * One of two objects, distinguished by a field that only the second has: so that mistakes are those of the one that is meant.
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
      if (typeof value !== "object" || value === null || Array.isArray(value)) return shapes.one.check(value);
      const names = Object.keys(value);
      const ofOne = names.find((name) => isIn(one, name) && !isIn(many, name));
      const ofMany = names.find((name) => isIn(many, name) && !isIn(one, name));
      const choice = `send either ${oneName} or \`${field}\``;
      if (ofOne === undefined && ofMany !== undefined) return shapes.many.check(value);
      if (!names.includes(field)) {
        const found = shapes.one.check(value);
        // A list of all fields of the first would hide that there is a second.
        const isVague = names.length === 0 && !found.ok && found.mistakes.length > 1;
        return isVague ? { ok: false, mistakes: [{ field: "", message: `is empty: ${choice}` }] } : found;
      }
      // Once: it is one mistake, however many fields the other form has.
      const message = `can't be sent together with ${field}: ${choice}`;
      return { ok: false, mistakes: [{ field: ofOne!, message }] };
    },
  };
}

function isIn({ properties }: TObject, name: string): boolean {
  return Object.hasOwn(properties, name);
}

/** `a must be …; b is missing.` */
export function describeMistakes(mistakes: readonly Mistake[], whole: string): string {
  const each = mistakes.map(({ field, message }) => `${field === "" ? whole : field} ${message}`);
  const text = each.join("; ").replaceAll("?; ", "? ");
  return `${text}${sentenceEnd(text)}`;
}

/** One mistake is a sentence after `head`; several are a line each, indented. */
export function listMistakes(head: string, mistakes: readonly Mistake[], tail: string, whole = "the file"): string {
  if (mistakes.length === 1) return `${head} ${describeMistakes(mistakes, whole)} ${tail}`;
  const lines = mistakes.map((mistake) => `  ${describeMistakes([mistake], whole).replace(/\.$/, "")}`);
  return [head, ...lines, tail].join("\n");
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
  readonly type?: string;
}

/** ", found …". Undefined: nothing of the value is told, nor more than is needed of what is expected. */
type Found = ((pointer: string) => string) | undefined;

function explain(schema: TSchema, errors: readonly SchemaError[], foundAt: Found): Mistake[] {
  const found = new Map<string, Mistake>();
  // A misspelt name first: it explains the one that is missing.
  const rank = ({ keyword }: SchemaError): number => (["additionalProperties", "boolean"].includes(keyword) ? 0 : 1);
  for (const error of errors.toSorted((a, b) => rank(a) - rank(b))) {
    for (const mistake of mistakesOf(schema, error, foundAt)) {
      if (found.size < MISTAKES_MAX && !found.has(mistake.field)) found.set(mistake.field, mistake);
    }
  }
  return [...found.values()];
}

function mistakesOf(schema: TSchema, error: SchemaError, foundAt: Found): Mistake[] {
  const at = fieldOf(error.instancePath);
  const fragment = fragmentAt(schema, error.schemaPath);
  const params = error.params;
  switch (error.keyword) {
    // Of each unknown name; those of one object once more, all together, unless the checker has given up before.
    case "boolean": {
      const around = fragmentAt(schema, error.schemaPath.replace(/\/additionalProperties$/, ""));
      const name = unescaped(error.instancePath.slice(error.instancePath.lastIndexOf("/") + 1));
      return [unknownName(at, name, around, foundAt)];
    }
    case "additionalProperties":
      return (params["additionalProperties"] as string[]).map((name) =>
        unknownName(below(at, name), name, fragment, foundAt),
      );
    case "required":
      return (params["requiredProperties"] as string[]).map((name) => ({
        field: below(at, name),
        message: `is missing${foundAt === undefined ? "" : expectedOf(fragment.properties?.[name] as Fragment | undefined)}`,
      }));
    default: {
      const message = wanted(error, fragment);
      return [{ field: at, message: message === EMPTY ? message : `${message}${foundAt?.(error.instancePath) ?? ""}` }];
    }
  }
}

/** Says what was found as well. */
const EMPTY = "must not be empty";

function unknownName(field: string, name: string, { properties = {} }: Fragment, foundAt: Found): Mistake {
  const known = Object.keys(properties);
  const near = suggestion(name, known);
  const all = foundAt === undefined || known.length === 0 ? "" : `: expected ${known.join(", ")}`;
  return { field, message: `is not known${near || all}` };
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
      return limit === "1" ? EMPTY : `must have at least ${limit} characters`;
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

function expectedOf({ wanted: told, type = "" }: Fragment = {}): string {
  const kind = told ?? ARTICLES[type];
  return kind === undefined ? "" : `: expected ${kind}`;
}

/** Where the schema itself is at a pointer such as `#/properties/a`. */
function fragmentAt(schema: TSchema, pointer: string): Fragment {
  let at: unknown = schema;
  for (const step of pointer.split("/").slice(1)) {
    if (typeof at !== "object" || at === null) return {};
    at = (at as Record<string, unknown>)[unescaped(step)];
  }
  return typeof at === "object" && at !== null ? at : {};
}

function valueAt(value: unknown, pointer: string): unknown {
  return pointer
    .split("/")
    .slice(1)
    .reduce<unknown>((at, step) => (at as Record<string, unknown> | null)?.[unescaped(step)], value);
}

function fieldOf(pointer: string): string {
  return pointer
    .split("/")
    .slice(1)
    .reduce((field, step) => below(field, unescaped(step)), "");
}

function below(field: string, step: string): string {
  const name = step === "" ? '""' : printable(step);
  const whole = /^\d+$/.test(name) && field !== "" ? `${field}[${name}]` : `${field}${field === "" ? "" : "."}${name}`;
  return whole.length > FIELD_SHOWN_LENGTH_MAX ? `${whole.slice(0, FIELD_SHOWN_LENGTH_MAX)}…` : whole;
}

function unescaped(step: string): string {
  return step.replaceAll("~1", "/").replaceAll("~0", "~");
}

const DIGITS = /^\d{1,16}$/;

/**
 * A query string is text: where a schema wants a number or a boolean, text that is exactly one becomes it. Everything else
 * stays as it is, for the schema to refuse.
 */
export function typedQuery(query: Shape, raw: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { properties = {} } = query.schema as { properties?: Record<string, { type?: string }> };
  return Object.fromEntries(
    Object.entries(raw).map(([name, value]) => [
      name,
      Object.hasOwn(properties, name) ? typed(value, properties[name]?.type) : value,
    ]),
  );
}

function typed(value: unknown, type: string | undefined): unknown {
  if (typeof value !== "string") return value;
  if (type === "integer" && DIGITS.test(value)) return Number(value);
  if (type === "boolean" && /^(true|false)$/.test(value)) return value === "true";
  return value;
}
