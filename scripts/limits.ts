// Where bounds are. A bound is a number that a constant names with _MAX, _MIN or _MS at its end; units (MINUTE_MS) are none.
//
// - A room that is listed in ROOMS_WITH_LIMITS has all of its bounds in its limits.ts (decision 51).
// - A bound that its file exports has a name that no other bound has with another value, wherever that one is. Two files may
//   each have a private bound of the same name: nobody can take one for the other.

import { roomOf } from "./directions.ts";
import { isNode, isTest, lineAt, type Node, parse, type SourceFile, type Violation } from "./source.ts";

/** A room is added here when its bounds have moved; none is ever taken out. */
export const ROOMS_WITH_LIMITS: readonly string[] = [
  "agent",
  "client",
  "drivers/disk",
  "drivers/etcd",
  "drivers/http",
  "drivers/pki",
  "drivers/postgres",
  "drivers/processes",
  "drivers/sqlite",
  "drivers/system",
  "drivers/telemetry",
  "supervisor",
];

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

const NAME = /^[A-Z][A-Z0-9_]*_(MAX|MIN|MS)$/;
const UNIT = /^(DAY|HOUR|MINUTE|SECOND)_MS$/;
const LIMITS = /\/limits\.ts$/;

export function checkLimits(sources: readonly SourceFile[], rooms = ROOMS_WITH_LIMITS): LimitsReport {
  const bounds = sources
    .filter(({ path }) => path.startsWith("src/") && !isTest(path) && !/\/test-[^/]+$/.test(path))
    .flatMap(boundsOf);
  const elsewhere = bounds.filter(({ path }) => !LIMITS.test(path));
  const violations: Violation[] = elsewhere
    .filter(({ path }) => rooms.includes(roomOf(path) ?? ""))
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
      const isBound = NAME.test(id.name) && !UNIT.test(id.name) && ["Literal", "BinaryExpression"].includes(init.type);
      if (!isBound || typeof init.value === "string") return [];
      const value = String(numberOf(init) ?? file.text.slice(init.start, init.end));
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
