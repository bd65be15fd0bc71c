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

it("the comparison sees a missing, an invented and a changed error", () => {
  const markdown = readFileSync("docs/errors.md", "utf8");
  const row = "| `FSYNC_FAILED` | – | 500 | 74 | no |";
  expect(markdown).toContain(row);
  const without = markdown.split("\n").filter((line) => !line.startsWith(row));
  expect(documented(without.join("\n"))).not.toEqual(ERRORS);
  expect(documented(markdown.replace("`FSYNC_FAILED`", "`FSYNC_FINE`"))).not.toEqual(ERRORS);
  expect(documented(markdown.replace(row, row.replace("74", "75")))).not.toEqual(ERRORS);
});
