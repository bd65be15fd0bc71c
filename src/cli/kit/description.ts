// A command is described once, by its help text (help.ts of its folder): what the parser takes, what shells complete and which rows
// docs/reference/cli.md has are read from that text, by this file and, for the names, by the compiler. Its lines:
//
//   two spaces, a verb, what follows the verb (`drain NODE`, `snapshot save FILE`), two spaces, what it does
//   two spaces, a flag, its value (`--to NODE`, `--log text|json`; a switch has none), two spaces, what it means
//
// A value in small letters is all that there is to give; FILE and DIR are completed as files. What no line can say is in `more`.

import type { FlagKinds } from "./flags.ts";

/** What a shell offers next: nothing, anything, a file, or one of these words. */
export type Offer = "none" | "any" | "file" | readonly string[];

export interface More {
  /** Flags that may be given again. */
  readonly lists?: readonly string[];
  /** By flag, where the line does not name all values, or means a file of another machine. */
  readonly offers?: Readonly<Record<string, Offer>>;
}

export interface Description<Help extends string = string> {
  readonly name: string;
  /** For the first help page. */
  readonly summary: string;
  readonly help: Help;
  readonly more: More;
}

export function describe<Help extends string>(name: string, summary: string, help: Help, more: More = {}) {
  return { name, summary, help, more } satisfies Description<Help>;
}

type LineOf<Text, Found = never> = Text extends `${infer Line}\n${infer Rest}` ? LineOf<Rest, Found | Line> : Found;
type WordOf<Text> = Text extends `${infer Word} ${string}` ? Word : Text;
type VerbOf<Line> = Line extends `  ${" " | "-"}${string}`
  ? never
  : Line extends `  tenure ${string} ${infer Text}`
    ? WordOf<Text>
    : Line extends `  ${infer Text}`
      ? WordOf<Text>
      : never;
type FlagOf<Line> = Line extends `  --${infer Text}` ? WordOf<Text> : Line extends `  -o ${string}` ? "output" : never;
export type Verb<Help extends string> = string extends Help ? string : VerbOf<LineOf<Help>>;
export type Flag<Help extends string> = string extends Help ? string : FlagOf<LineOf<Help>> | "help";

export interface FlagLine {
  readonly name: string;
  /** As its line begins: `--to NODE`. */
  readonly usage: string;
  readonly offer: Offer;
  /** What it means, on one line. */
  readonly text: string;
}

/** With the lines that go on below it. */
const FLAG_LINE = /^ {2}(-o|--[a-z-]+)(?: (\S+))? *(.*(?:\n {4,}.*)*)/gm;

/** In the order of the text; every command that has one takes --help, and not every text says so. */
export function flagsOf({ help, more }: Description): FlagLine[] {
  const text = help === "" ? "" : `${help}\n  --help`;
  const found = new Map<string, FlagLine>();
  for (const [, name = "", value, says = ""] of text.matchAll(FLAG_LINE)) {
    const { offer, usage = value === undefined ? name : `${name} ${value}` } = found.get(name) ?? {};
    const meaning = says.replaceAll(/\n */g, " ");
    found.set(name, { name, usage, offer: more.offers?.[name] ?? offerOf(value, offer), text: meaning });
  }
  return [...found.values()];
}

/** `before`: of an earlier line of the same flag, one for each value. */
function offerOf(value: string | undefined, before?: Offer): Offer {
  if (value === undefined) return "none";
  if (/^\[?(FILE|DIR)\b/.test(value)) return "file";
  return /^[a-z|]+$/.test(value) ? [...choices(before), ...value.split("|")] : "any";
}

function choices(offer: Offer | undefined): readonly string[] {
  return typeof offer === "object" ? offer : [];
}

/** For `parseFlags`. */
export function kindsOf<Help extends string>(description: Description<Help>): FlagKinds<Flag<Help>> {
  const { lists = [] } = description.more;
  const kinds = flagsOf(description).map(({ name, offer }) => {
    const key = name === "-o" ? "output" : name.slice(2);
    return [key, lists.includes(key) ? "list" : offer === "none" ? "switch" : "value"];
  });
  return Object.fromEntries(kinds) as FlagKinds<Flag<Help>>;
}

/** Each verb, and what may follow it. */
export function wordsOf({ help }: Pick<Description, "help">): Record<string, Offer> {
  const words: Record<string, Offer> = {};
  const lines = help.matchAll(/^ {2}(?:tenure [a-z]+ )?([a-z]+)\b(?: ([a-z]+)(?= [A-Z]| {2}))?(?: (\[?[A-Z]+|--))?/gm);
  for (const [, verb = "", second, operand] of lines) {
    if (second !== undefined) words[verb] = [...new Set([...choices(words[verb]), second])];
    else words[verb] ??= operand === undefined || operand === "--" ? "none" : offerOf(operand);
  }
  return words;
}

export function verbsOf<Help extends string>(description: Description<Help>): readonly Verb<Help>[] {
  return Object.keys(wordsOf(description)) as Verb<Help>[];
}
