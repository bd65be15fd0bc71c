// A query string is text: where a schema wants a number or a boolean, text that is exactly one becomes it. Everything else
// stays as it is, for the schema to refuse.

import type { Shape } from "./shape.ts";

const DIGITS = /^\d{1,16}$/;

export function typedQuery(shape: Shape, raw: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { properties = {} } = shape.schema as { properties?: Record<string, { type?: string }> };
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
