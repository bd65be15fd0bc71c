// One name, one thing: a type, interface or class that one room uses of another has a name that no other room exports to others.
// What stays inside of its room may be named as it likes.

import { posix } from "node:path";
import { roomOf } from "./directions.ts";
import { isNode, isTest, lineAt, type Node, parse, type SourceFile, type Violation } from "./source.ts";

const TYPES = new Set(["TSInterfaceDeclaration", "TSTypeAliasDeclaration", "ClassDeclaration"]);

interface Declared {
  readonly name: string;
  readonly room: string;
  readonly path: string;
  readonly line: number;
}

export interface NamesReport {
  /** Types that are used outside of their rooms. */
  readonly names: number;
  readonly violations: readonly Violation[];
}

/** `exceptions`: why two rooms export the name. One that is not needed any more is a violation too. */
export function checkTypeNames(
  sources: readonly SourceFile[],
  exceptions: Readonly<Record<string, string>>,
): NamesReport {
  const declared: Declared[] = [];
  const shared = new Set<string>();
  for (const file of sources) {
    const room = roomOf(file.path);
    if (room === undefined || isTest(file.path) || /\/test-[^/]+$/.test(file.path)) continue;
    for (const node of parse(file).program.body as Node[]) {
      for (const used of usedBy(node, file.path, room)) shared.add(used);
      const name = typeIn(node);
      if (name !== undefined) declared.push({ name, room, path: file.path, line: lineAt(file.text, node.start) });
    }
  }
  const byName = Map.groupBy(
    declared.filter(({ name, room }) => shared.has(`${room} ${name}`)),
    ({ name }) => name,
  );
  const twice = [...byName].filter(([, list]) => new Set(list.map(({ room }) => room)).size > 1);
  const violations = twice.flatMap(([name, list]) => {
    if (Object.hasOwn(exceptions, name)) return [];
    const rooms = list.map(({ room }) => room).join(" and ");
    return list.map(({ path, line }) => ({
      path,
      line,
      message: `${name} is exported to others by ${rooms}; rename one`,
    }));
  });
  const needed = new Set(twice.map(([name]) => name));
  const stale = Object.keys(exceptions).filter((name) => !needed.has(name));
  for (const name of stale)
    violations.push({ path: "test/type-names.test.ts", line: 1, message: `the exception for ${name} is not needed` });
  return { names: byName.size, violations };
}

/** "room name" of what the node imports, or passes on, from other rooms. */
function usedBy(node: Node, path: string, room: string): string[] {
  const source = isNode(node.source) ? node.source.value : undefined;
  if (typeof source !== "string" || !source.startsWith(".") || !Array.isArray(node.specifiers)) return [];
  const from = roomOf(posix.join(posix.dirname(path), source));
  if (from === undefined || from === room) return [];
  return (node.specifiers as Node[]).flatMap((one) => {
    const name = [one.imported, one.local].find(isNode)?.name;
    return typeof name === "string" ? [`${from} ${name}`] : [];
  });
}

function typeIn(node: Node): string | undefined {
  const inner = node.type === "ExportNamedDeclaration" ? node.declaration : undefined;
  if (!isNode(inner) || !TYPES.has(inner.type) || !isNode(inner.id)) return undefined;
  return typeof inner.id.name === "string" ? inner.id.name : undefined;
}
