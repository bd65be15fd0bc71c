// Where bounds are. A bound is a number in a module's constant whose name says so: _MAX, _MIN, _MS, _KEPT, so many _PER_TURN, and _BYTES
// from 1 KiB on (what is smaller is the width of a format). Units (MINUTE_MS) are none.
//
// - Bounds are in a limits.ts: of their room, or of a folder that is a concept; timeouts of layers that wait for each other in a
//   timeouts.ts (decision 51).
// - A bound that its file exports has a name that no other bound has with another value, wherever that one is. Two files may
//   each have a private bound of the same name: nobody can take one for the other.

import { isNode, isTest, lineAt, type Node, parse, type SourceFile, type Violation } from "./source.ts";

/** Places whose numbers are not looked up by anybody who asks what the system allows. */
const EXEMPT: Readonly<Record<string, string>> = {
  "src/sim/": "what a seed draws from and what an oracle allows is read next to the scenario",
  "src/electors/conformance/": "constants of a test suite",
  "src/logs/conformance/": "constants of a test suite",
};

/** Names that read like a bound's. */
const NO_BOUNDS: Readonly<Record<string, string>> = {
  PROTOCOL_MIN: "a version of the peers' protocol",
  PROTOCOL_MAX: "a version of the peers' protocol",
  EXACT_DIGITS_MAX: "a fact of 2^53, in the innermost loop of the scanner",
  TIME_MIN: "a range in which the scanner knows exact results",
  TIME_MAX: "a range in which the scanner knows exact results",
  MULTIBYTE_MIN: "a fact of UTF-8",
  BYTES_MAX: "the width of a u32",
  PROBE_MS: "further than any time zone's offset",
  WALL_START_MS: "where a virtual clock begins",
  ORIGIN_STEP_MS: "how far virtual clocks are apart",
};

interface Bound {
  readonly name: string;
  /** Its number, or its text where it is computed from others. */
  readonly value: string;
  readonly isExported: boolean;
  readonly path: string;
  readonly line: number;
}

export interface LimitsReport {
  readonly bounds: number;
  /** Not in a limits.ts. */
  readonly elsewhere: number;
  readonly violations: readonly Violation[];
}

const NAME = /_(MAX|MIN|MS|KEPT|(MAX|MIN)_(MS|S|BYTES)|PER_(TURN|CALL|LOOK|STEP))$/;
const SIZE = /^[A-Z][A-Z0-9_]*_BYTES$/;
const SIZE_MIN = 1024;
const UNIT = /^(DAY|HOUR|MINUTE|SECOND)_MS$|_PER_MS$/;
const LIMITS = /\/(limits|timeouts)\.ts$/;
const NO_NUMBERS = [
  "ArrayExpression",
  "ObjectExpression",
  "TemplateLiteral",
  "TSAsExpression",
  "TSSatisfiesExpression",
];

export function checkLimits(sources: readonly SourceFile[]): LimitsReport {
  const bounds = sources
    .filter(({ path }) => path.startsWith("src/") && !isTest(path) && !/\/test-[^/]+$/.test(path))
    .flatMap(boundsOf);
  const elsewhere = bounds.filter(({ path }) => !LIMITS.test(path));
  const violations: Violation[] = elsewhere
    .filter(({ path, name }) => !(name in NO_BOUNDS) && !Object.keys(EXEMPT).some((place) => path.startsWith(place)))
    .map(({ path, line, name }) => ({ path, line, message: `${name} is a bound; it belongs in its room's limits.ts` }));
  for (const [name, list] of Map.groupBy(bounds, (bound) => bound.name)) {
    if (!list.some(({ isExported }) => isExported) || new Set(list.map(({ value }) => value)).size < 2) continue;
    const values = list.map(({ path, value }) => `${value} in ${path}`).join(", ");
    for (const { path, line } of list)
      violations.push({ path, line, message: `${name} has two values: ${values}; rename one` });
  }
  return { bounds: bounds.length, elsewhere: elsewhere.length, violations };
}

function boundsOf(file: SourceFile): Bound[] {
  return (parse(file).program.body as Node[]).flatMap((node) => {
    const isExported = node.type === "ExportNamedDeclaration";
    const inner = isExported ? node.declaration : node;
    if (!isNode(inner) || inner.type !== "VariableDeclaration") return [];
    return (inner.declarations as Node[]).flatMap(({ id, init, start }) => {
      if (!isNode(id) || !isNode(init) || typeof id.name !== "string") return [];
      const [number, written] = [numberOf(init), file.text.slice(init.start, init.end)];
      const isNumber =
        init.type === "Literal" ? number !== null : !NO_NUMBERS.includes(init.type) && !/\dn\b/.test(written);
      const isSize = SIZE.test(id.name) && (number ?? 0) >= SIZE_MIN;
      if (!isNumber || !(isSize || (NAME.test(id.name) && !UNIT.test(id.name)))) return [];
      const value = String(number ?? written);
      return [{ name: id.name, value, isExported, path: file.path, line: lineAt(file.text, start) }];
    });
  });
}

/** Of literals and what is computed from them; null where a name is in it. */
function numberOf(node: unknown): number | null {
  if (!isNode(node)) return null;
  if (node.type === "Literal") return typeof node.value === "number" ? node.value : null;
  const [left, right] = [numberOf(node.left), numberOf(node.right)];
  if (node.type !== "BinaryExpression" || left === null || right === null) return null;
  switch (node.operator) {
    case "*":
      return left * right;
    case "/":
      return left / right;
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "**":
      return left ** right;
    default:
      return null;
  }
}
