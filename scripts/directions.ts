// Who may import whom: the rules of ARCHITECTURE.md, checked on the syntax tree. Every form counts: `import`,
// `import type`, `export … from`, `import()`, `typeof import()` and `require()`.
//
// Production and simulation differ in port implementations and in nothing else; that is only true while the
// rooms that decide can't reach the rooms that touch the world.

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

/** Composition roots: only these wire ports to drivers, and import Node. The other folders of cli/ talk to servers, and print. */
const ROOTS = [
  "src/entry",
  "src/node/worlds",
  "src/cli/main.ts",
  ...["connection", "files"].map((shared) => `src/cli/${shared}`),
  ...["run", "scope", "doctor", "schema"].map((command) => `src/cli/${command}`),
  ...["server", "cluster", "cert", "config", "agent", "support"].map((command) => `src/cli/${command}`),
  ...["dev", "sim"].map((tool) => `src/cli/${tool}`),
];
/** The liar is reached by the command that runs it (and by tests). */
const SIM_USERS = ["src/cli/sim"];

/** The dashboard stands outside of src/: it is built, and runs in browsers. */
const WEB = "web";
/** Words that everybody shares: states, shapes, names. They import types alone, so browsers may load them too. */
const VOCABULARY = [
  "src/core/jobs/model.ts",
  "src/core/events/names.ts",
  "src/core/kit/api-role.ts",
  "src/core/kit/json.ts",
];
const SPEAKERS = ["contract", "client", "cli", WEB];

const LOOPS = ["engine", "electors", "logs", "controller", "agent", "supervisor", "mesh"];
/** What several loops share: helpers of any loop, and the sessions and the schema of electors and logs in Postgres. */
const SHARED = ["loops", "postgres"];
const ROOMS = [
  "core",
  "ports",
  ...SHARED,
  ...LOOPS,
  "contract",
  "api",
  "client",
  "drivers",
  "node",
  "cli",
  "entry",
  "sim",
];
/** Rooms below these are rooms of their own: core/raft, drivers/disk. */
const HOUSES = ["core", "drivers", "node"];
/** The other rooms may not import any npm package. */
const PACKAGE_ROOMS = ["drivers", "api", "contract", "cli", WEB];

/** Whether `from` may import `to`, beyond itself. "type" means: as types only. */
function allowed(from: string, to: string): boolean | "type" {
  if (from === "core/wal" && to === "core/raft") return true;
  if (from === "core/health" && to === "core/raft") return "type";
  if (["core/wal", "core/jobs", "core/archive"].includes(from) && to === "core/events") return "type";
  const house = houseOf(from);
  const target = houseOf(to);
  if (house === "core") return to === "core/kit" || (target === "ports" && "type");
  if (house === "ports") return target === "core" && "type";
  if (to === "loops" && [...LOOPS, "postgres", "api"].includes(house)) return true;
  if (to === "postgres" && ["electors", "logs"].includes(house)) return true;
  if ([...LOOPS, ...SHARED].includes(house)) return target === "core" || target === "ports";
  if (to === "drivers/http" && house === "drivers") return true;
  if (house === "drivers") return target === "ports" || to === "core/kit" || (target === "core" && "type");
  if (house === "contract") return to === "core/kit" || (target === "core" && "type");
  if (house === "api") return target === "contract" || target === "ports" || ["core/kit", "core/events"].includes(to);
  if (house === "client") return target === "contract";
  if (house === "cli") return target === "client" || target === "contract" || to === "core/kit";
  if (house === WEB) return target === "client" || target === "contract";
  if (house === "node") return !["drivers", "entry", "cli", "client", "node"].includes(target);
  if (house === "sim") return to !== "node/worlds" && !["drivers", "entry", "cli"].includes(target);
  return false;
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
    if (houseOf(room) === "drivers" || isIn(ROOTS, one.path)) return undefined;
    return `${room} may not import ${specifier}; only drivers and composition roots touch Node, others take a port`;
  }
  if (/^(#|\/|[a-z]+:)/.test(specifier))
    return `imports ${specifier}; only relative files, node: and npm packages can be checked`;
  const name = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  if (name === "tenure") return "imports the project by its own name; import the room's file";
  if (!PACKAGE_ROOMS.includes(houseOf(room))) return `${room} may not import npm packages (${name})`;
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
  if (VOCABULARY.includes(target) && SPEAKERS.includes(houseOf(room))) return undefined;
  if (houseOf(to) === "sim") return isIn(SIM_USERS, one.path) ? undefined : `${room} may not import sim (${target})`;
  if (isIn(ROOTS, one.path))
    return ["entry", "node/worlds"].includes(room) && to === "cli"
      ? `${room} may not import ${to} (${target})`
      : undefined;
  const verdict = allowed(room, to);
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

function importsOf(file: SourceFile, violations: Violation[]): Import[] {
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
  if (src !== "src" || house === undefined || inner === undefined || !ROOMS.includes(house)) return undefined;
  if (!HOUSES.includes(house)) return house;
  return rest.length === 0 ? undefined : `${house}/${inner}`;
}

/** Whether one of them is this file, or a folder that holds it. */
function isIn(places: readonly string[], path: string): boolean {
  return places.some((place) => path === place || path.startsWith(`${place}/`));
}

function houseOf(room: string): string {
  return room.split("/", 1)[0] ?? room;
}

if (import.meta.main) {
  const report = checkDirections(readSources(process.cwd(), ["src", "web/src"]));
  for (const violation of report.violations) console.error(describe(violation));
  console.log(`${report.files} files, ${report.imports} imports checked, ${report.violations.length} violations`);
  if (report.files === 0 || report.imports === 0) {
    console.error("nothing was checked: no source files or no imports were found under src/");
    process.exitCode = 1;
  } else if (report.violations.length > 0) process.exitCode = 1;
}
