// The planted mistakes are planted by text: here each of them still finds its line, exactly once, and changes it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ELECTOR_MUTANTS } from "./elector-list.ts";
import { JOBS_MUTANTS } from "./jobs-list.ts";
import { LEAKS } from "./leaks.ts";
import { MUTANTS } from "./list.ts";
import { MESH_MUTANTS } from "./mesh-list.ts";
import { plant } from "./patch.ts";
import { SPREAD_MUTANTS } from "./spread-list.ts";
import { TC_MUTANTS } from "./tc-list.ts";
import { TXN_MUTANTS } from "./txn-list.ts";

const SRC = join(import.meta.dirname, "../..");
const ALL = [
  ...MUTANTS,
  ...ELECTOR_MUTANTS,
  ...JOBS_MUTANTS,
  ...MESH_MUTANTS,
  ...SPREAD_MUTANTS,
  ...TC_MUTANTS,
  ...TXN_MUTANTS,
  ...LEAKS,
];

function source(file: string): string {
  return readFileSync(join(SRC, file), "utf8");
}

describe("every planted mistake", () => {
  test.each(ALL)("$name: its lines stand exactly once in their files, and change", ({ edits }) => {
    expect(edits.length).toBeGreaterThan(0);
    for (const { file, find, replace } of edits) {
      expect(source(file).split(find).length - 1, `${file}: ${find}`).toBe(1);
      expect(replace).not.toBe(find);
    }
  });

  test("has a name of its own", () => {
    const names = ALL.map(({ name }) => name);
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  });

  test("is one of at least 24, of 14 of electors, of 7 of jobs, of 24 of the mesh, of 8 of the spread, of 23 of coordinators, or of 22 of transactions", () => {
    expect(MUTANTS.length).toBeGreaterThanOrEqual(24);
    expect(ELECTOR_MUTANTS.length).toBeGreaterThanOrEqual(14);
    expect(JOBS_MUTANTS.length).toBeGreaterThanOrEqual(7);
    expect(MESH_MUTANTS.length).toBeGreaterThanOrEqual(24);
    expect(SPREAD_MUTANTS.length).toBeGreaterThanOrEqual(8);
    expect(TC_MUTANTS.length).toBeGreaterThanOrEqual(23);
    expect(TXN_MUTANTS.length).toBeGreaterThanOrEqual(22);
  });
});

describe("planting", () => {
  const edit = { file: "x.ts", find: "a", replace: "b" };

  test("changes the line and nothing else", () => {
    expect(plant("1 a 2", edit)).toBe("1 b 2");
  });

  test.each(["1 2", "a a"])("refuses a line that does not stand exactly once: %s", (text) => {
    expect(() => plant(text, edit)).toThrow("x.ts: the line to change stands there");
  });
});
