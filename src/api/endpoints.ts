// The contract's routes, each bound to its handler: parameters, query and body are checked before the handler sees them,
// all mistakes at once, and a read says how fresh it is.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { describeMistakes, type Route, type RouteId, ROUTES, type Shape, typedQuery } from "../contract/index.ts";
import type { Answer, Call, Handler, Handlers, Service } from "./handlers.ts";
import type { ExtraRoute } from "./options.ts";
import { type Passage, passageOf, type Registered, registeredOf, sendJson } from "./passage.ts";
import { freshnessHeaders } from "./reads.ts";
import { Refusal } from "./refusal.ts";

export function registerEndpoints(app: FastifyInstance, service: Service, handlers: Handlers): void {
  for (const [key, route] of Object.entries(ROUTES) as [RouteId, Route][]) {
    const handler = handlers[key] as unknown as Handler<RouteId>;
    app.route({
      method: route.method,
      url: route.path,
      config: { registered: registered(key, route) },
      handler: async (request, reply) => {
        const call = checkedCall(route, request);
        begin(passageOf(request), call);
        noteBegun(service, request);
        const answer = await handler(call);
        const fresh = route.method === "GET" ? freshnessHeaders(service.cluster.view()) : {};
        send(reply, answer, fresh);
        return reply;
      },
    });
  }
}

export function registerExtras(app: FastifyInstance, routes: readonly ExtraRoute[]): void {
  for (const route of routes) {
    const { method, path, role } = route;
    const isWrite = method !== "GET";
    const config = { registered: { name: `${method} ${path}`, role, operation: null, limited: null, isWrite } };
    app.route({
      method,
      url: path,
      config,
      handler: async (request, reply) => {
        const passage = passageOf(request);
        if (passage !== null) passage.isBegun = true;
        const { params, query, body } = request as unknown as Parameters<ExtraRoute["handle"]>[0];
        const answer = await route.handle({ params, query, body });
        sendJson(reply, answer.status ?? 200, answer.body, {});
        return reply;
      },
    });
  }
}

function registered(id: RouteId, { method, path, role, isAdmin, limited, kind }: Route): Registered {
  const isWrite = kind === "write" || (kind === "local" && method === "POST");
  return { name: `${method} ${path}`, role, operation: isAdmin ? id : null, limited, isWrite };
}

/** Throws BAD_REQUEST with every field that is wrong. */
function checkedCall(route: Route, request: FastifyRequest): Call<RouteId> {
  const query = checked(route.query, typedQuery(route.query, request.query as Record<string, unknown>), "the query");
  const params = route.params === null ? null : checked(route.params, request.params, "the path");
  const body = route.body === null ? null : checked(route.body, request.body ?? {}, "the body");
  const gone = (passageOf(request)?.over ?? new AbortController()).signal;
  return { params, query, body, gone } as Call<RouteId>;
}

function checked(shape: Shape, value: unknown, whole: string): unknown {
  const result = shape.check(value);
  if (result.ok) return result.value;
  const [first] = result.mistakes;
  throw new Refusal("BAD_REQUEST", `${sentence(describeMistakes(result.mistakes, whole))}.`, {
    field: first === undefined || first.field === "" ? whole.replace(/^the /, "") : first.field,
  });
}

function sentence(text: string): string {
  return text.startsWith("the ") ? `T${text.slice(1)}` : text;
}

/** Notes what an admin call is about, for its audit record. */
function begin(passage: Passage | null, { params, body }: Call<RouteId>): void {
  if (passage === null) return;
  passage.isBegun = true;
  const fields = { ...(params as object | null), ...(body as object | null) } as Record<string, unknown>;
  const target = fields["scope"] ?? fields["node_id"] ?? fields["target"];
  passage.target = typeof target === "string" ? target : null;
  if (typeof fields["op"] === "string") passage.target = `${fields["op"]} ${passage.target}`;
  passage.forced = fields["force"] === true;
}

/** Before anything is done, so that it is written down whatever becomes of this process. */
function noteBegun({ audit, clock, nodeId }: Service, request: FastifyRequest): void {
  const passage = passageOf(request);
  const { operation = null, isWrite = false } = registeredOf(request) ?? {};
  if (passage === null || operation === null || !isWrite) return;
  const { caller, address, target, forced } = passage;
  audit.begun(caller, {
    atMs: clock.wallMs(),
    nodeId,
    address,
    operation,
    target,
    forced,
    requestId: request.id,
  });
}

function send(reply: FastifyReply, answer: Answer, fresh: Readonly<Record<string, string>>): void {
  const { status = 200, body, contentType, headers = {} } = answer;
  const all = { ...fresh, "cache-control": "no-store", ...headers };
  if (contentType === undefined) sendJson(reply, status, body, all);
  else void reply.code(status).headers(all).type(contentType).send(body);
}
