// Every trap, decision and section that a source or a document cites is explained in the repository (docs/citations.md).

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { checkCitations, definitionsIn } from "../scripts/citations.ts";
import { describe as text, readSources } from "../scripts/source.ts";

const FOLDERS = ["src", "test", "docs", "scripts", "web/src", "bench", "examples", "deploy"];
const PAGES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
const sources = [
  ...readSources(process.cwd(), FOLDERS, /\.(tsx?|mjs|md|sql|txt|ya?ml|toml|service)$/),
  ...PAGES.map((path) => ({ path, text: readFileSync(path, "utf8") })),
];
const definitions = definitionsIn(sources);
/** The page that lists the sections, and the citations that are planted below. */
const DEFINING = ["docs/citations.md", "test/citations.test.ts"];

function found(planted: string): string[] {
  return checkCitations([{ path: "src/engine/x.ts", text: planted }], definitions).violations.map(text);
}

describe("this repository", () => {
  it("explains what it cites, and something was checked", () => {
    const citing = sources.filter(({ path }) => !DEFINING.includes(path));
    const report = checkCitations(citing, definitions);
    expect(report.violations.map(text)).toEqual([]);
    expect(report.citations).toBeGreaterThan(1_000);
  });

  it("explains every trap once", () => {
    const traps = sources.find(({ path }) => path === "docs/traps.md")?.text ?? "";
    const numbers = [...traps.matchAll(/^(\d+[a-z]?)\. /gm)].map(([, number]) => number);
    expect(numbers).toHaveLength(definitions.get("trap")?.size ?? 0);
    expect(numbers.length).toBeGreaterThan(70);
  });
});

describe("a citation of what nobody explains is refused", () => {
  it.each([
    ["trap", "// A reason (trap 99).", "trap 99"],
    ["trap's letter", "// A reason (trap 49z).", "trap 49z"],
    ["trap in a list", "// As traps 65, 66 and 98 say.", "traps 65, 66 and 98"],
    ["decision", "// Since decision 999.", "decision 999"],
    ["decision with zeros", "// Since Decision 0999.", "Decision 0999"],
    ["range of decisions", "Decisions 23 to 998 have the reasons.", "Decisions 23 to 998"],
    ["decision's file", "[why](decisions/0024-another.md)", "decisions/0024-another.md"],
    ["decision of the design", 'it("D77: something", f);', "D77"],
    ["section of the Raft paper", "// Terms (§2.3).", "§2.3"],
    ["section of the thesis, on two lines", "// Stickiness (thesis\n// §5.1).", "thesis §5.1"],
    ["section of the specification", "// (specification §6.4)", "specification §6.4"],
    ["section of an unknown work", "// (mesh.md §5.1)", "mesh.md §5.1"],
  ])("%s", (_kind, planted, written) => {
    expect(found(planted)).toEqual([
      `src/engine/x.ts:1: cites ${written}, which is explained nowhere (docs/citations.md)`,
    ]);
  });

  it("and one that is explained is not", () => {
    const fine =
      "// traps 1, 49a and 56d, decision 24, design D11, §5.4.1, thesis §9.6, specification §2.3, specs/node-controller.md §9";
    expect(found(fine)).toEqual([]);
    expect(found(fine.replaceAll(" ", "\n * "))).toEqual([]);
  });
});
