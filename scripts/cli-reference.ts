// The tables of flags in docs/reference/cli.md: `node scripts/cli-reference.ts` writes their rows as the commands are described
// (help.ts of each), in that order. The cells with the default and the meaning stay as they are written there; a new flag gets those of
// its help. A test compares.

import { readFileSync, writeFileSync } from "node:fs";
import { COMMANDS } from "../src/cli/completion/table.ts";
import { type FlagLine, flagsOf } from "../src/cli/kit/description.ts";

const FILE = "docs/reference/cli.md";
const HEAD = "| Flag | Default | What it is |\n|---|---|---|\n";

/** The document as it should be. */
export function withFlags(document: string): string {
  return COMMANDS.reduce((text, command) => {
    const section = text.indexOf(`\n## \`tenure ${command.name}\`\n`);
    if (section < 0) return text;
    const head = text.indexOf(HEAD, section);
    const next = text.indexOf("\n## ", section + 1);
    if (head < 0 || (next >= 0 && head > next))
      throw new Error(`${FILE}: no table of flags for tenure ${command.name}`);
    const begin = head + HEAD.length;
    const end = begin + /^(\|.*\n)*/.exec(text.slice(begin))![0].length;
    const rows = new Map(
      text
        .slice(begin, end)
        .split("\n")
        .map((row) => [/^\| `(-[a-z-]+)/.exec(row)?.[1], row]),
    );
    const written = flagsOf(command).map((flag) => `${rowOf(flag, rows.get(flag.name))}\n`);
    return `${text.slice(0, begin)}${written.join("")}${text.slice(end)}`;
  }, document);
}

function rowOf({ name, usage, offer, text }: FlagLine, before: string | undefined): string {
  const shown = name === "-o" && Array.isArray(offer) ? `-o ${offer.join("|")}` : usage;
  const cells = before === undefined ? `– | ${text} |` : before.slice(before.indexOf("` | ") + 4);
  return `| \`${shown.replaceAll("|", "\\|")}\` | ${cells}`;
}

if (import.meta.main) writeFileSync(FILE, withFlags(readFileSync(FILE, "utf8")));
