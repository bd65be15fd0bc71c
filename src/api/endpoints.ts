// The contract's routes, each bound to its handler: parameters, query and body are checked before the handler sees them,
// all mistakes at once, and a read says how fresh it is.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type Route, type RouteId, ROUTES, typedQuery } from "../contract/index.ts";
import { assert } from "../core/kit/assert.ts";
import { TenureError } from "../core/kit/errors.ts";
import type { InTurn } from "../ports/events.ts";
import { checked } from "./checked.ts";
import type { Answer, Call, Handler, Handlers, Service, StreamAnswer } from "./handlers/handler.ts";
import type { Admission } from "./traffic/long-polls.ts";
import type { ExtraRoute } from "./options.ts";
import { type Passage, passageOf, type Registered, registeredOf, sendJson } from "./traffic/passage.ts";
import { freshnessHeaders } from "./handlers/reads.ts";
import { Refusal } from "./refusal.ts";
import { pour } from "./streams/stream.ts";
import type { Traffic } from "./traffic/traffic.ts";
import { TurnShare } from "./traffic/turn-share.ts";

export function registerEndpoints(app: FastifyInstance, service: Service, handlers: Handlers, traffic: Traffic): void {
  const share = new TurnShare(service);
  for (const [key, route] of Object.entries(ROUTES) as [RouteId, Route][]) {
    const about = registered(key, route);
    const handler = handlers[key] as unknown as Handler<RouteId>;
    app.route({
      method: route.method,
      url: route.path,
      bodyLimit: bodyBytesMax(route, service),
      config: { registered: about },
      handler: async (request, reply) => {
        const turn = about.isProbe ? null : share.enter();
        if (turn !== null) await turn;
        if (route.isFenced === true) requireLeader(service);
        traffic.admitAgain(request);
        const call = checkedCall(route, request, traffic, share);
        begin(passageOf(request), call);
        noteBegun(service, request);
        const answer = await handler(call);
        // Many may end in the same moment.
        const turnToAnswer = about.isProbe ? null : share.enter();
        if (turnToAnswer !== null) await turnToAnswer;
        const fresh = route.method === "GET" ? freshnessHeaders(service.cluster.view(), service.isQuiet()) : {};
        if (answer.stream === undefined) send(reply, answer, fresh);
        else void startStream(service, traffic, { request, reply, answer, fresh });
        return reply;
      },
    });
  }
}

function bodyBytesMax({ bodyBytesMax: own, isLarge }: Route, { limits }: Service): number {
  return own ?? (isLarge === true ? limits.largeBodyBytesMax : limits.bodyBytesMax);
}

/**
 * Before anything of the request is looked at: whoever sent it is at the wrong door, or comes while the leader hands over
 * (design D17).
 */
function requireLeader({ cluster, nodeId }: Service): void {
  if (cluster.currentRole() !== "LEADER") throw new TenureError("NOT_LEADER", `${nodeId} does not lead`);
}

export function registerExtras(app: FastifyInstance, routes: readonly ExtraRoute[], traffic: Traffic): void {
  for (const route of routes) {
    const { method, path, role } = route;
    const isWrite = method !== "GET";
    const config = {
      registered: {
        name: `${method} ${path}`,
        role,
        forIdentities: null,
        operation: null,
        limited: null,
        isWrite,
        isFenced: false,
        isOwnView: false,
        isForSites: false,
        isAlsoFor: [],
        isProbe: false,
      },
    };
    app.route({
      method,
      url: path,
      config,
      handler: async (request, reply) => {
        traffic.admitAgain(request);
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

function registered(id: RouteId, route: Route): Registered {
  const { method, path, role, isAdmin, limited, kind } = route;
  const { isFenced = false, isOwnView = false, isForSites = false, isAlsoFor = [] } = route;
  const isWrite = kind === "write" || (kind === "local" && method === "POST");
  const name = `${method} ${path}`;
  const isProbe = id === "livez" || id === "readyz";
  assert(role !== "public" || route.identities === undefined, "a route for kinds of certificates is not public");
  const who = { role, forIdentities: forIdentities(method, route.identities) };
  const operation = isAdmin ? id : null;
  const doors = { isOwnView, isForSites, isAlsoFor };
  return { name, ...who, operation, limited, isWrite, isFenced, ...doors, isProbe };
}

function forIdentities(method: Route["method"], kinds: Route["identities"]): Registered["forIdentities"] {
  return kinds === undefined ? null : { kinds, isRead: method === "GET" };
}

/** Throws BAD_REQUEST with every field that is wrong. */
function checkedCall(route: Route, request: FastifyRequest, traffic: Traffic, share: TurnShare): Call<RouteId> {
  const query = checked(route.query, typedQuery(route.query, request.query as Record<string, unknown>), "the query");
  const params = route.params === null ? null : checked(route.params, request.params, "the path");
  const sent = request.body === undefined ? {} : request.body;
  const body = route.body === null ? null : checked(route.body, sent, "the body", route.fieldErrors);
  if (body === null && request.body !== undefined) {
    throw new Refusal("BAD_REQUEST", "This takes no body. Send none.", { field: "body" });
  }
  const passage = passageOf(request);
  assert(passage !== null, "a request that has come to its handler has passed the hooks");
  const about = { gone: passage.over.signal, caller: passage.caller, method: request.method };
  const header = (name: string): string | undefined => {
    const value = request.headers[name];
    return typeof value === "string" ? value : value?.join(", ");
  };
  const path = request.url.split("?", 1)[0] ?? "";
  const inTurn: InTurn = (make) => traffic.inTurn(request, "pages", make);
  const pointInTurn: InTurn = (make) => traffic.inTurn(request, "points", make);
  const takeStream = (): (() => void) => traffic.takeStream(request);
  const admitAgain = (): void => traffic.admitAgain(request);
  const audit = (operation: string, target: string): void => void Object.assign(passage, { operation, target });
  const onFault = (error: unknown): void => traffic.reportFault(error, request);
  const admission = admissionOf(request, traffic);
  const enterTurn = (): Promise<void> | null => share.enter();
  const turns = { enterTurn, inTurn, pointInTurn, takeStream };
  return {
    params,
    query,
    body,
    path,
    header,
    audit,
    ...admission,
    admitAgain,
    onFault,
    ...turns,
    ...about,
  } as Call<RouteId>;
}

function admissionOf(request: FastifyRequest, traffic: Traffic): Admission {
  return {
    isStillAdmitted: () => traffic.isStillAdmitted(request),
    admittedForMs: () => traffic.admittedForMs(request),
  };
}

/** Notes what an admin call is about, for its audit record. */
function begin(passage: Passage | null, { params, body }: Call<RouteId>): void {
  if (passage === null) return;
  passage.isBegun = true;
  const fields = { ...(params as object | null), ...(body as object | null) } as Record<string, unknown>;
  const { scope, node_id, target: to, queue, name, id, txn_id, force } = fields;
  const target = scope ?? node_id ?? to ?? queue ?? name ?? id ?? txn_id;
  passage.target = typeof target === "string" ? target : null;
  if (typeof fields["op"] === "string") passage.target = `${fields["op"]} ${passage.target}`;
  // Some say what is to come of it.
  passage.forced = force === true || typeof force === "string";
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

interface Opening {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly answer: StreamAnswer;
  readonly fresh: Readonly<Record<string, string>>;
}

/** It goes on behind the handler's back: Fastify has released the reply. */
function startStream(service: Service, traffic: Traffic, { request, reply, answer, fresh }: Opening): Promise<void> {
  const { polls, clock, limits } = service;
  const isHead = request.method === "HEAD";
  if (isHead) answer.abandoned?.();
  const headers = { ...fresh, "cache-control": "no-store", "content-type": answer.contentType, ...answer.headers };
  return pour(reply, (out) => answer.stream(out), {
    headers,
    isHead,
    gone: passageOf(request)?.over.signal ?? AbortSignal.abort(),
    polls,
    admission: admissionOf(request, traffic),
    clock,
    stallMs: limits.streamStallMs,
    onFault: (error) => {
      if (!TenureError.is(error)) traffic.reportFault(error, request);
    },
  });
}
