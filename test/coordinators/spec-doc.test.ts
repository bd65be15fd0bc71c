// docs/reference/tc-specification.md has a row for each item of the specification of the transaction coordinators; docs/coordinators.md and
// docs/transactions.md name tests as well: each linked file exists, each quoted title is in its file, and no item is left out.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { TC_MUTANTS } from "../../src/sim/mutants/tc-list.ts";

const SPECIFICATION = "docs/reference/tc-specification.md";
const PAGE = "docs/coordinators.md";
const TRANSACTIONS = "docs/transactions.md";
const STATUSES = ["yes", "decision", "not yet"];

const LINK = /\[[^\]]+\]\(([^)#]+)(?:#[^)]*)?\)(?: "((?:[^"]|\\")+)")?/g;

/** Names of the specification as it spells them: endpoints, headers, codes. */
const ITEMS = [
  "POST /v1/tc/cluster/announce",
  "GET /v1/tc/cluster/list",
  "POST /v1/tc/cluster/leave",
  "GET /v1/tc/leader",
  "POST /v1/tc/lease/acquire",
  "POST /v1/tc/lease/renew",
  "POST /v1/tc/lease/release",
  "POST /v1/tc/rm/register",
  "POST /v1/tc/rm/unregister",
  "GET /v1/tc/rm/list",
  "X-Lockd-TC-Leave-Fanout: 1",
  "X-Lockd-TC-Replicate: 1",
  "tc_unavailable",
  "tc_not_leader",
  "tc_term_stale",
  "tc_rm_replication_failed",
  "tc-cluster/leases/<identity>",
  "tc-rm-members",
];

/** How many rows each part has in the specification. */
const PARTS = {
  "Deployment model and `--join`": 7,
  "Identity and certificates": 13,
  "Data model": 3,
  Membership: 20,
  "Leader election": 19,
  "Registry of RMs": 10,
  Invariants: 9,
  "Test expectations": 11,
};

function read(path: string): string {
  return readFileSync(path, "utf8");
}

/** The cells of each row; those of the head and the rule are no rows. */
function rowsOf(text: string): readonly (readonly string[])[] {
  const rows = text.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| specified"));
  return rows.map((row) => row.slice(2, -2).split(" | "));
}

describe.each([SPECIFICATION, PAGE, TRANSACTIONS])("%s", (page) => {
  const links = [...read(page).matchAll(LINK)].map(([, path, title]) => ({ path: path!, title }));

  it.each(links.filter(({ path }) => !/^[a-z]+:/.test(path)))("$path $title", ({ path, title }) => {
    const file = join(dirname(page), path);
    expect(existsSync(file), `${file} exists`).toBe(true);
    // In quotes: a title, and not a part of one.
    if (title !== undefined) expect(read(file).includes(`"${title}"`), `${file} has a test "${title}"`).toBe(true);
  });
});

describe("the specification, row by row", () => {
  const text = read(SPECIFICATION);
  const rows = rowsOf(text);

  it.each(rows)("%s: %s", (...[specified, status, where, shown]) => {
    expect(specified).not.toBe("");
    expect(STATUSES).toContain(status);
    // What is not there has nothing that shows it; everything else has a test.
    if (status === "not yet") expect([where!.length > 10, shown]).toEqual([true, "–"]);
    else expect(shown).toMatch(/\]\([^)]+\) "/);
    if (status === "decision") expect(where?.length).toBeGreaterThan(10);
  });

  it.each(ITEMS)("has %s", (item) => {
    expect(rows.some(([specified]) => specified!.includes(`\`${item}\``))).toBe(true);
  });

  it.each(Object.entries(PARTS))("%s has %i rows", (part, count) => {
    const section = text.split("\n## ").find((one) => one.startsWith(`${part}\n`)) ?? "";
    expect(rowsOf(section)).toHaveLength(count);
  });
});

describe("docs/coordinators.md", () => {
  const [, section = ""] = read(PAGE).split("\n## Guarantees\n");
  const guarantees = section.split("\n").filter((line) => /^\| (?!you may|---|specified)/.test(line));

  it.each(guarantees.filter((_, at) => at < guarantees.findIndex((line) => line.startsWith("| invariant"))))(
    "%s has a test",
    (line) => expect(line).toMatch(/\]\([^)]+\) "[^"]+"/),
  );
});

describe(TRANSACTIONS, () => {
  const [, section = ""] = read(TRANSACTIONS).split("| you may rely on | shown by |\n|---|---|\n");
  const [table = ""] = section.split("\n\n");

  it("has guarantees", () => expect(table.split("\n").length).toBeGreaterThan(10));
  it.each(table.split("\n"))("%s has a test", (line) => expect(line).toMatch(/\]\([^)]+\) "[^"]+"/));
});

it("README.md says how many mistakes are planted in coordinators", () => {
  expect(read("README.md")).toContain(` ${TC_MUTANTS.length} in coordinators`);
});
