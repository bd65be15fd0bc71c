// Citations resolve: a trap, a decision or a section of a specification that is named in a source or a document is explained
// in the repository. docs/citations.md says how each is written and where it is explained.

import { lineAt, type SourceFile, type Violation } from "./source.ts";

/** What is explained, by kind: "trap", "design", "decision", and the works whose sections are listed. */
export type Definitions = ReadonlyMap<string, ReadonlySet<string>>;

export interface CitationsReport {
  readonly citations: number;
  readonly violations: readonly Violation[];
}

const TRAPS = "docs/traps.md";
const PAGE = "docs/citations.md";
/** A work, as the heading of its table on the page calls it. */
const WORKS: Readonly<Record<string, string>> = {
  "The Raft paper": "Raft",
  "The Raft thesis": "thesis",
  "The node-controller specification": "specification",
};

/** "trap 26", "traps 50, 56", "decisions 23 to 37": of a range the two ends. */
const NUMBERED = /\b(trap|decision)s? (\d+[a-z]?\b(?:(?:,| and| or| to) \d+[a-z]?\b)*)/gi;
const DESIGN = /\bD([1-9]\d?)\b/g;
const SECTION = /(?:\b(thesis|specification|node-controller\.md|[a-z-]+\.md|design)\s+)?§ ?(\d+(?:\.\d+)*)/gi;
const DECISION_FILE = /decisions\/(\d{4}-[\w-]+\.md)/g;

export function definitionsIn(sources: readonly SourceFile[]): Definitions {
  const text = (path: string): string => sources.find((file) => file.path === path)?.text ?? "";
  const found = new Map<string, Set<string>>();
  const add = (kind: string, names: Iterable<string>): void => {
    found.set(kind, new Set([...(found.get(kind) ?? []), ...names]));
  };
  add("trap", captures(text(TRAPS), /^(\d+[a-z]?)\. /gm));
  add("design", captures(text(TRAPS), /^- \*\*D(\d+)\*\*/gm));
  const files = sources.flatMap(({ path }) => captures(path, /^docs\/decisions\/(\d{4}-.+)$/g));
  add("decision", [...files, ...files.map((file) => String(Number(file.slice(0, 4))))]);
  for (const part of text(PAGE).split(/^## /m)) {
    const work = WORKS[part.slice(0, part.indexOf("\n"))];
    if (work !== undefined) add(work, captures(part, /^\| §([\d.]+) \|/gm));
  }
  return found;
}

export function checkCitations(sources: readonly SourceFile[], definitions: Definitions): CitationsReport {
  const violations: Violation[] = [];
  let citations = 0;
  for (const file of sources) {
    const check = (offset: number, kind: string, name: string, written: string): void => {
      citations++;
      if (definitions.get(kind)?.has(name) === true) return;
      const message = `cites ${written.replaceAll(/\s+/g, " ")}, which is explained nowhere (${PAGE})`;
      violations.push({ path: file.path, line: lineAt(file.text, offset), message });
    };
    const text = unwrapped(file.text);
    for (const { 0: written, 1: kind = "", 2: list = "", index } of text.matchAll(NUMBERED))
      for (const number of list.match(/\d+[a-z]?/g) ?? [])
        check(index, kind.toLowerCase(), number.replace(/^0+/, ""), written);
    for (const { 0: written, 1: number = "", index } of text.matchAll(DESIGN)) check(index, "design", number, written);
    for (const { 0: written, 1: work, 2: number = "", index } of text.matchAll(SECTION))
      check(index, workOf(work), number, written);
    for (const { 0: written, 1: name = "", index } of text.matchAll(DECISION_FILE))
      check(index, "decision", name, written);
  }
  return { citations, violations };
}

/** Alone, a section is one of the Raft paper. */
function workOf(word: string | undefined): string {
  const work = word?.toLowerCase();
  return work === undefined ? "Raft" : work === "node-controller.md" ? "specification" : work;
}

/** The marks of a comment's continued line become spaces, so that a citation is found across two lines, at the same offset. */
function unwrapped(text: string): string {
  return text.replaceAll(/\n[ \t]*(?:\/\/|\*(?!\*|\/)|#)?/g, (mark) => " ".repeat(mark.length));
}

function captures(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].flatMap((match) => match[1] ?? []);
}
