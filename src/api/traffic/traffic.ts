// What every request passes: it is identified, counted against its rate and admitted before its body is read, and written down
// when it leaves. Whatever is thrown on the way becomes an error of the registry.
// Invariant: a stranger's body is never parsed, and each admin call leaves one audit record when it ends, whatever came of it;
// what changes something leaves one when it begins too (endpoints.ts).

import rateLimit from "@fastify/rate-limit";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ROUTES } from "../../contract/index.ts";
import { READ_TURN_MS, STREAM_TURN_MS } from "../../core/kit/timeouts.ts";
import type { ClusterView, LineView } from "../../ports/cluster.ts";
import type { Audit } from "../audit.ts";
import type { Caller, Callers, CallerSocket } from "./callers.ts";
import type { Connections } from "./connections.ts";
import { HeavyTurns } from "./heavy-turns.ts";
import type { HttpCounters } from "../http-stats.ts";
import { ADDRESS_LENGTH_MAX, ORIGIN_SHOWN_MAX, RATED_CALLERS_MAX } from "../limits.ts";
import type { ApiLimits, ApiOptions } from "../options.ts";
import { type Passage, passageOf, type Registered, registeredOf, sendJson } from "./passage.ts";
import { freshnessHeaders } from "../handlers/reads.ts";
import { answerTo, Refusal, type Stage, stopping } from "../refusal.ts";
import type { Shares } from "./shares.ts";
import type { StreamPlaces } from "../streams/stream-places.ts";
import { crossOriginHeaders, isForeignPage, preflightHeaders } from "../web.ts";

/** Requests for what is no route are counted under this name. */
const NO_ROUTE = "none";
const READS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

type Limiter = ReturnType<FastifyInstance["createRateLimit"]>;

export class Traffic {
  readonly #options: ApiOptions;
  readonly #limits: ApiLimits;
  readonly #callers: Callers;
  readonly #audit: Audit;
  readonly #counters: HttpCounters;
  readonly #connections: Connections;
  readonly #shares: Shares;
  readonly #streams: StreamPlaces;
  readonly #pages: HeavyTurns;
  /** Of their own: a flood of pages keeps no stream from going on, and no flood of streams a page. */
  readonly #points: HeavyTurns;
  readonly #isStopping: () => boolean;
  /** Of `requestsMax`, taken at this moment. */
  #places = 0;
  #limiters: Readonly<Record<"admin" | "acquire", Limiter>> | undefined;

  constructor(
    options: ApiOptions,
    limits: ApiLimits,
    parts: {
      callers: Callers;
      connections: Connections;
      shares: Shares;
      streams: StreamPlaces;
      audit: Audit;
      counters: HttpCounters;
      isStopping: () => boolean;
    },
  ) {
    this.#options = options;
    this.#limits = limits;
    this.#callers = parts.callers;
    this.#connections = parts.connections;
    this.#shares = parts.shares;
    this.#streams = parts.streams;
    this.#pages = new HeavyTurns(options.clock, READ_TURN_MS, "page of events");
    this.#points = new HeavyTurns(options.clock, STREAM_TURN_MS, "stream");
    this.#audit = parts.audit;
    this.#counters = parts.counters;
    this.#isStopping = parts.isStopping;
  }

  async install(app: FastifyInstance): Promise<void> {
    app.decorateRequest("passage", null);
    app.addHook("onRequest", async (request, reply) => this.#arrive(request, reply));
    app.addHook("preParsing", async (request, _reply, payload) => {
      await this.#admit(request);
      return payload;
    });
    app.addHook("onSend", async (request, reply, payload) => {
      this.#leave(request, reply, payload);
      return payload;
    });
    app.setErrorHandler((error, request, reply) => this.answerError(error, request, reply));
    app.setNotFoundHandler((request, reply) => this.#answerNoRoute(request, reply));
    await app.register(rateLimit, { global: false, cache: RATED_CALLERS_MAX });
    const { adminPerWindow, acquirePerWindow, rateWindowMs: timeWindow } = this.#limits;
    const keyGenerator = payerIn;
    this.#limiters = {
      admin: app.createRateLimit({ max: adminPerWindow, timeWindow, keyGenerator }),
      acquire: app.createRateLimit({ max: acquirePerWindow, timeWindow, keyGenerator }),
    };
  }

  /** Also for what Fastify refuses before there is a route. */
  answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const passage = passageOf(request);
    const view = (): ClusterView => this.#options.cluster.view();
    const registered = registeredOf(request);
    const answer = answerTo(error, stageOf(passage, registered), registered?.isFenced === true, view);
    if (passage === null) this.#counters.count(NO_ROUTE, answer.status, 0);
    else passage.outcome = answer.body.error;
    if (answer.isFault) this.reportFault(error, request);
    const retryAfterS = error instanceof Refusal ? error.retryAfterS : undefined;
    const headers =
      retryAfterS === undefined ? answer.headers : { ...answer.headers, "retry-after": String(retryAfterS) };
    const isQuiet = this.#options.jobs?.jobs.isDraining() ?? false;
    const isRead = passage?.isBegun === true && (request.method === "GET" || request.method === "HEAD");
    sendJson(
      reply,
      answer.status,
      // As the specification of the coordinators has it.
      (registered?.forIdentities ?? null) === null ? answer.body : { ...answer.body, detail: answer.body.message },
      isRead ? { ...freshnessHeaders(view(), isQuiet), ...headers } : headers,
    );
  }

  #arrive(request: FastifyRequest, reply: FastifyReply): void {
    const { clock, nodeId, clusterId, cluster } = this.#options;
    const startedAtMs = clock.monotonicMs();
    // It was cut by this very request, or by one before it: nobody is there to answer.
    if (request.raw.socket.destroyed) return void reply.hijack();
    reply.headers({ "x-tenure-cluster": clusterId, ...lineHeaders(cluster.line()) });
    // Before anything is refused: the members' pages are to read that too.
    reply.headers(crossOriginHeaders(request.headers.origin, cluster));
    const over = new AbortController();
    const socket = request.raw.socket as CallerSocket;
    const caller = this.#callers.identify(request.headers["x-api-key"], socket, registeredOf(request));
    const address = (request.raw.socket.remoteAddress ?? "unknown").slice(0, ADDRESS_LENGTH_MAX);
    const payer = payerOf(caller, address);
    const connection = this.#connections.of(request.raw.socket);
    const about = { operation: null, target: null, forced: false, isBegun: false, outcome: "OK" };
    request.passage = { startedAtMs, caller, address, connection, payer, over, ...about };
    if (this.#connections.isRetired(connection)) void reply.header("connection", "close");
    const counters = this.#counters;
    counters.inFlight++;
    let hasPlace = false;
    reply.raw.once("close", () => {
      counters.inFlight--;
      if (hasPlace) this.#giveBack(payer);
      // What began before its time was over said nothing of it; a stream can't.
      if (this.#connections.isRetired(connection)) request.raw.socket.end();
      counters.count(registeredOf(request)?.name ?? NO_ROUTE, reply.statusCode, clock.monotonicMs() - startedAtMs);
      // With a reason of ours: the default one is a DOMException with a stack, 5 % of a small request.
      over.abort("over");
    });
    if (this.#isStopping()) throw stopping(nodeId);
    const { origin, host } = request.headers;
    if (!READS.has(request.method) && isForeignPage(origin, host, cluster)) {
      const whose = JSON.stringify(String(origin).slice(0, ORIGIN_SHOWN_MAX));
      throw new Refusal(
        "PERMISSION_DENIED",
        `A page of ${whose} may change nothing here: it is none of this cluster's.`,
      );
    }
    // Names and values stand in one list.
    if (request.raw.rawHeaders.length > 2 * this.#limits.headersMax) {
      throw new Refusal("PAYLOAD_TOO_LARGE", `More than ${this.#limits.headersMax} headers were sent. Send fewer.`);
    }
    if (registeredOf(request)?.isProbe === true) return;
    this.#takePlace(payer);
    hasPlace = true;
  }

  /** What is refused takes none: however much of that waits to be read, others are served. Throws OVERLOADED. */
  #takePlace(payer: string): void {
    const { requestsMax } = this.#limits;
    if (this.#places >= requestsMax) {
      const text = `More than ${requestsMax} requests are being answered. Retry later, or ask another node.`;
      throw new Refusal("OVERLOADED", text);
    }
    this.#shares.check(payer, "bytes");
    this.#shares.take(payer, "requests");
    this.#places++;
  }

  #giveBack(payer: string): void {
    this.#shares.add(payer, "requests", -1);
    this.#places--;
  }

  /** Before anything is done: the body may have taken seconds, and a key may be revoked meanwhile. Throws as the first time. */
  admitAgain(request: FastifyRequest): void {
    const registered = registeredOf(request);
    const passage = passageOf(request);
    if (registered === undefined || passage === null || registered.role === "public") return;
    const caller = this.#callers.now(passage.caller, request.raw.socket as CallerSocket);
    this.#callers.admit(caller, registered.role, registered, request.headers.host);
    passage.caller = caller;
  }

  /** Asked again while a stream goes on, or a call waits: a key may have been revoked, a certificate have expired, its connection be old. */
  isStillAdmitted(request: FastifyRequest): boolean {
    if (this.#connections.isRetired(passageOf(request)?.connection)) return false;
    try {
      this.admitAgain(request);
      return true;
    } catch (error) {
      if (error instanceof Refusal) return false;
      throw error;
    }
  }

  /** As long as nothing happens. */
  admittedForMs(request: FastifyRequest): number {
    const caller = passageOf(request)?.caller;
    return caller === undefined ? 0 : this.#callers.admittedForMs(caller, request.raw.socket as CallerSocket);
  }

  async #admit(request: FastifyRequest): Promise<void> {
    const registered = registeredOf(request);
    const passage = passageOf(request);
    if (registered === undefined || passage === null) return;
    if (registered.limited !== null) await this.#countRate(registered.limited, request);
    const { role } = registered;
    if (role === "public") return;
    passage.caller = await this.#callers.confirmed(passage.caller, role, registered);
    this.#callers.admit(passage.caller, role, registered, request.headers.host);
    this.#connections.admitted(passage.connection, payerOf(passage.caller, passage.address));
  }

  async #countRate(limited: "admin" | "acquire", request: FastifyRequest): Promise<void> {
    const rate = await this.#limiters?.[limited](request);
    if (rate === undefined || rate.isAllowed || !rate.isExceeded) return;
    throw new Refusal(
      "RATE_LIMITED",
      `More than ${rate.max} calls of this kind came from ${payerIn(request)} in ${this.#limits.rateWindowMs} ms. Retry after ${rate.ttlInSeconds} s.`,
      {},
      rate.ttlInSeconds,
    );
  }

  #leave(request: FastifyRequest, reply: FastifyReply, payload: unknown): void {
    const registered = registeredOf(request);
    const passage = passageOf(request);
    const isLast = this.#isStopping() || this.#connections.isRetired(passage?.connection);
    if (isLast) void reply.header("connection", "close");
    this.#watchReader(request, reply, payload);
    const operation = registered?.operation ?? passage?.operation ?? null;
    if (operation === null || passage === null) return;
    const { clock, nodeId } = this.#options;
    const { caller, address, target, forced, outcome, startedAtMs, payer } = passage;
    const call = {
      atMs: clock.wallMs(),
      nodeId,
      address,
      operation,
      target,
      forced,
      outcome,
      status: reply.statusCode,
      durationMs: Math.max(0, clock.monotonicMs() - startedAtMs),
      requestId: request.id,
    };
    // What is no admin route is written for what it did; where it was refused it did nothing, as one that never began.
    const isRefused = outcome !== "OK" && (!passage.isBegun || registered?.operation === null);
    if (isRefused) this.#audit.refused(payer, caller, call);
    else this.#audit.ended(caller, call);
  }

  /**
   * Makes a large answer, or reads what is old, when its turn comes. Rejects with OVERLOADED where the caller has not read those before it by then, and
   * with what nobody hears where it has gone.
   */
  inTurn<T>(request: FastifyRequest, of: "pages" | "points", make: () => Promise<T>): Promise<T> {
    return (of === "pages" ? this.#pages : this.#points).run(() => {
      this.#shares.check(payerIn(request), "bytes");
      if (passageOf(request)?.over.signal.aborted === true) throw stopping(this.#options.nodeId);
      return make();
    });
  }

  /** Throws OVERLOADED where the caller has its share of streams, or there are too many in all. A second call of what it returns does nothing. */
  takeStream(request: FastifyRequest): () => void {
    const caller = payerIn(request);
    this.#shares.check(caller, "streams");
    const close = this.#streams.take(() => this.#shares.add(caller, "streams", -1));
    this.#shares.add(caller, "streams", 1);
    return close;
  }

  /** Until the answer is read, or nobody is there to read it. */
  #watchReader(request: FastifyRequest, { raw }: FastifyReply, payload: unknown): void {
    const bytes = typeof payload === "string" || payload instanceof Uint8Array ? payload.length : 0;
    const { socket } = request.raw;
    if (socket.destroyed || raw.destroyed) return;
    const payer = payerIn(request);
    // One answer alone, a snapshot's, never takes all of a share.
    const counted = Math.min(bytes, this.#limits.answerBytesPerCaller / 2);
    this.#connections.answered(raw, socket, bytes);
    this.#shares.add(payer, "bytes", counted);
    raw.once("close", () => {
      this.#connections.read(raw);
      this.#shares.add(payer, "bytes", -counted);
    });
  }

  reportFault(error: unknown, request: FastifyRequest): void {
    const { logger, onFault } = this.#options;
    const stack = error instanceof Error ? error.stack : String(error);
    logger.error({ requestId: request.id, route: registeredOf(request)?.name, stack }, "a request failed unforeseen");
    onFault?.(error);
  }

  #answerNoRoute(request: FastifyRequest, reply: FastifyReply): void {
    const path = request.url.split("?", 1)[0] ?? "";
    const { extraRoutes = [], web = [], cluster } = this.#options;
    const methods = methodsOf(path, [...extraRoutes, ...web.map((file) => ({ method: "GET", path: file.path }))]);
    if (methods.length === 0) {
      return this.answerError(
        new Refusal("NOT_FOUND", "There is no such path in this API; docs/reference/api.md lists all."),
        request,
        reply,
      );
    }
    void reply.header("allow", [...methods, "OPTIONS"].join(", "));
    if (request.method === "OPTIONS") {
      return void reply
        .headers(preflightHeaders(request.headers.origin, cluster, methods))
        .code(204)
        .send();
    }
    this.answerError(
      new Refusal("METHOD_NOT_ALLOWED", `This path takes ${methods.join(" or ")}, not ${request.method}.`),
      request,
      reply,
    );
  }
}

function stageOf(passage: Passage | null, registered: Registered | undefined): Stage {
  if (passage?.isBegun !== true) return "arriving";
  return registered?.isWrite === true ? "writing" : "reading";
}

function payerIn(request: FastifyRequest): string {
  return passageOf(request)?.payer ?? "unknown";
}

/** By name where there is one: behind one address may be many. */
function payerOf(caller: Caller, address: string): string {
  return caller.how === "key" || caller.how === "certificate" ? `${caller.how} ${caller.name}` : `address ${address}`;
}

function methodsOf(path: string, extra: readonly { readonly method: string; readonly path: string }[]): string[] {
  const methods = [...Object.values(ROUTES), ...extra]
    .filter((route) => pattern(route.path).test(path))
    .flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method]));
  return [...new Set(methods)];
}

function pattern(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/:\w+/g, "[^/]+")}$`);
}

/** A client of an ancestor goes on with this cluster, but not with a copy that is paused. */
function lineHeaders({ ancestors, isPaused }: LineView): Record<string, string> {
  const named = ancestors === null ? "?" : ancestors.join(",");
  return {
    ...(named === "" ? {} : { "x-tenure-ancestors": named }),
    ...(isPaused ? { "x-tenure-paused": "true" } : {}),
  };
}
