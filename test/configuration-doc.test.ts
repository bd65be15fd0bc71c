// docs/reference/configuration.md lists every option of postgres() with its default, and every variable that is read.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { readSources } from "../scripts/source.ts";
import { ENVIRONMENT } from "../src/electors/postgres/environment.ts";
import { OPTION_NAMES, type PostgresSettings, settingsOf } from "../src/electors/postgres/options.ts";

const OPTION_ROW = /^\| `(\w+)` \| (?:`(TENURE_\w+)`|–) \| (?:`([^`]+)`|–) \| (.{20,}) \|$/;
const VARIABLE = /\bTENURE_[A-Z]+(?:_[A-Z]+)*\b/g;

interface Row {
  readonly variable: string | undefined;
  readonly default: string | undefined;
}

const markdown = readFileSync("docs/reference/configuration.md", "utf8");

function options(text: string): Record<string, Row> {
  const rows: Record<string, Row> = {};
  for (const line of text.split("\n").filter((one) => /^\| `[a-z]/.test(one))) {
    const match = OPTION_ROW.exec(line);
    expect(match, `a row is not in the table's form: ${line}`).not.toBeNull();
    rows[match?.[1] ?? ""] = { variable: match?.[2], default: match?.[3] };
  }
  return rows;
}

/** What `settingsOf` makes of nothing, by the option's name. */
function defaults({ timing, ...settings }: PostgresSettings): Record<string, unknown> {
  return { ...settings, ...timing };
}

function variables(text: string): string[] {
  return [...new Set(text.match(VARIABLE))].sort();
}

it("lists the options of postgres(), and no other", () => {
  expect(Object.keys(options(markdown)).sort()).toEqual([...OPTION_NAMES].sort());
});

it("gives each option's default as it is", () => {
  const actual = defaults(settingsOf({ url: "postgres://h/d" }));
  for (const [name, row] of Object.entries(options(markdown))) {
    const value = actual[name];
    expect(row.default, name).toBe(value === undefined ? undefined : `${value as string | number}`);
  }
});

it("names the variable of each option that the specification has one for", () => {
  const rows = options(markdown);
  for (const [variable, { option }] of Object.entries(ENVIRONMENT)) {
    if (option !== "enabled") expect(rows[option]?.variable, option).toBe(variable);
  }
});

it("lists every variable that the sources name, and no other", () => {
  const sources = readSources(".", ["src"]).filter(({ path }) => !path.endsWith(".test.ts"));
  expect(sources.length).toBeGreaterThan(50);
  expect(variables(markdown)).toEqual(variables(sources.map(({ text }) => text).join("\n")));
});

it("sees a missing and an invented option, and a changed default", () => {
  const row = "| `retryMinMs` | `TENURE_ACQUIRE_BACKOFF_MS_MIN` | `200` |";
  expect(markdown).toContain(row);
  expect(Object.keys(options(markdown.replace(row, "| was here |")))).not.toContain("retryMinMs");
  expect(options(markdown.replace(row, row.replace("retryMinMs", "invented")))).toHaveProperty("invented");
  expect(options(markdown.replace(row, row.replace("200", "201")))["retryMinMs"]?.default).toBe("201");
});
