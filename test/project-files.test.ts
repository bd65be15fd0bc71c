// What the project's own pages say about the code: SECURITY.md, the templates of issues and pull requests, docs/releasing.md and
// docs/upgrading.md. Their links lead somewhere, their commands would be accepted, and what they list is what the code has.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { ROLES, ROUTES } from "../src/contract/index.ts";
import { PROTOCOL_MAX, PROTOCOL_MIN } from "../src/drivers/wire/handshake/hello.ts";
import { SCHEMA_VERSION } from "../src/postgres/schema/schema.ts";
import { blocksOf, commandsOf, mentionsOf, problemOf, tenureCalls } from "./runbooks/documents.ts";

const TEMPLATES = ".github/ISSUE_TEMPLATE";
const PAGES = [
  "SECURITY.md",
  "CODE_OF_CONDUCT.md",
  ".github/pull_request_template.md",
  "docs/releasing.md",
  "docs/upgrading.md",
];

function read(path: string): string {
  return readFileSync(path, "utf8");
}

interface Manifest {
  readonly version: string;
  readonly scripts: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, unknown>>;
}
const { version, scripts, exports } = JSON.parse(read("package.json")) as Manifest;

/** As GitHub names the place of a heading. */
function anchors(text: string): string[] {
  const headings = [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, title = ""]) => title.toLowerCase());
  return headings.map((title) => title.replaceAll(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-"));
}

/** Links to files or places that are not there. */
function deadLinks(page: string, text = read(page)): string[] {
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
  return links.filter((link) => {
    if (/^https?:/.test(link)) return false;
    const [file = "", anchor] = link.split("#");
    const path = file === "" ? page : normalize(join(dirname(page), file));
    if (!existsSync(path)) return true;
    return anchor !== undefined && !anchors(path === page ? text : read(path)).includes(anchor);
  });
}

/** Commands that would be refused, and scripts and files that are not there. */
function wrongCommands(text: string): string[] {
  const shown = blocksOf(text)
    .flatMap(commandsOf)
    .flatMap(tenureCalls)
    .map((words) => problemOf(words));
  const named = mentionsOf(text).map((mention) => problemOf(tenureCalls(mention)[0] ?? [], true));
  const run = [...text.matchAll(/\bnpm run ([\w:-]+)/g)].map(([, name = ""]) => name);
  const files = [...text.matchAll(/`((?:src|test|scripts|docs|deploy|\.github)\/[\w./-]+)`/g)].map(
    ([, file = ""]) => file,
  );
  return [
    ...[...shown, ...named].filter((problem) => problem !== undefined),
    ...run.filter((name) => !Object.hasOwn(scripts, name)).map((name) => `there is no script ${name}`),
    ...files.filter((file) => !file.includes("VERSION") && !existsSync(file)).map((file) => `there is no ${file}`),
  ];
}

describe.each(PAGES)("%s", (page) => {
  it("leads nowhere that does not exist", () => expect(deadLinks(page)).toEqual([]));
  it("names no command that would be refused", () => expect(wrongCommands(read(page))).toEqual([]));
});

describe("these checks", () => {
  it.each([
    ["[a](docs/none.md)", "docs/none.md"],
    ["[a](docs/guarantees.md#none)", "docs/guarantees.md#none"],
    ["[a](#none)", "#none"],
  ])("see that %s leads nowhere", (text, link) => expect(deadLinks("SECURITY.md", text)).toEqual([link]));

  it.each([
    ["`tenure key destroy`", "key has no destroy"],
    ["```sh\ntenure cluster snapshot keep a.snap\n```\n", "cluster snapshot has no keep"],
    ["`npm run test:none`", "there is no script test:none"],
    ["`test/none.test.ts`", "there is no test/none.test.ts"],
  ])("see that %j would be refused", (text, why) => expect(wrongCommands(text)).toEqual([why]));
});

describe("SECURITY.md", () => {
  const table = blockAfter(read("SECURITY.md"), "## Who is trusted");

  it("has a row for each role, and for each kind of certificate that the API knows beside these", () => {
    for (const role of ROLES) expect(table, role).toMatch(new RegExp(`^\\| [^|]*\`${role}\`[^|]*\\|`, "m"));
    const kinds = Object.values(ROUTES).flatMap((route) => ("identities" in route ? (route.identities ?? []) : []));
    expect(new Set(kinds)).toEqual(new Set(["server", "tc", "operator"]));
    for (const kind of ["server", "tc"]) expect(table).toContain(`\`/${kind}/…\``);
  });

  it("names what answers without any key", () => {
    const open = Object.values(ROUTES).filter(({ role }) => role === "public");
    const [row = ""] = /^\| nothing but the network .*$/m.exec(table) ?? [];
    expect(open.map(({ path }) => path).toSorted()).toEqual(["/livez", "/readyz"]);
    for (const { path } of open) expect(row).toContain(`\`${path}\``);
  });
});

describe("docs/releasing.md", () => {
  it("counts every export of the library as public, and no other", () => {
    const [row = ""] = /^\| the exports of .*$/m.exec(read("docs/releasing.md")) ?? [];
    const named = [...row.matchAll(/`(tenure[\w/-]*)`/g)].map(([, name = ""]) => name);
    const subpaths = Object.keys(exports).filter((path) => path !== "./package.json");
    expect(named).toEqual(subpaths.map((path) => path.replace(".", "tenure")));
  });
});

describe("docs/upgrading.md", () => {
  const text = read("docs/upgrading.md");

  it("has a row for this release, with the versions that the code speaks", () => {
    expect(text).toContain(`| ${version} | ${PROTOCOL_MIN}–${PROTOCOL_MAX} | ${SCHEMA_VERSION} |`);
    expect(text).toContain(`(this release: ${PROTOCOL_MIN} to ${PROTOCOL_MAX})`);
    expect(text).toContain(`The schema of this release is version ${SCHEMA_VERSION}.`);
  });

  it("has a row for each release whose formats are stored", () => {
    for (const stored of readdirSync("test/compat").filter((name) => /^\d/.test(name)))
      expect(text).toMatch(new RegExp(`^\\| ${stored.replaceAll(".", "\\.")} \\|`, "m"));
  });
});

describe("the forms for issues", () => {
  const forms = readdirSync(TEMPLATES).filter((name) => name !== "config.yml");
  const TYPES = ["markdown", "textarea", "input", "dropdown", "checkboxes"];
  interface Form {
    readonly name: string;
    readonly description: string;
    readonly body: readonly {
      readonly type: string;
      readonly id?: string;
      readonly attributes: { readonly label?: string };
    }[];
  }

  it("are three", () => expect(forms.toSorted()).toEqual(["bug.yml", "feature.yml", "question.yml"]));

  it.each(forms)("%s has what GitHub needs, and commands that exist", (file) => {
    const { name, description, body } = parse(read(join(TEMPLATES, file))) as Form;
    expect(name.length * description.length).toBeGreaterThan(0);
    const asked = body.filter(({ type }) => type !== "markdown");
    expect(asked.length).toBeGreaterThan(0);
    expect(new Set(asked.map(({ id }) => id)).size).toBe(asked.length);
    for (const { type, id, attributes } of body) {
      expect(TYPES).toContain(type);
      if (type !== "markdown") expect(attributes.label, id).toMatch(/./);
    }
    expect(wrongCommands(read(join(TEMPLATES, file)))).toEqual([]);
  });

  it("ask for the bundle of a cluster that is reported", () => {
    expect(read(join(TEMPLATES, "bug.yml"))).toContain("`tenure support bundle`");
  });
});

function blockAfter(text: string, heading: string): string {
  const [, part = ""] = text.split(`${heading}\n`);
  return part.split("\n## ")[0]!;
}
