// Source files as the checks see them: a path from the repository's root with "/" between its parts, and a text.
// Checks take a list of these and never read the disk themselves, so that their tests can plant a violation.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "oxc-parser";

export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** A node of the syntax tree, in ESTree's shape with TypeScript's additions. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

export interface Syntax {
  readonly program: Node;
  readonly comments: readonly { readonly value: string; readonly start: number; readonly end: number }[];
  readonly errors: readonly string[];
}

export interface Violation {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

const TYPESCRIPT = /\.(ts|mts|cts|tsx)$/;

/** All TypeScript files under the given folders; a folder that does not exist is empty. */
export function readSources(root: string, folders: readonly string[], name = TYPESCRIPT): SourceFile[] {
  return folders
    .flatMap((folder) => listFiles(root, folder))
    .filter((path) => name.test(path))
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

export function isTest(path: string): boolean {
  return /\.(test|bench)\.ts$/.test(path) || /^(test|bench)\//.test(path);
}

export function parse(file: SourceFile): Syntax {
  const result = parseSync(file.path, file.text);
  return {
    program: result.program as unknown as Node,
    comments: result.comments,
    errors: result.errors.map((error) => error.message),
  };
}

export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < offset; at = text.indexOf("\n", at + 1)) line++;
  return line;
}

/** Calls `visit` for each node, parents first, with its ancestors (outermost first). `false` skips the children. */
export function walk(
  node: Node,
  visit: (node: Node, ancestors: readonly Node[]) => boolean | undefined,
  ancestors: Node[] = [],
): void {
  if (visit(node, ancestors) === false) return;
  ancestors.push(node);
  for (const child of childrenOf(node)) walk(child, visit, ancestors);
  ancestors.pop();
}

export function childrenOf(node: Node): Node[] {
  return Object.values(node).flat().filter(isNode);
}

export function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string";
}

export function describe(violation: Violation): string {
  return `${violation.path}:${violation.line}: ${violation.message}`;
}

function listFiles(root: string, folder: string): string[] {
  let entries;
  try {
    entries = readdirSync(join(root, folder), { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  return entries
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      if (entry.name === "node_modules") return [];
      return entry.isDirectory() ? listFiles(root, path) : [path];
    });
}
