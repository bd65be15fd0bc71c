// The API as an OpenAPI 3.1 document, made from the route table: what is in the one is in the other. Our schemas are JSON
// Schema 2020-12 already; bounds in bytes, which that can't say, are told in words by the errors.

import { ERRORS, type ErrorCode } from "../core/kit/errors.ts";
import { IDEMPOTENCY_KEY_BYTES_MAX } from "../core/kit/limits.ts";
import { COMMON_ERRORS, type HeaderName, type Route } from "./route.ts";

type Document = Readonly<Record<string, unknown>>;

const HEADERS = {
  "Idempotency-Key": {
    description:
      "The same key with the same request is answered as the first time, for 24 hours; scoped to the caller.",
    schema: { type: "string", minLength: 1, maxLength: IDEMPOTENCY_KEY_BYTES_MAX, pattern: "^[\\x21-\\x7e]+$" },
  },
  "Last-Event-ID": {
    description: "Go on behind this; the id of the last event that was seen, on whichever node.",
    schema: { type: "string" },
  },
  "X-Tenure-Event-Point": {
    description:
      "sequence:hash of an event that was seen: 409 HISTORY_REWRITTEN where this cluster's history has another one.",
    schema: { type: "string", pattern: "^[0-9]{1,15}:[0-9a-f]{64}$" },
  },
  "X-Tenure-On-Behalf-Of": {
    description:
      "Set by a server that forwards the call: the name of whoever called it. Of others it is not looked at.",
    schema: { type: "string", minLength: 1 },
  },
  "X-Tenure-TC-Forwarded": {
    description: "Set by a coordinator that forwards the call to the leader. Such a call is forwarded no further.",
    schema: { type: "string", minLength: 1 },
  },
  "X-Tenure-TC-Leave-Fanout": {
    description: "The call is one of those with which a leaving node removes its lease everywhere.",
    schema: { type: "string", minLength: 1 },
  },
  "X-Tenure-TC-Replicate": {
    description: "As X-Tenure-TC-Forwarded: the leader alone replicates.",
    schema: { type: "string", minLength: 1 },
  },
} as const satisfies Readonly<Record<HeaderName, object>>;

const ERROR_SCHEMA = {
  type: "object",
  required: ["error", "message"],
  properties: {
    error: { type: "string", enum: Object.keys(ERRORS) },
    message: { type: "string", description: "What happened, why, and what to do next." },
    code: { type: "integer", description: "4001 to 4006, where the election specification has a number." },
    field: { type: "string", description: "Of BAD_REQUEST: what is wrong." },
    leader_id: { type: ["string", "null"] },
    leader_url: { type: ["string", "null"] },
    leader_epoch: { type: ["integer", "null"] },
    node_id: { type: "string" },
    role: { enum: ["LEADER", "STANDBY", "DRAINING"] },
    name: { type: "string", description: "Of VERSION_CONFLICT: of the value." },
    version: { type: ["integer", "null"], description: "Of VERSION_CONFLICT: what it is now; null: there is none." },
    detail: { type: "string", description: "Of the routes of coordinators: the message." },
    leader_endpoint: { type: "string", description: "Of the routes of coordinators: where their leader is." },
    reason: { type: "string", description: "Of a refused lease: which rule refused it." },
    voter: { type: "object", description: "Of a refused lease: what the voter says of itself." },
  },
} as const;

export function openApi(routes: Readonly<Record<string, Route>>, version: string): Document {
  const paths: Record<string, Record<string, Document>> = {};
  for (const [id, route] of Object.entries(routes)) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    const operations = (paths[path] ??= {});
    operations[route.method.toLowerCase()] = operation(id, route);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Tenure",
      version,
      description: "Reads work on every node and say how fresh they are; mutations are the leader's.",
    },
    paths,
    components: {
      schemas: { Error: ERROR_SCHEMA },
      securitySchemes: {
        key: { type: "apiKey", in: "header", name: "X-API-Key" },
        certificate: { type: "mutualTLS" },
      },
    },
  };
}

function operation(id: string, route: Route): Document {
  const { summary, role, body } = route;
  return {
    operationId: id,
    summary,
    "x-tenure-role": role,
    "x-tenure-kind": route.kind,
    ...(route.identities === undefined ? {} : { "x-tenure-certificates": route.identities }),
    ...(route.isAlsoFor === undefined ? {} : { "x-tenure-certificates-too": route.isAlsoFor }),
    security: role === "public" ? [] : [...(route.identities === undefined ? [{ key: [] }] : []), { certificate: [] }],
    parameters: [
      ...parametersOf("path", route.params?.schema),
      ...parametersOf("query", route.query.schema),
      ...(route.headers ?? []).map((name) => ({ name, in: "header", required: false, ...HEADERS[name] })),
    ],
    ...(body === null
      ? {}
      : {
          requestBody: { required: hasRequired(body.schema), content: { "application/json": { schema: body.schema } } },
        }),
    responses: responsesOf(route),
  };
}

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
}

function parametersOf(place: "path" | "query", schema: unknown): Document[] {
  const { properties = {}, required = [] } = (schema ?? {}) as ObjectSchema;
  return Object.entries(properties).map(([name, one]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    schema: one,
  }));
}

function hasRequired(schema: unknown): boolean {
  const { anyOf, required = [] } = schema as ObjectSchema & { readonly anyOf?: readonly unknown[] };
  return anyOf === undefined ? required.length > 0 : anyOf.every((one) => hasRequired(one));
}

function responsesOf({ answer, contentType, errors }: Route): Document {
  const json = answer === null ? {} : { "application/json": { schema: answer } };
  const other = contentType === undefined ? {} : { [contentType]: {} };
  const responses: Record<string, Document> = { "200": { description: "Done.", content: { ...json, ...other } } };
  const byStatus = Map.groupBy(new Set<ErrorCode>([...COMMON_ERRORS, ...errors]), (code) => ERRORS[code].http);
  for (const [status, codes] of byStatus) {
    responses[String(status)] = {
      description: codes.join(", "),
      content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
    };
  }
  return responses;
}
