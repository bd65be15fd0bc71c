// The index of the documents names each of them, no link in a document is dead, and all are in plain words.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { checkIndex, checkLinks } from "../scripts/links.ts";
import { checkWords } from "../scripts/words.ts";
import { describe as text, readSources, type SourceFile } from "../scripts/source.ts";

const MARKDOWN = /\.md$/;
/** Not packages/: a build copies docs/ there. */
const FOLDERS = ["docs", "src", "test", "scripts", "web/src", "bench", "examples", "deploy"];
const INDEX = "docs/README.md";
/** Each has an index of its own, which is one line of the index of all. */
const INDEXED_FOLDERS = ["docs/runbooks", "docs/decisions"];

const read = (path: string): SourceFile => ({ path, text: readFileSync(path, "utf8") });
const documents = [
  ...readdirSync(".")
    .filter((name) => MARKDOWN.test(name))
    .map(read),
  // A build that runs at this moment has files of its own there.
  ...readdirSync("packages")
    .map((name) => `packages/${name}/README.md`)
    .filter((path) => existsSync(path))
    .map(read),
  ...readSources(process.cwd(), FOLDERS, MARKDOWN),
];
const pages = documents.map(({ path }) => path).filter((path) => path.startsWith("docs/"));

describe("the index", () => {
  const isInFolder = (path: string): boolean =>
    INDEXED_FOLDERS.some((folder) => path.startsWith(`${folder}/`) && path !== `${folder}/README.md`);

  it("names every document", () => {
    const named = pages.filter((path) => !isInFolder(path));
    expect(named.length).toBeGreaterThan(30);
    expect(checkIndex(read(INDEX), named).map(text)).toEqual([]);
  });

  it.each(INDEXED_FOLDERS)("of %s names every page there", (folder) => {
    const inside = pages.filter((path) => path.startsWith(`${folder}/`));
    expect(inside.length).toBeGreaterThan(20);
    expect(checkIndex(read(`${folder}/README.md`), inside).map(text)).toEqual([]);
  });

  it("is refused where a document is missing, or named twice", () => {
    const index = { path: INDEX, text: "- [a](a.md)\n- [b](b/c.md#d)\n- [a again](./a.md)\n" };
    expect(checkIndex(index, [INDEX, "docs/a.md", "docs/b/c.md", "docs/b/e.md"]).map(text)).toEqual([
      "docs/README.md:1: names docs/a.md 2 times",
      "docs/README.md:1: does not name docs/b/e.md",
    ]);
  });
});

describe("a link of a document", () => {
  it("leads to a file or a folder that exists, and to a heading in it; many were checked", () => {
    const report = checkLinks(documents, existsSync);
    expect(report.violations.map(text)).toEqual([]);
    expect(report.links).toBeGreaterThan(500);
    expect(report.anchors).toBeGreaterThan(50);
  });

  const other = "# The `other` page\n\n## Where?\n\n## Where?\n\n```sh\n# no heading\n```\n";
  const found = (planted: string): string[] =>
    checkLinks(
      [
        { path: "docs/a.md", text: planted },
        { path: "docs/b/other.md", text: other },
      ],
      (path) => ["docs/a.md", "docs/b", "docs/b/other.md", "README.md"].includes(path),
    ).violations.map(text);

  it.each([
    ["a file that does not exist", "[a](c.md)", "links to c.md: there is no docs/c.md"],
    ["a path from another folder", "[a](b/../b/none.md#x)", "links to b/../b/none.md#x: there is no docs/b/none.md"],
    ["a path that leaves the repository", "[a](../../x.md)", "links to ../../x.md: there is no ../x.md"],
    [
      "an anchor of a page",
      "[a](b/other.md#when)",
      "links to b/other.md#when: docs/b/other.md has no heading of this name",
    ],
    ["an anchor of its own", "# B\n[a](#c)", "links to #c: docs/a.md has no heading of this name"],
    ["a comment in a block, as an anchor", "[a](b/other.md#no-heading)", "has no heading of this name"],
    ["a definition", "[a]\n\n[a]: none.md", "links to none.md: there is no docs/none.md"],
    ["a link after a lone backquote", "a ` b\n\n[a](none.md) `c`", "links to none.md: there is no docs/none.md"],
    ["a link over two lines", "[a\nb](none.md)", "links to none.md: there is no docs/none.md"],
  ])("is refused: %s", (_what, planted, says) => {
    expect(found(planted)).toEqual([expect.stringContaining(says)]);
  });

  it("is not refused where it is right, leaves the repository, or is code", () => {
    const fine = [
      "# Own",
      '[a](b/other.md#the-other-page), [b](b/other.md#where-1), [c](b), [d](../README.md), [e](#own), [f](b/other.md "t")',
      "[g](https://example.com/none.md#x), [h](mailto:a@example.com), `[i](none.md)`, ``[j](`none.md)``",
      "```md\n[k](none.md)\n```",
    ].join("\n\n");
    expect(found(fine)).toEqual([]);
  });
});

describe("words", () => {
  it("with a plain substitute are in no document", () => {
    expect(checkWords(documents).map(text)).toEqual([]);
  });

  it("are found in prose, and not in code, in names of tests and in addresses", () => {
    const page = [
      "It was told so beside them, of late.",
      'Not `told`, nor "whoever is told", nor [this](mended.md), because of late answers.',
      "```",
      "mend it",
      "```",
      "Mended.",
    ];
    expect(checkWords([{ path: "docs/a.md", text: page.join("\n") }]).map(text)).toEqual([
      'docs/a.md:1: says "told": reported, notified, returned',
      'docs/a.md:1: says "beside": next to',
      'docs/a.md:1: says "of late": recently',
      'docs/a.md:6: says "Mended": repair',
    ]);
  });
});
