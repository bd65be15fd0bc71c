// House style as rules over source files; test/tidy.test.ts runs them on the repository and plants a violation
// of each. An exception is listed here with its reason; one for a function that became short is itself a violation.

import { globalReferences } from "./globals.ts";
import {
  isNode,
  isTest,
  lineAt,
  type Node,
  parse,
  type SourceFile,
  type Syntax,
  type Violation,
  walk,
} from "./source.ts";

const FUNCTION_LINES_MAX = 70;
/** From here on a warning: read it again, and split it where there are two concepts, not where the limit is. */
const FILE_LINES_WARNED = 400;
const FILE_LINES_MAX = 700;
const FOLDER_FILES_MAX = 25;

interface Exception {
  readonly max: number;
  readonly why: string;
}

/** Longer functions, as `path#name`. */
const LONG_FUNCTIONS: Readonly<Record<string, Exception>> = {};

const LONG_FILES: Readonly<Record<string, Exception>> = {
  "src/core/raft/raft.ts": { max: 820, why: "has the rules of Raft in one place, in the order of the paper" },
};

/** Where time, randomness, timers and the process itself come in: everywhere else they are ports. */
const TOUCHES_THE_WORLD = /^src\/(drivers|entry|node\/worlds|cli|client)\//;
const GLOBAL_EXCEPTIONS: readonly { path: RegExp; name: string; why: string }[] = [
  {
    path: /^src\/sim\/kernel/,
    name: "setImmediate",
    why: "the kernel lets promises settle between two virtual instants",
  },
];

const BANNED_GLOBALS = new Set([
  "Date",
  "Temporal",
  "performance",
  "process",
  "console",
  "crypto",
  "fetch",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "queueMicrotask",
  "globalThis",
  "global",
  "eval",
  "Function",
  "WeakRef",
  "FinalizationRegistry",
]);
const BANNED_MEMBERS = new Set(["Math.random", "AbortSignal.timeout"]);

const FILE_NAME = /^[a-z0-9]+(-[a-z0-9]+)*(\.(test|bench|d|config))?\.ts$/;
const FOLDER_NAME = /^\.?[a-z0-9]+(-[a-z0-9]+)*$/;
const LEFTOVER = /\b(TODO|FIXME|XXX|HACK)\b/;
const TEST_FUNCTIONS = new Set(["it", "test", "describe", "suite", "bench"]);

export interface TidyReport {
  readonly files: number;
  readonly functions: number;
  readonly violations: readonly Violation[];
  readonly warnings: readonly Violation[];
}

export function checkTidy(sources: readonly SourceFile[]): TidyReport {
  const violations: Violation[] = [];
  const warnings: Violation[] = [];
  const used = new Set<string>();
  let functions = 0;
  for (const file of sources) {
    const syntax = parse(file);
    const report = (offset: number, message: string): void => {
      violations.push({ path: file.path, line: lineAt(file.text, offset), message });
    };
    for (const error of syntax.errors) report(0, `does not parse: ${error}`);
    checkName(file, report);
    checkComments(syntax, report);
    if (isTest(file.path)) checkOnly(syntax, report);
    if (!file.path.startsWith("src/") || isTest(file.path)) continue;
    checkFileLength(file, report, warnings);
    functions += checkFunctionLength(file, syntax, used, report);
    checkGlobals(file, syntax, report);
    checkHeader(file, syntax, report);
  }
  violations.push(...fullFolders(sources), ...staleExceptions(sources, used));
  return { files: sources.length, functions, violations, warnings };
}

/** Tests are not counted: they are next to what they test. */
function fullFolders(sources: readonly SourceFile[]): Violation[] {
  const files = sources.filter(({ path }) => path.startsWith("src/") && !isTest(path));
  const folders = Map.groupBy(files, ({ path }) => path.slice(0, path.lastIndexOf("/")));
  return [...folders]
    .filter(([, { length }]) => length > FOLDER_FILES_MAX)
    .map(([path, { length }]) => ({
      path,
      line: 1,
      message: `has ${length} files; at most ${FOLDER_FILES_MAX}: nobody finds one in a longer list`,
    }));
}

/** Every folder directly under src/, and under src/core/, is explained in ARCHITECTURE.md. */
export function checkRooms(sources: readonly SourceFile[], architecture: string): Violation[] {
  const rooms = new Set<string>();
  for (const { path } of sources) {
    const [src, house, inner, ...rest] = path.split("/");
    if (src !== "src" || house === undefined || inner === undefined) continue;
    rooms.add(house);
    if (house === "core" && rest.length > 0) rooms.add(`core/${inner}`);
  }
  return [...rooms]
    .filter((room) => !names(architecture, room))
    .map((room) => ({
      path: "ARCHITECTURE.md",
      line: 1,
      message: `does not name the room ${room}/: write in one sentence what it is for`,
    }));
}

/** As `core/raft` or, in a tree, as `raft/`; a mere mention of the word is no entry. */
function names(architecture: string, room: string): boolean {
  const last = room.slice(room.lastIndexOf("/") + 1);
  return new RegExp(`(^|[^\\w-])${last}/`, "m").test(architecture) || (room !== last && architecture.includes(room));
}

type Report = (offset: number, message: string) => void;

function checkName(file: SourceFile, report: Report): void {
  const folders = file.path.split("/");
  const name = folders.pop() ?? "";
  if (!FILE_NAME.test(name)) report(0, "is not named in kebab-case");
  for (const folder of folders)
    if (!FOLDER_NAME.test(folder)) report(0, `is in ${folder}/, which is not named in kebab-case`);
}

function checkComments(syntax: Syntax, report: Report): void {
  for (const comment of syntax.comments) {
    const leftover = LEFTOVER.exec(comment.value);
    if (leftover !== null) report(comment.start, `leaves a ${leftover[0]}; do it, or open an issue`);
  }
}

function checkOnly(syntax: Syntax, report: Report): void {
  walk(syntax.program, (node) => {
    if (node.type !== "MemberExpression" || !isNode(node.property) || node.property.name !== "only") return undefined;
    let base = node.object;
    while (isNode(base) && base.type === "MemberExpression") base = base.object;
    if (isNode(base) && TEST_FUNCTIONS.has(String(base.name)))
      report(node.start, "uses .only, which silences every other test");
    return undefined;
  });
}

function checkFileLength(file: SourceFile, report: Report, warnings: Violation[]): void {
  const lines = lineAt(file.text, file.text.trimEnd().length);
  const exception = LONG_FILES[file.path];
  const max = exception?.max ?? FILE_LINES_MAX;
  if (lines > max) report(0, `has ${lines} lines; at most ${max}: it holds more than one concept`);
  else if (lines > FILE_LINES_WARNED && exception === undefined)
    warnings.push({ path: file.path, line: 1, message: `has ${lines} lines; does it hold more than one concept?` });
}

function checkFunctionLength(file: SourceFile, syntax: Syntax, used: Set<string>, report: Report): number {
  let functions = 0;
  walk(syntax.program, (node, ancestors) => {
    if (!/^(Function(Declaration|Expression)|ArrowFunctionExpression)$/.test(node.type)) return undefined;
    functions++;
    const lines = lineAt(file.text, node.end) - lineAt(file.text, node.start) + 1;
    if (lines <= FUNCTION_LINES_MAX) return undefined;
    const name = functionName(node, ancestors.at(-1));
    const key = `${file.path}#${name}`;
    used.add(key);
    const max = LONG_FUNCTIONS[key]?.max ?? FUNCTION_LINES_MAX;
    if (lines > max) report(node.start, `${name} has ${lines} lines; at most ${max}: a function fits on a screen`);
    return undefined;
  });
  return functions;
}

function functionName(node: Node, parent: Node | undefined): string {
  const named = [node.id, parent?.key, parent?.id].find(isNode);
  return typeof named?.name === "string" ? named.name : "(anonymous)";
}

function checkGlobals(file: SourceFile, syntax: Syntax, report: Report): void {
  if (TOUCHES_THE_WORLD.test(file.path)) return;
  for (const { name, member, node } of globalReferences(syntax.program)) {
    if (GLOBAL_EXCEPTIONS.some((exception) => exception.name === name && exception.path.test(file.path))) continue;
    const full = member === undefined ? name : `${name}.${member}`;
    // A bare `Math` (destructured, passed on) could hide its random.
    const banned = BANNED_GLOBALS.has(name) || BANNED_MEMBERS.has(full) || (name === "Math" && member === undefined);
    if (banned) report(node.start, `uses ${full}; time, randomness, timers and the process come in through ports`);
  }
}

function checkHeader(file: SourceFile, syntax: Syntax, report: Report): void {
  if (file.path.endsWith("/index.ts")) return;
  const first = syntax.comments.find((comment) => lineAt(file.text, comment.start) <= 3);
  if (first === undefined) report(0, "does not open with a comment that says what it is");
}

function staleExceptions(sources: readonly SourceFile[], used: ReadonlySet<string>): Violation[] {
  const paths = new Set(sources.map((file) => file.path));
  return Object.keys(LONG_FUNCTIONS)
    .filter((key) => paths.has(key.split("#", 1)[0] ?? key) && !used.has(key))
    .map((key) => ({ path: "scripts/tidy.ts", line: 1, message: `the exception for ${key} is no longer needed` }));
}
