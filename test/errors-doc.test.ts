// docs/errors.md and the registry list the same errors with the same properties.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { ERRORS } from "../src/core/kit/errors.ts";

interface Row {
  readonly http: number;
  readonly exit: number;
  readonly retryable: boolean;
  readonly number: number | null;
}

const ROW = /^\| `(\w+)` \| (–|\d+) \| (\d+) \| (\d+) \| (yes|no) \| (.*) \|$/;

function documented(markdown: string): Record<string, Row> {
  const rows: Record<string, Row> = {};
  const lines = markdown.split("\n").filter((line) => line.startsWith("| `"));
  for (const line of lines) {
    const [, code = "", number, http, exit, retry, meaning = ""] = ROW.exec(line) ?? [];
    expect(meaning.length, `a row of docs/errors.md is not in the table's form: ${line}`).toBeGreaterThan(20);
    expect(rows, `docs/errors.md lists ${code} twice`).not.toHaveProperty(code);
    rows[code] = {
      http: Number(http),
      exit: Number(exit),
      retryable: retry === "yes",
      number: number === "–" ? null : Number(number),
    };
  }
  return rows;
}

it("docs/errors.md lists every error of the registry as it is, and no other", () => {
  expect(documented(readFileSync("docs/errors.md", "utf8"))).toEqual(ERRORS);
});

/** The table of docs/reference/cli.md: every code, and what it means. */
function exitCodes(markdown: string): number[] {
  const [, table = ""] = markdown.split("| Exit code | What it means |\n|---|---|\n");
  const rows = table.split("\n\n", 1)[0]!.split("\n");
  return rows.flatMap((row) => {
    const [, codes] = /^\| ([\d, ]+) \| .{5,} \|$/.exec(row) ?? [];
    expect(codes, `a row of the exit codes is not in the table's form: ${row}`).toBeDefined();
    return codes!.split(", ").map(Number);
  });
}

/** Those that are no error's: done, done with a bad end, no such scope (scope), leadership lost (run --once), signals. */
const OWN_CODES = [0, 1, 66, 76, 130, 143];

it("docs/reference/cli.md explains every exit code of the registry, and no other but the commands' own", () => {
  const markdown = readFileSync("docs/reference/cli.md", "utf8");
  const known = [...new Set([...Object.values(ERRORS).map(({ exit }) => exit), ...OWN_CODES])].sort((a, b) => a - b);
  expect(exitCodes(markdown)).toEqual(known);
  expect(exitCodes(markdown.replace("| 70 |", "| 71 |"))).not.toEqual(known);
});

it("the comparison sees a missing, an invented and a changed error", () => {
  const markdown = readFileSync("docs/errors.md", "utf8");
  const row = "| `FSYNC_FAILED` | – | 500 | 74 | no |";
  expect(markdown).toContain(row);
  const without = markdown.split("\n").filter((line) => !line.startsWith(row));
  expect(documented(without.join("\n"))).not.toEqual(ERRORS);
  expect(documented(markdown.replace("`FSYNC_FAILED`", "`FSYNC_FINE`"))).not.toEqual(ERRORS);
  expect(documented(markdown.replace(row, row.replace("74", "75")))).not.toEqual(ERRORS);
});
