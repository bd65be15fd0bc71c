// ARCHITECTURE.md as its tests read it.

import { existsSync, readFileSync } from "node:fs";

export const PAGE = readFileSync("ARCHITECTURE.md", "utf8");

/** What follows a heading, to the next heading of its rank or above. */
export function section(heading: string): string {
  const rank = /^#+/.exec(heading)![0].length;
  const [, text] = PAGE.split(`\n${heading}\n`);
  if (text === undefined) throw new Error(`ARCHITECTURE.md has no section "${heading}"`);
  return text.split(new RegExp(`\n#{1,${rank}} `))[0]!;
}

/** Paths in backquotes: below src/, or from the repository's root. */
export function paths(text: string): string[] {
  return [...text.matchAll(/`([\w./-]+\/[\w./<>-]*)`/g)].map(([, path]) => path!);
}

export function exists(path: string): boolean {
  return existsSync(`src/${path}`) || existsSync(path);
}

export interface Stop {
  readonly file: string;
  readonly functions: readonly string[];
}

/** The rows of a walk: its first cell holds a number, the second a file and the functions there. */
export function stops(text: string): Stop[] {
  return [...text.matchAll(/^\| \d+ \| `([\w./-]+)` ([^|]*)\|/gm)].map(([, file, cell]) => ({
    file: file!,
    functions: [...cell!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!),
  }));
}
