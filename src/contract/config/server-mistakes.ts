// All mistakes of a server's configuration at once. The schema's checker gives up after a few, and what relates two fields can
// be checked only where both are well-formed: so each wrong field is taken out, what is left is checked again, and a relation is
// told where none of the fields that it reads was taken out. An unknown name takes nothing out: what is missing without it is missing.

import { type ServerConfigFile, serverConfigShape } from "./server-schema.ts";
import { MISTAKE_ROUNDS_MAX } from "../limits.ts";
import type { Mistake } from "../shape.ts";

/** Without these nothing can be assembled; no relation that reads them is told. */
const PLACEHOLDERS = { node_id: "unknown", data_dir: "unknown" } as const;

export interface CheckedFile {
  readonly mistakes: readonly Mistake[];
  /** Without what is wrong. Null where that could not be taken out. */
  readonly file: ServerConfigFile | null;
  /** Whether all of these fields are as they were written. */
  readonly isIntact: (fields: readonly string[]) => boolean;
}

export function checkFile(raw: unknown): CheckedFile {
  const all = new Map<string, Mistake>();
  const wrong: string[] = [];
  const isIntact = (fields: readonly string[]): boolean =>
    fields.every((field) => !wrong.some((one) => isWithin(one, field) || isWithin(field, one)));
  let rest = raw;
  for (let round = 0; round < MISTAKE_ROUNDS_MAX; round++) {
    const checked = serverConfigShape.check(rest);
    if (checked.ok) return { mistakes: [...all.values()], file: checked.value, isIntact };
    for (const mistake of checked.mistakes) {
      if (!all.has(mistake.field)) all.set(mistake.field, mistake);
      if (!isUnknownName(mistake)) wrong.push(mistake.field);
    }
    if (!isObject(rest)) break;
    rest = checked.mistakes.reduce<unknown>((value, mistake) => without(value, placeOf(mistake)), rest);
  }
  return { mistakes: [...all.values()], file: null, isIntact };
}

function isUnknownName({ message }: Mistake): boolean {
  return message.startsWith("is not known");
}

/** Where a wrong field makes the object around it unusable, that goes: certificates and keys are whole or not at all. */
function placeOf(mistake: Mistake): string[] {
  const path = mistake.field.split(/[.[\]]+/).filter((step) => step !== "");
  if (isUnknownName(mistake)) return path;
  if (path[0] === "keys") return ["keys"];
  const tls = path.indexOf("tls");
  return tls < 0 ? path : path.slice(0, tls + 1);
}

function without(value: unknown, [name = "", ...rest]: readonly string[]): unknown {
  if (Array.isArray(value)) {
    const list: unknown[] = value;
    return rest.length === 0
      ? list.filter((_, at) => String(at) !== name)
      : list.map((one, at) => (String(at) === name ? without(one, rest) : one));
  }
  if (!isObject(value)) return value;
  const { [name]: inner, ...others } = value;
  if (rest.length > 0) return inner === undefined ? value : { ...value, [name]: without(inner, rest) };
  return name in PLACEHOLDERS ? { ...others, [name]: PLACEHOLDERS[name as keyof typeof PLACEHOLDERS] } : others;
}

/** `peer.tls.ca_file` is within `peer.tls`, and `keys[0]` within `keys`. */
function isWithin(field: string, whole: string): boolean {
  return field === whole || field.startsWith(`${whole}.`) || field.startsWith(`${whole}[`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
