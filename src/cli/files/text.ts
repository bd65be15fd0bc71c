// The text of a configuration file as a value: TOML or JSON. What can't be read is told with its line and column, and the line is
// shown, with nothing of it that may be a secret. Pure.
//
// A name that ends in .toml is TOML, and in .json is JSON. Under any other name what begins with a brace is JSON, for no TOML does.

import { parse, TomlError } from "smol-toml";
import { parseJson } from "../../contract/parse-json.ts";
import { TenureError } from "../../contract/errors.ts";
import { jsonFaultAt } from "./json-fault.ts";
import { printable } from "../kit/output.ts";
import { CONFIG_DEPTH_MAX, LINE_SHOWN_MAX } from "../limits.ts";

type Format = "TOML" | "JSON";

/** Dates and times are values of TOML that no field takes. A symbol is of no schema's type, and is told by its description. */
const DATE = Symbol("a date or time (a text stands in quotes)");

/** The parser's commonest words, with what is expected. */
const EXPECTED: Readonly<Record<string, string>> = {
  "invalid value": "found no value, expected a text in quotes, a number, true, false, a list or a table",
  "trying to redefine an already defined table or value": "found a name or section again, expected each once",
  "integer value cannot be represented losslessly": `found too large a number, expected at most ${Number.MAX_SAFE_INTEGER}`,
  "illegal character in key": "found no name, expected NAME = VALUE or [SECTION]",
  "unfinished string": "found no end of the text, expected a closing quote",
  "incomplete key-value declaration": "found a name alone, expected NAME = VALUE",
};

export function parseConfigText(path: string, text: string): unknown {
  return formatOf(path, text) === "JSON" ? fromJson(path, text) : fromToml(path, text);
}

function formatOf(path: string, text: string): Format {
  if (/\.toml$/i.test(path)) return "TOML";
  if (/\.json$/i.test(path)) return "JSON";
  return /^\uFEFF?\s*\{/.test(text) ? "JSON" : "TOML";
}

function fromToml(path: string, text: string): unknown {
  try {
    return plain(parse(text, { maxDepth: CONFIG_DEPTH_MAX }));
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const said = error.message.split("\n", 1)[0]!.replace(/^Invalid TOML document: /, "");
    throw unreadable(path, "TOML", text, { line: error.line, column: error.column, why: EXPECTED[said] ?? said });
  }
}

function fromJson(path: string, text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const { at, expected } = jsonFaultAt(text);
    const before = text.slice(0, at).split(/\r?\n/);
    const found = at < text.length ? printable(JSON.stringify(String.fromCodePoint(text.codePointAt(at)!))) : "the end";
    const why = `expected ${expected}, found ${found}`;
    throw unreadable(path, "JSON", text, { line: before.length, column: before.at(-1)!.length + 1, why });
  }
}

/** Objects as JSON has them (TOML's have no prototype), and no dates, whatever the parser makes of those. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  if (Object.getPrototypeOf(value) !== null) return DATE;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]));
}

interface Fault {
  readonly line: number;
  readonly column: number;
  readonly why: string;
}

function unreadable(path: string, format: Format, text: string, { line, column, why }: Fault): TenureError {
  const source = text.split(/\r?\n/)[line - 1] ?? "";
  const shown = mayShow(source)
    ? [`  ${line}: ${printable(source)}`, `${" ".repeat(3 + `${line}`.length + column)}^`]
    : [];
  const head = `${path} is not ${format}: line ${line}, column ${column}: ${why}${shown.length > 0 ? ":" : "."}`;
  return new TenureError("CONFIG_INVALID", [head, ...shown].join("\n"));
}

/** A key in the clear, or a URL with a password, is in lines like these; and a long line is no help. */
function mayShow(line: string): boolean {
  return line.trim() !== "" && line.length <= LINE_SHOWN_MAX && !/@|backend|key|sha256|pass|secret|token/i.test(line);
}
