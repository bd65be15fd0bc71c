// The runbooks as tests read them: their fenced blocks, the commands in these (one on a line), and the calls of `tenure` in each
// command and in the text around. What is wrong with a call is found with the table that completes and documents the command line.

import { readdirSync, readFileSync } from "node:fs";
import { COMMANDS } from "../../src/cli/completion/table.ts";
import { type Description, flagsOf, wordsOf as verbsOf } from "../../src/cli/kit/description.ts";

const RUNBOOKS = "docs/runbooks";

export interface Block {
  readonly language: string;
  /** Of its first line, in the document. */
  readonly line: number;
  /** Without the indentation of the list that it belongs to. */
  readonly lines: readonly string[];
}

export interface Runbook {
  readonly file: string;
  readonly text: string;
}

export function runbooks(): Runbook[] {
  const files = readdirSync(RUNBOOKS).filter((name) => name.endsWith(".md"));
  return files.toSorted().map((file) => ({ file, text: readFileSync(`${RUNBOOKS}/${file}`, "utf8") }));
}

export function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let open: { language: string; line: number; lines: string[]; indent: string } | null = null;
  for (const [at, line] of text.split("\n").entries()) {
    const [, indent = "", language = ""] = /^( *)```(.*)$/.exec(line) ?? [];
    if (!/^ *```/.test(line)) open?.lines.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line);
    else if (open === null) open = { language: language.trim(), line: at + 2, lines: [], indent };
    else {
      blocks.push({ language: open.language, line: open.line, lines: open.lines });
      open = null;
    }
  }
  if (open !== null) throw new Error(`a block that begins in line ${open.line} has no end`);
  return blocks;
}

/** Of a block of `sh`: one on each line, without comments. */
export function commandsOf({ lines }: Block): string[] {
  return lines.map((line) => line.replace(/(^|\s+)#.*$/, "").trim()).filter((line) => line !== "");
}

/** The calls of `tenure` in a shell's line, as words: after pipes, in loops and in substitutions too. */
export function tenureCalls(command: string): string[][] {
  const calls = command.matchAll(/(?:^|[\s(;|&])(?:[\w/.-]*\/)?tenure (?=[a-z-])([^|;&>)]*)/g);
  return [...calls].map(([, rest = ""]) => [...rest.matchAll(/'[^']*'|"[^"]*"|\S+/g)].map(([word]) => word));
}

/** In the text, outside of blocks: `tenure …`. */
export function mentionsOf(text: string): string[] {
  const outside = text.replaceAll(/^ *```[^]*?^ *```$/gm, "");
  return [...outside.matchAll(/`(tenure [a-z][^`]*)`/g)].map(([, command = ""]) => command);
}

/** What the command line would refuse; undefined where nothing is wrong. `isMention`: what it is about may be left out. */
export function problemOf(words: readonly string[], isMention = false): string | undefined {
  const [name = "", ...rest] = words;
  const entry = COMMANDS.find((one) => one.name === name);
  if (entry === undefined) return `there is no command ${name}`;
  const { plain, problem } = sorted(entry, rest);
  if (problem !== undefined) return problem;
  const verbs = verbsOf(entry);
  const hasVerbs = Object.keys(verbs).length > 0;
  if (!hasVerbs) return plain.length > 0 && name !== "run" ? `${name} takes no ${plain[0]}` : undefined;
  const [verb, ...targets] = plain;
  if (verb === undefined) return isMention ? undefined : `${name} needs a verb`;
  if (!Object.hasOwn(verbs, verb)) return `${name} has no ${verb}`;
  const kind = verbs[verb]!;
  if (kind === "none") return targets.length > 0 ? `${name} ${verb} takes no ${targets[0]}` : undefined;
  if (typeof kind !== "string" && targets[0] !== undefined && !kind.includes(targets[0]))
    return `${name} ${verb} has no ${targets[0]}`;
  return targets.length === 0 && !isMention ? `${name} ${verb} lacks what it is about` : undefined;
}

/** Words that belong to no flag, or the first wrong flag. */
function sorted(entry: Description, words: readonly string[]): { plain: string[]; problem?: string } {
  const plain: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (word === "--") break;
    if (!word.startsWith("-")) {
      plain.push(word);
      continue;
    }
    const flag = flagsOf(entry).find((one) => one.name === word);
    if (flag === undefined) return { plain, problem: `${entry.name} has no flag ${word}` };
    if (flag.offer === "none") continue;
    const value = words[++at];
    if (value === undefined || value.startsWith("-")) return { plain, problem: `${word} needs a value` };
    if (typeof flag.offer !== "string" && value.split(",").some((one) => !flag.offer.includes(one)))
      return { plain, problem: `${word} takes no ${value}` };
  }
  return { plain };
}
