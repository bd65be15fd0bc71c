// Requests made from the contract's own schemas: what a route allows, nearly allows and does not allow at all.

import fc from "fast-check";
import { expect } from "vitest";
import { type Route, type RouteId, ROUTES } from "../../src/contract/index.ts";

interface Schema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly maxProperties?: number;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}

/** What patterns ask for, here or there. */
const POOL =
  `n1 n2 n3 n4 n9 N1 - ${"n".repeat(64)} build a-1 job-1 default ${"a".repeat(64)} pending,failed build:*,worker:offline build:submitted 7 n1@3f9a c-1 a.${"0f".repeat(16)} 01890000-0000-7000-8000-000000000001`.split(
    " ",
  );

const junk = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(
    "",
    "\0",
    "\ud800",
    -1,
    0,
    1.5,
    2 ** 53,
    1e308,
    null,
    [],
    {},
    "__proto__",
    "x".repeat(5_000),
  ),
);

/** The user's own, as it may be. */
const ownJson = fc.dictionary(
  fc.string({ maxLength: 8 }),
  fc.oneof(fc.integer({ min: -100, max: 100 }), fc.string({ unit: "grapheme", maxLength: 20 }), fc.constant(null)),
  { maxKeys: 3 },
);

/** Now and then a name that a pattern of one line does not see, with a value that may be no text. */
const dictionary = fc.oneof(
  { weight: 3, arbitrary: fc.dictionary(fc.string(), fc.string(), { maxKeys: 17 }) },
  {
    weight: 1,
    arbitrary: fc.dictionary(fc.constantFrom("a\nb", "\r", "\u2028", "\u2029"), junk, { minKeys: 1, maxKeys: 2 }),
  },
);

/** Mostly fits, and is at its bounds often. */
function valueOf(schema: Schema): fc.Arbitrary<unknown> {
  const { minimum = 0, maximum = 2 ** 53 - 1 } = schema;
  switch (schema.type) {
    case "integer":
      return fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom(minimum, maximum) },
        { weight: 1, arbitrary: fc.constantFrom(minimum - 1, maximum + 1) },
        { weight: 4, arbitrary: fc.integer({ min: minimum, max: Math.min(maximum, 2 ** 31) }) },
      );
    case "boolean":
      return fc.boolean();
    case "string":
      if (schema.pattern !== undefined) return fitting(schema.pattern);
      return fc.oneof(
        fc.constantFrom("s-1", "s-1", "s-1", "s-2"),
        fc.string({ unit: "grapheme", maxLength: (schema.maxLength ?? 20) + 1 }),
      );
    case "number":
      return fc.double({ min: minimum, max: maximum, noNaN: true });
    case "array":
      return fc.array(valueOf(schema.items ?? {}), { minLength: 1, maxLength: 3 });
    case "object":
      if (schema.properties === undefined) return dictionary;
      return objectOf(schema);
    default:
      if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((one) => valueOf(one)));
      if (schema.enum === undefined) return fc.oneof({ weight: 5, arbitrary: ownJson }, { weight: 1, arbitrary: junk });
      return fc.oneof(
        { weight: 12, arbitrary: fc.constantFrom(...schema.enum) },
        { weight: 1, arbitrary: fc.constant("other") },
      );
  }
}

function fitting(pattern: string): fc.Arbitrary<unknown> {
  const regex = new RegExp(pattern);
  const fits = POOL.filter((one) => regex.test(one));
  expect(fits, `nothing fits ${pattern}`).not.toEqual([]);
  return fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...fits) },
    { weight: 1, arbitrary: fc.constantFrom(...POOL) },
  );
}

/** The epoch that is active where they are sent. */
export const EPOCH = 7;

function objectOf({ properties = {}, required = [], anyOf }: Schema): fc.Arbitrary<unknown> {
  if (anyOf !== undefined) return fc.oneof(...anyOf.map((one) => objectOf(one)));
  const fields = Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [
      name,
      // A long poll would make the run long; that it ends is tested elsewhere.
      name === "wait_ms"
        ? fc.constantFrom(0, 0, 0, 0, 1, 1, -1, 60_001)
        : name === "url"
          ? fc.constantFrom("http://a:1", "http://a:1", "https://b.example:7401", "http://a:1/path", "")
          : name === "cron"
            ? fc.constantFrom("0 3 * * *", "* * * * *", "often", "")
            : name === "leader_epoch"
              ? fc.constantFrom(EPOCH, EPOCH, EPOCH, EPOCH, EPOCH - 1, 0)
              : fc.oneof({ weight: 24, arbitrary: valueOf(schema) }, { weight: 1, arbitrary: junk }),
    ]),
  );
  const mostly = fc.record(fields, { requiredKeys: [...required] });
  const least = Object.fromEntries(required.map((name) => [name, fields[name] as fc.Arbitrary<unknown>]));
  const broken = fc.record({ ...fields, extra: junk }, { requiredKeys: [] });
  return fc.oneof(
    { weight: 4, arbitrary: fc.record(least) },
    { weight: 5, arbitrary: mostly },
    { weight: 1, arbitrary: broken },
    { weight: 1, arbitrary: junk },
  );
}

/** How often a route is asked for that is to be asked for often. */
const OFTEN_WEIGHT = 8;

/** One for any route; `wild` is what next to it may differ. */
export function requestsWith<T>(
  wild: fc.Arbitrary<T>,
  often: readonly RouteId[] = [],
  ids = Object.keys(ROUTES) as readonly RouteId[],
) {
  return fc.oneof(
    ...ids.map((id) => {
      const route: Route = ROUTES[id];
      const arbitrary = fc.record({
        id: fc.constant(id),
        scope: fc.oneof(
          { weight: 3, arbitrary: fc.constantFrom("a", "b") },
          { weight: 1, arbitrary: fc.string({ unit: "grapheme", minLength: 1, maxLength: 100 }) },
        ),
        query: fc.oneof(
          { weight: 3, arbitrary: fc.constant({}) },
          { weight: 2, arbitrary: objectOf(route.query.schema as Schema) },
        ),
        body: route.body === null ? fc.constant(undefined) : objectOf(route.body.schema as Schema),
        wild,
      });
      return { weight: often.includes(id) ? OFTEN_WEIGHT : 1, arbitrary };
    }),
  );
}

export function pathOf(route: Route, param: string, query: unknown): string {
  const search = new URLSearchParams();
  if (typeof query === "object" && query !== null) {
    for (const [name, value] of Object.entries(query)) search.append(wellFormed(name), wellFormed(String(value)));
  }
  return `${route.path.replace(/:\w+/, encodeURIComponent(wellFormed(param)))}?${search.toString()}`;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function wellFormed(text: string): string {
  return text.toWellFormed();
}
