// docs/guarantees.md and docs/values.md name a test for each guarantee. Each row must link a file that exists and quote a title in it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const ROW = /^\| (?!you may rely on|---)(.+) \| .*\[[^\]]+\]\(([^)]+)\) "(.+)" \|$/;

const [, values = ""] = /\n## Guarantees\n([\s\S]*?)\n## /.exec(readFileSync("docs/values.md", "utf8")) ?? [];
const lines = `${readFileSync("docs/guarantees.md", "utf8")}\n${values}`.split("\n");
const rows = lines.filter((line) => line.startsWith("| ") && !/^\| (you may rely on|---)/.test(line));

it.for(rows)("%s", (row) => {
  const [, , file = "", title = ""] = ROW.exec(row) ?? [];
  expect(title, "a row has a linked file and a quoted title").not.toBe("");
  const text = readFileSync(join("docs", file), "utf8");
  expect(text.includes(title), `${file} has a test named "${title}"`).toBe(true);
});

it("has guarantees at all", () => {
  expect(rows.length).toBeGreaterThan(20);
  expect(values.split("\n| ").length).toBeGreaterThan(8);
});
