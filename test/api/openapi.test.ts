// /openapi.json is the router: every route of the one is in the other, with its role, parameters, body and errors.

import { afterAll, beforeAll, expect, it } from "vitest";
import { COMMON_ERRORS, type Route, ROUTES } from "../../src/contract/index.ts";
import { ERRORS } from "../../src/core/kit/errors.ts";
import { startApi, type TestApi } from "./test-api.ts";

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly "x-tenure-role": string;
  readonly parameters: readonly { name: string; in: string; required: boolean; schema: unknown }[];
  readonly requestBody?: { content: Record<string, { schema: unknown }> };
  readonly responses: Readonly<Record<string, { description: string; content: Record<string, object> }>>;
}

let t: TestApi;
let paths: Record<string, Record<string, Operation>>;
beforeAll(async () => {
  t = await startApi();
  const { json, headers } = await t.call("GET", "/openapi.json", undefined, "viewer-key");
  expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(json).toMatchObject({ openapi: "3.1.0", info: { title: "Tenure", version: "0.1.0" } });
  paths = json?.["paths"] as typeof paths;
});
afterAll(async () => t[Symbol.asyncDispose]());

const operationOf = ({ method, path }: Route): Operation =>
  paths[path.replaceAll(/:(\w+)/g, "{$1}")]?.[method.toLowerCase()] as Operation;

it("every route that the router has is in it with its role, and no other", () => {
  const listed = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { "x-tenure-role": role }]) => `${method.toUpperCase()} ${path} ${role}`),
  );
  const routed = t.api
    .routes()
    .filter(({ method }) => method !== "HEAD")
    .map(({ method, path, role }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")} ${role}`);
  expect(listed.toSorted()).toEqual(routed.toSorted());
  expect(listed.length).toBeGreaterThan(40);
});

it.each(Object.entries(ROUTES as Record<string, Route>))("%s has its parameters, body and answers", (id, route) => {
  const operation = operationOf(route);
  expect(operation.operationId).toBe(id);
  expect(operation.summary).toMatch(/^[A-Z].*\.$/);
  const named = (place: string) => operation.parameters.filter((one) => one.in === place).map(({ name }) => name);
  expect(named("path")).toEqual([...route.path.matchAll(/:(\w+)/g)].map(([, name]) => name));
  const { properties } = route.query.schema as unknown as { properties: object };
  expect(named("query")).toEqual(Object.keys(properties));
  expect(named("header")).toEqual(route.headers ?? []);
  expect(operation.requestBody === undefined).toBe(route.body === null);
  const codes = Object.entries(operation.responses)
    .filter(([status]) => status !== "200")
    .flatMap(([status, { description }]) => description.split(", ").map((code) => `${code} ${status}`));
  const expected = [...new Set([...COMMON_ERRORS, ...route.errors])].map((code) => `${code} ${ERRORS[code].http}`);
  expect(codes.toSorted()).toEqual(expected.toSorted());
  expect(Object.keys(operation.responses["200"]?.content ?? {})).not.toEqual([]);
});

it("its schemas are plain JSON Schema: what a body must have can be read from it", () => {
  const { schema } = operationOf(ROUTES.lease).requestBody!.content["application/json"]! as {
    schema: { required: string[]; additionalProperties: boolean; properties: Record<string, Record<string, unknown>> };
  };
  expect(schema.required.toSorted()).toEqual(["agent", "max", "ttl_ms"]);
  expect(schema.additionalProperties).toBe(false);
  expect(schema.properties["ttl_ms"]).toEqual({ type: "integer", minimum: 1_000, maximum: 600_000 });
});
