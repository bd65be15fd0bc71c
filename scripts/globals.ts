// Finds references to global names: an identifier counts only where no enclosing scope declares it, so a loop
// variable called `process` is nobody's business.

import { childrenOf, isNode, type Node } from "./source.ts";

export interface GlobalReference {
  readonly name: string;
  /** The property read from it: `Math.random` and `Math["random"]` both give "random"; undefined for a bare use. */
  readonly member: string | undefined;
  readonly node: Node;
}

export function globalReferences(program: Node): GlobalReference[] {
  const found: GlobalReference[] = [];
  visit(program, [], found);
  return found;
}

/** Expressions in TypeScript's clothes; every other TS node is erased and refers to nothing at run time. */
const WRAPPERS = new Set([
  "TSAsExpression",
  "TSNonNullExpression",
  "TSSatisfiesExpression",
  "TSInstantiationExpression",
]);

function visit(node: Node, scopes: readonly ReadonlySet<string>[], found: GlobalReference[]): void {
  if (node.type.startsWith("TS")) {
    if (WRAPPERS.has(node.type) && isNode(node.expression)) visit(node.expression, scopes, found);
    return;
  }
  if (node.type === "MemberExpression" && isNode(node.object) && node.object.type === "Identifier") {
    reference(node.object, memberName(node), scopes, found);
    if (node.computed === true && isNode(node.property)) visit(node.property, scopes, found);
    return;
  }
  if (node.type === "Identifier") {
    reference(node, undefined, scopes, found);
    return;
  }
  const declared = declaredBy(node);
  const inner = declared.size === 0 ? scopes : [...scopes, declared];
  for (const child of childrenOf(node)) {
    if (!isMereName(node, child)) visit(child, inner, found);
  }
}

function reference(
  identifier: Node,
  member: string | undefined,
  scopes: readonly ReadonlySet<string>[],
  found: GlobalReference[],
): void {
  const name = String(identifier.name);
  if (!scopes.some((scope) => scope.has(name))) found.push({ name, member, node: identifier });
}

function memberName(node: Node): string | undefined {
  const property = node.property;
  if (!isNode(property)) return undefined;
  if (node.computed !== true) return String(property.name);
  return property.type === "Literal" ? String(property.value) : undefined;
}

/** Keys, labels and the far side of imports and exports: names that refer to no variable. */
function isMereName(parent: Node, child: Node): boolean {
  switch (parent.type) {
    case "MemberExpression":
      return child === parent.property && parent.computed !== true;
    case "Property":
    case "MethodDefinition":
    case "PropertyDefinition":
    case "AccessorProperty":
      return child === parent.key && parent.computed !== true;
    case "ImportDeclaration":
      return true;
    case "ExportSpecifier":
      return child === parent.exported;
    case "ExportNamedDeclaration":
      return isNode(parent.source);
    case "LabeledStatement":
    case "BreakStatement":
    case "ContinueStatement":
      return child === parent.label;
    case "MetaProperty":
      return true;
    default:
      return false;
  }
}

/** The names that this node declares for what is inside it. */
function declaredBy(node: Node): ReadonlySet<string> {
  const names = new Set<string>();
  switch (node.type) {
    case "Program":
    case "BlockStatement":
    case "StaticBlock":
      for (const statement of node.body as Node[]) declareStatement(statement, names);
      break;
    case "SwitchStatement":
      for (const one of node.cases as Node[])
        for (const statement of one.consequent as Node[]) declareStatement(statement, names);
      break;
    case "FunctionDeclaration":
    case "FunctionExpression":
    case "ArrowFunctionExpression":
      bind(node.id, names);
      for (const parameter of node.params as Node[]) bind(parameter, names);
      break;
    case "ClassExpression":
      bind(node.id, names);
      break;
    case "ForStatement":
      if (isNode(node.init)) declareStatement(node.init, names);
      break;
    case "ForOfStatement":
    case "ForInStatement":
      if (isNode(node.left)) declareStatement(node.left, names);
      break;
    case "CatchClause":
      bind(node.param, names);
      break;
    default:
  }
  return names;
}

function declareStatement(statement: Node, names: Set<string>): void {
  switch (statement.type) {
    case "VariableDeclaration":
      for (const declarator of statement.declarations as Node[]) bind(declarator.id, names);
      break;
    case "FunctionDeclaration":
    case "ClassDeclaration":
      bind(statement.id, names);
      break;
    case "ImportDeclaration":
      for (const specifier of statement.specifiers as Node[]) bind(specifier.local, names);
      break;
    case "ExportNamedDeclaration":
    case "ExportDefaultDeclaration":
      if (isNode(statement.declaration)) declareStatement(statement.declaration, names);
      break;
    default:
  }
}

function bind(pattern: unknown, names: Set<string>): void {
  if (!isNode(pattern)) return;
  switch (pattern.type) {
    case "Identifier":
      names.add(String(pattern.name));
      break;
    case "ObjectPattern":
      for (const property of pattern.properties as Node[]) bind(property.value ?? property.argument, names);
      break;
    case "ArrayPattern":
      for (const element of pattern.elements as unknown[]) bind(element, names);
      break;
    case "AssignmentPattern":
      bind(pattern.left, names);
      break;
    case "RestElement":
      bind(pattern.argument, names);
      break;
    default:
  }
}
