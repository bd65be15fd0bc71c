// Who may import whom: the rules of ARCHITECTURE.md, checked on the syntax tree. Every form counts: `import`,
// `import type`, `export … from`, `import()`, `typeof import()` and `require()`.
//
// Production and simulation differ in port implementations and in nothing else; that is only true while the
// rooms that decide can't reach the rooms that touch the world.

import { readFileSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { posix } from "node:path";
import {
  describe,
  isNode,
  isTest,
  lineAt,
  type Node,
  parse,
  readSources,
  type SourceFile,
  type Violation,
  walk,
} from "./source.ts";

interface Import {
  readonly path: string;
  readonly line: number;
  readonly specifier: string | undefined;
  /** Erased as a whole. `import { type A } from` is not: it still loads the module. */
  readonly typeOnly: boolean;
}

export interface DirectionsReport {
  readonly files: number;
  readonly imports: number;
  readonly violations: readonly Violation[];
}

const PAGE = "ARCHITECTURE.md";
const LOOPS = ["loops", "postgres", "engine", "electors", "logs", "controller", "agent", "supervisor"];
const SURFACES = ["contract", "api", "client"];
/** What a composition root wires together. */
const EVERY_LAYER = ["core", "ports", ...LOOPS, ...SURFACES, "drivers"];
const CLI_ROOT = ["node:", ...EVERY_LAYER, "node", "entry"];

/**
 * The rules: which rooms a folder's files may import, besides their own room. A row holds for everything below its folder, so that
 * the rows of `cli` and of `cli/server` add up. A house (`core`) means all of its rooms (`core/raft`).
 * `type X`: with `import type` only. `node:` is Node itself, `npm` a package (which belongs to one room), `words` the files of WORDS.
 * Folders with a row `node:` are composition roots: only these wire ports to drivers.
 * ARCHITECTURE.md shows this table: `node scripts/directions.ts --write` writes it there.
 */
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: ["core/kit", "type ports"],
  "core/wal": ["core/raft", "type core/events"],
  "core/health": ["type core/raft"],
  "core/jobs": ["type core/events"],
  "core/archive": ["type core/events"],
  "core/lease": ["core/trust"],
  "core/state": ["core/scopes", "core/txn", "core/values"],
  "core/txn": ["core/events", "core/scopes", "core/values", "type core/jobs"],
  "core/mesh": ["core/events", "type core/archive", "type core/jobs"],
  ports: ["type core"],

  loops: ["core", "ports"],
  postgres: ["core", "ports", "loops"],
  engine: ["core", "ports", "loops"],
  electors: ["core", "ports", "loops", "postgres"],
  logs: ["core", "ports", "loops", "postgres"],
  controller: ["core", "ports", "loops"],
  agent: ["core", "ports", "loops"],
  supervisor: ["core", "ports", "loops"],

  contract: ["core/kit", "type core", "words", "npm"],
  // core/lease and core/txn: what coordinators and islands say to each other, which the routes and the drivers must write and read alike.
  api: ["core/kit", "core/events", "core/lease", "core/txn", "ports", "loops", "contract", "npm"],
  client: ["contract", "core/events", "words"],
  // The dashboard checks proofs of events itself, with the code that everybody checks them with.
  web: ["client", "contract", "core/events", "core/mesh", "words", "npm"],

  drivers: ["core/kit", "type core", "ports", "drivers/http", "drivers/disk", "node:", "npm"],
  // The thread of mesh.sqlite folds the events that it is given: nothing that is decided, and too much for the main thread.
  "drivers/sqlite": ["core/events", "core/mesh"],
  "drivers/coordinators": ["core/lease"],
  "drivers/transactions": ["core/txn", "drivers/coordinators"],
  sim: ["core", "ports", ...LOOPS, ...SURFACES, "node/assembly"],

  "node/assembly": ["core", "ports", ...LOOPS, "contract", "api"],
  "node/worlds": ["node:", ...EVERY_LAYER, "node/assembly", "entry"],
  entry: ["node:", ...EVERY_LAYER],
  cli: ["core/kit", "client", "contract", "words", "npm"],
  "cli/main.ts": CLI_ROOT,
  "cli/library.ts": CLI_ROOT,
  "cli/program.ts": CLI_ROOT,
  "cli/connection": CLI_ROOT,
  "cli/files": CLI_ROOT,
  "cli/run": CLI_ROOT,
  "cli/scope": CLI_ROOT,
  "cli/doctor": CLI_ROOT,
  "cli/schema": CLI_ROOT,
  "cli/server": CLI_ROOT,
  "cli/cluster": CLI_ROOT,
  "cli/cert": CLI_ROOT,
  "cli/config": CLI_ROOT,
  "cli/agent": CLI_ROOT,
  "cli/support": CLI_ROOT,
  "cli/mesh": CLI_ROOT,
  "cli/tc": CLI_ROOT,
  "cli/dev": CLI_ROOT,
  "cli/sim": [...CLI_ROOT, "sim"],
};

/** Words that everybody shares: states, shapes, names. They import types alone, so browsers may load them too. */
const WORDS = [
  "src/core/jobs/model.ts",
  "src/core/mesh/model.ts",
  "src/core/events/names.ts",
  "src/core/kit/api-role.ts",
  "src/core/kit/json.ts",
  "src/ports/audit.ts",
  "src/ports/certificates.ts",
  "src/ports/cluster.ts",
  "src/ports/jobs.ts",
  "src/ports/keys.ts",
  "src/ports/mesh/mesh.ts",
  "src/ports/scopes.ts",
  "src/ports/stored-values.ts",
  "src/ports/views.ts",
];
/** Rooms below these are rooms of their own: core/raft, drivers/disk. */
const HOUSES = ["core", "drivers", "node"];
/** The dashboard is outside of src/: it is built, and runs in browsers. */
const WEB = "web";

/** The best of what the rows of the file's folders say of any of these names: true, "type" (as types only) or false. */
function allowed(path: string, names: readonly string[]): boolean | "type" {
  const folder = path.replace(/^src\//, "");
  const rows = Object.keys(MAY_IMPORT).filter((row) => folder === row || folder.startsWith(`${row}/`));
  const said = new Set(rows.flatMap((row) => MAY_IMPORT[row] ?? []));
  if (names.some((name) => said.has(name))) return true;
  return names.some((name) => said.has(`type ${name}`)) && "type";
}

/** The table as ARCHITECTURE.md shows it: rows that say the same are one line. */
export function directionsText(): string {
  const lines = Map.groupBy(Object.keys(MAY_IMPORT), (row) => {
    const rooms = MAY_IMPORT[row]!;
    if (!EVERY_LAYER.every((layer) => rooms.includes(layer))) return rooms.join(", ");
    return ["every layer", ...rooms.filter((room) => !EVERY_LAYER.includes(room))].join(", ");
  });
  const text = [...lines].map(([rooms, rows]) => `${`${rows.join(" ")}:`.padEnd(14)} ${rooms}\n`);
  return `every layer:   ${EVERY_LAYER.join(", ")}\n${text.join("")}`;
}

/** The page with the table as it is. */
export function withDirections(page: string): string {
  return page.replace(/(?<=```\n)every layer:[^`]*(?=```)/, directionsText);
}

export function checkDirections(sources: readonly SourceFile[]): DirectionsReport {
  const violations: Violation[] = [];
  const packageUsers = new Map<string, Map<string, Import>>();
  let imports = 0;
  for (const file of sources) {
    const found = importsOf(file, violations);
    imports += found.length;
    if (isTest(file.path)) continue;
    const room = roomOf(file.path);
    if (room === undefined) {
      violations.push({
        path: file.path,
        line: 1,
        message: "is in no known room; rooms are listed in scripts/directions.ts",
      });
      continue;
    }
    for (const one of found) {
      const message = refusal(one, room, packageUsers);
      if (message !== undefined) violations.push({ path: one.path, line: one.line, message });
    }
  }
  violations.push(...sharedPackages(packageUsers));
  return { files: sources.length, imports, violations };
}

function refusal(one: Import, room: string, packageUsers: Map<string, Map<string, Import>>): string | undefined {
  const { specifier } = one;
  if (specifier === undefined)
    return "imports something computed; an import's name must be a literal, so that it can be checked";
  if (/^\.\.?(\/|$)/.test(specifier)) {
    return refuseFile(one, room, posix.join(posix.dirname(one.path), specifier));
  }
  if (isBuiltin(specifier) || specifier.startsWith("node:")) {
    if (!specifier.startsWith("node:")) return `imports ${specifier}; write node:${specifier}`;
    if (allowed(one.path, ["node:"]) === true) return undefined;
    return `${room} may not import ${specifier}; only drivers and composition roots touch Node, others take a port`;
  }
  if (/^(#|\/|[a-z]+:)/.test(specifier))
    return `imports ${specifier}; only relative files, node: and npm packages can be checked`;
  const name = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  if (name === "tenure") return "imports the project by its own name; import the room's file";
  if (allowed(one.path, ["npm"]) !== true) return `${room} may not import npm packages (${name})`;
  const users = packageUsers.get(name) ?? new Map<string, Import>();
  if (!users.has(room)) users.set(room, one);
  packageUsers.set(name, users);
  return undefined;
}

function refuseFile(one: Import, room: string, target: string): string | undefined {
  if (isTest(target)) return `imports a test (${target})`;
  const to = roomOf(target);
  if (to === undefined) return `imports ${target}, which is in no known room`;
  if (to === room) return undefined;
  const verdict = allowed(one.path, [to, houseOf(to), ...(WORDS.includes(target) ? ["words"] : [])]);
  if (verdict === true) return undefined;
  if (verdict === false) return `${room} may not import ${to} (${target})`;
  return one.typeOnly ? undefined : `${room} may import ${to} with \`import type\` only (${target})`;
}

function sharedPackages(packageUsers: Map<string, Map<string, Import>>): Violation[] {
  return [...packageUsers].flatMap(([name, users]) => {
    if (users.size < 2) return [];
    const rooms = [...users.keys()].join(" and ");
    return [...users.values()].map(({ path, line }) => ({
      path,
      line,
      message: `${name} is imported from ${rooms}; an npm package belongs to one room`,
    }));
  });
}

/** Those of one file; what can't be checked is added to the violations. */
export function importsOf(file: SourceFile, violations: Violation[]): Import[] {
  const syntax = parse(file);
  for (const error of syntax.errors) violations.push({ path: file.path, line: 1, message: `does not parse: ${error}` });
  for (const comment of syntax.comments) {
    if (!/^\/\s*<reference\b/.test(comment.value)) continue;
    const line = lineAt(file.text, comment.start);
    violations.push({
      path: file.path,
      line,
      message: "has a triple-slash reference, which imports types past every check",
    });
  }
  const imports: Import[] = [];
  walk(syntax.program, (node) => {
    const source = sourceOf(node);
    if (source === undefined) return undefined;
    const specifier = isNode(source) && typeof source.value === "string" ? source.value : undefined;
    const kind = node.importKind ?? node.exportKind;
    const typeOnly = kind === "type" || node.type === "TSImportType";
    imports.push({ path: file.path, line: lineAt(file.text, node.start), specifier, typeOnly });
    return undefined;
  });
  return imports;
}

/** What the node imports from: undefined where it imports nothing, null where that is no single expression. */
function sourceOf(node: Node): unknown {
  switch (node.type) {
    case "ImportDeclaration":
    case "ExportAllDeclaration":
    case "ImportExpression":
    case "TSImportType":
      return node.source ?? null;
    case "ExportNamedDeclaration":
      return node.source ?? undefined;
    case "TSExternalModuleReference":
      return node.expression ?? null;
    case "CallExpression": {
      const callee = node.callee;
      if (!isNode(callee) || callee.type !== "Identifier" || callee.name !== "require") return undefined;
      return (node.arguments as Node[])[0] ?? null;
    }
    default:
      return undefined;
  }
}

export function roomOf(path: string): string | undefined {
  const [src, house, inner, ...rest] = path.split("/");
  if (src === WEB && house === "src") return WEB;
  if (src !== "src" || house === undefined || inner === undefined || !isHouse(house)) return undefined;
  if (!HOUSES.includes(house)) return house;
  return rest.length === 0 ? undefined : `${house}/${inner}`;
}

function isHouse(name: string): boolean {
  return name !== WEB && (HOUSES.includes(name) || Object.hasOwn(MAY_IMPORT, name));
}

function houseOf(room: string): string {
  return room.split("/", 1)[0] ?? room;
}

if (import.meta.main) {
  if (process.argv.includes("--write")) writeFileSync(PAGE, withDirections(readFileSync(PAGE, "utf8")));
  const report = checkDirections(readSources(process.cwd(), ["src", "web/src"]));
  for (const violation of report.violations) console.error(describe(violation));
  console.log(`${report.files} files, ${report.imports} imports checked, ${report.violations.length} violations`);
  if (report.files === 0 || report.imports === 0) {
    console.error("nothing was checked: no source files or no imports were found under src/");
    process.exitCode = 1;
  } else if (report.violations.length > 0) process.exitCode = 1;
}
