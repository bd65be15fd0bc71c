// docs/reference/cli.md as tests read it, and what commands print in the same form.

import { readFileSync } from "node:fs";

const DOCUMENT = readFileSync("docs/reference/cli.md", "utf8");

/** The text from a heading to the next one of its level or above. */
export function section(heading: string): string {
  const begin = DOCUMENT.indexOf(`\n${heading}\n`);
  if (begin < 0) throw new Error(`docs/reference/cli.md has no ${heading}`);
  const level = /^#+/.exec(heading)![0].length;
  const rest = DOCUMENT.slice(begin + heading.length + 1);
  const end = rest.search(new RegExp(`\n#{1,${level}} `));
  return end < 0 ? rest : rest.slice(0, end);
}

/** The first cells of its table of fields. */
export function documented(heading: string): string[] {
  const text = section(heading);
  const table = text.slice(text.indexOf("| Field |")).split("\n\n")[0] ?? "";
  return table
    .trimEnd()
    .split("\n")
    .slice(2)
    .map((row) => /^\| `([^`]+)`/.exec(row)?.[1] ?? row)
    .toSorted();
}

/** What the user may fill with names of their own is one field. */
const FREE = /(^|\.)(labels|payload|value)$/;

/** `a.b`, `list[].c`. */
export function fieldsOf(value: unknown, prefix = ""): string[] {
  if (Array.isArray(value)) return [...new Set(value.flatMap((one) => fieldsOf(one, `${prefix}[]`)))].toSorted();
  if (typeof value !== "object" || value === null || FREE.test(prefix)) return [prefix];
  const entries = Object.entries(value).filter(([name]) => prefix !== "" || name !== "code");
  const fields = entries.flatMap(([name, inner]) => fieldsOf(inner, prefix === "" ? name : `${prefix}.${name}`));
  return [...new Set(fields)].toSorted();
}

/** Of what `-o jsonl` prints. */
export function linesOf(text: string): unknown[] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
}

/** Of a help text, or of a section. */
export function flagsIn(text: string): string[] {
  const found = [...text.matchAll(/^(?:\| `|  )(--?[a-z-]+)/gm)].map(([, flag = ""]) => flag);
  return [...new Set(found)].toSorted();
}
