// docs/reference/api.md lists every route of the contract as it is, and no other.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { API_LIMITS } from "../../src/api/index.ts";
import { COMMON_ERRORS, type Route, ROUTES } from "../../src/contract/index.ts";

interface Entry {
  readonly role: string;
  readonly body: readonly string[];
  readonly query: readonly string[];
  readonly errors: readonly string[];
}

const markdown = readFileSync("docs/reference/api.md", "utf8");

function documented(text: string): Record<string, Entry> {
  const entries: Record<string, Entry> = {};
  for (const [, route = "", section = ""] of text.matchAll(/^### `(\w+ \/[^`]*)`\n([\s\S]*?)(?=^##|$(?![\s\S]))/gm)) {
    const [head = ""] = section.trim().split("\n\n");
    expect(entries, `${route} is there twice`).not.toHaveProperty([route]);
    entries[route] = {
      role: /^Role: (\w+)\./.exec(head)?.[1] ?? "",
      body: names(head, "Body"),
      query: names(head, "Query"),
      errors: names(head, "Errors"),
    };
  }
  return entries;
}

function names(head: string, label: string): string[] {
  const list = new RegExp(`${label}: ((?:\`\\w+\`(?:, )?)+)\\.`).exec(head)?.[1] ?? "";
  return [...list.matchAll(/\w+/g)].map(([name]) => name).sort();
}

function actual(): Record<string, Entry> {
  return Object.fromEntries(
    Object.values(ROUTES as Record<string, Route>).map((route) => [
      `${route.method} ${route.path}`,
      { role: route.role, body: fieldsOf(route.body), query: fieldsOf(route.query), errors: [...route.errors].sort() },
    ]),
  );
}

function fieldsOf(shape: Route["body"]): string[] {
  const { properties = {} } = (shape?.schema ?? {}) as { properties?: object };
  return Object.keys(properties).sort();
}

it("lists every route with its role, body, query and errors, and no other", () => {
  expect(documented(markdown)).toEqual(actual());
});

it("names every field of every answer", () => {
  const missing = Object.entries(ROUTES as Record<string, Route>).flatMap(([id, { answer }]) =>
    fieldNames(answer)
      .filter((name) => !new RegExp(`\\b${name}\\b`).test(markdown))
      .map((name) => `${id}.${name}`),
  );
  expect(missing).toEqual([]);
});

it("names the errors that any route may answer, and the bounds as they are", () => {
  for (const code of COMMON_ERRORS) expect(markdown).toContain(`\`${code}\``);
  const shown = (value: number): string => value.toLocaleString("en-GB");
  for (const text of [
    `Bodies ${API_LIMITS.bodyBytesMax / 1024} KiB`,
    `headers ${API_LIMITS.headerBytesMax / 1024} KiB and ${API_LIMITS.headersMax} headers`,
    `${shown(API_LIMITS.connectionsMax)} connections`,
    `${shown(API_LIMITS.requestsMax)} requests`,
    `arrive in ${API_LIMITS.headersTimeoutMs / 1_000} s`,
    `request in ${API_LIMITS.requestTimeoutMs / 1_000} s`,
    `${shown(API_LIMITS.adminPerWindow)} admin calls`,
    `${shown(API_LIMITS.acquirePerWindow)} campaigns`,
  ]) {
    expect(markdown).toContain(text);
  }
});

it("the comparison sees a missing, an invented and a changed route", () => {
  expect(documented(markdown.replace("### `GET /role`", "GET /role"))).not.toEqual(actual());
  expect(documented(markdown.replace("`GET /role`", "`GET /roles`"))).not.toEqual(actual());
  expect(documented(markdown.replace("Role: operator. Body: `force`", "Role: client. Body: `force`"))).not.toEqual(
    actual(),
  );
  expect(documented(markdown.replace("`STALE_EPOCH`.\n\nFrees", "`NOT_FOUND`.\n\nFrees"))).not.toEqual(actual());
});

function fieldNames(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const own = "properties" in schema ? Object.keys(schema.properties as object) : [];
  return [...new Set([...own, ...Object.values(schema).flatMap((one) => fieldNames(one))])];
}
