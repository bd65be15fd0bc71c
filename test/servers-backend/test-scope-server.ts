// A cluster of Tenure's servers as its clients see it, in this process and in memory: several HTTP nodes over one state. The
// answers are honest (leases by duration that a new leader starts anew, epochs from one growing index, long polls); nothing is
// replicated. What a real cluster does slowly or rarely, a test does here at once: elect, fall silent, die, answer nonsense.

import { randomUUID } from "node:crypto";
import { createServer as createHttp, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createHttps } from "node:https";
import type { TlsOptions } from "node:tls";
import { freePort } from "../servers/index.ts";

const HOST = "127.0.0.1";
const HISTORY_MAX = 32;

export interface TestClusterOptions {
  readonly nodes?: number;
  /** Keys by role; without any, everybody may do everything. */
  readonly keys?: Readonly<Record<string, "client" | "operator">>;
  readonly tls?: TlsOptions;
  /** What nodes advertise as their URL; null: nothing. Default: where they listen. */
  readonly advertise?: (node: TestNode) => string | null;
  /** Whether answers name the cluster. Default true. */
  readonly header?: boolean;
}

interface Holder {
  readonly epoch: number;
  readonly identity: string;
  readonly metadata: Record<string, string>;
  readonly session: string;
  readonly ttl_ms: number;
  readonly acquired_at_ms: number;
  expiresMs: number;
  resign_requested: boolean;
}

interface Scope {
  epoch: number;
  holder: Holder | null;
  readonly transitions: object[];
}

/** True: it was answered, or will never be. */
export type Intercept = (request: IncomingMessage, response: ServerResponse, path: string) => boolean;

class Refusal extends Error {
  readonly status: number;
  readonly body: object;
  constructor(status: number, error: string, fields: object = {}) {
    super(error);
    this.status = status;
    this.body = { error, message: `${error} of the test`, ...fields };
  }
}

export async function startTestCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  const cluster = new TestCluster(options);
  for (let at = 1; at <= (options.nodes ?? 3); at++) {
    const node = new TestNode(cluster, `n${at}`, await freePort(), options.tls);
    cluster.nodes.push(node);
    await node.start();
  }
  cluster.elect(0);
  return cluster;
}

export class TestCluster {
  readonly nodes: TestNode[] = [];
  readonly options: TestClusterOptions;
  clusterId: string = randomUUID();
  leader: TestNode | null = null;
  term = 0;
  readonly #scopes = new Map<string, Scope>();
  #index = 0;
  #changed = Promise.withResolvers<void>();

  constructor(options: TestClusterOptions) {
    this.options = options;
  }

  get urls(): string[] {
    return this.nodes.map(({ url }) => url);
  }

  node(at: number): TestNode {
    const node = this.nodes[at];
    if (node === undefined) throw new Error(`there is no node ${at}`);
    return node;
  }

  /** Null: nobody leads. A new leader gives every lease its whole duration. */
  elect(at: number | null): void {
    this.term++;
    this.leader = at === null ? null : this.node(at);
    for (const { holder } of this.#scopes.values()) if (holder !== null) holder.expiresMs = now() + holder.ttl_ms;
    this.#change();
  }

  holderOf(name: string): { readonly epoch: number; readonly identity: string; readonly session: string } | null {
    const scope = this.#scopes.get(name);
    if (scope !== undefined) this.#expire(scope);
    return scope?.holder ?? null;
  }

  async end(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.kill()));
  }

  async answer(node: TestNode, asked: Asked): Promise<object> {
    const { path, query } = asked;
    const [, verb, name = "", action] = /^\/v1\/(scopes|admin\/scopes)(?:\/([^/]+))?(?:\/(\w+))?$/.exec(path) ?? [];
    const scope = decodeURIComponent(name);
    if (path === "/leader") return this.#leaderAnswer(node);
    if (path === "/v1/cluster") return this.#clusterAnswer(node);
    if (verb === undefined) throw new Refusal(404, "NOT_FOUND");
    if (asked.method === "POST" && this.leader !== node) throw this.#notLeader(node);
    if (this.leader === null) throw new Refusal(503, "ERR_NO_LEADER");
    if (verb === "admin/scopes") return this.#askResign(scope, asked.body["force"] === true);
    switch (action) {
      case "acquire":
        return this.#acquire(node, scope, asked);
      case "renew":
        return this.#renew(scope, asked.body);
      case "resign":
        return this.#resign(scope, asked.body);
      case "history":
        return { transitions: this.#scopes.get(scope)?.transitions.toReversed() ?? [] };
      default:
        if (name !== "") return this.#read(scope, query, asked.gone);
        return this.#page(query.get("after") ?? "", Number(query.get("limit")));
    }
  }

  #page(after: string, limit: number): object {
    const behind = [...this.#scopes].filter(([name]) => name > after).toSorted(([a], [b]) => (a < b ? -1 : 1));
    const page = behind.slice(0, limit);
    const next = behind.length > limit ? (page.at(-1)?.[0] ?? null) : null;
    return { scopes: page.map(([one, state]) => view(one, state)), next };
  }

  #leaderAnswer(node: TestNode): object {
    const { leader, term } = this;
    if (leader === null) throw new Refusal(503, "ERR_NO_LEADER", { code: 4002, node_id: node.id });
    return { leader_id: leader.id, leader_address: null, leader_url: leader.advertised, term, node_id: node.id };
  }

  #clusterAnswer(node: TestNode): object {
    const { leader } = this;
    return {
      cluster_id: this.clusterId,
      node_id: node.id,
      term: this.term,
      leader: leader === null ? null : { node_id: leader.id, address: null, url: leader.advertised },
      members: this.nodes.map(({ id, advertised }) => ({ node_id: id, url: advertised })),
    };
  }

  #notLeader(node: TestNode): Refusal {
    const { leader } = this;
    if (leader === null) return new Refusal(503, "ERR_NO_LEADER", { code: 4002 });
    const fields = { leader_id: leader.id, leader_url: leader.advertised, leader_epoch: this.term };
    return new Refusal(409, "NOT_LEADER", { ...fields, node_id: node.id, role: "STANDBY" });
  }

  async #acquire(node: TestNode, name: string, { body, gone }: Asked): Promise<object> {
    const untilMs = now() + Number(body["wait_ms"]);
    const scope = this.#scopes.get(name) ?? { epoch: 0, holder: null, transitions: [] };
    this.#scopes.set(name, scope);
    for (;;) {
      if (this.leader !== node) throw this.#notLeader(node);
      this.#expire(scope);
      if (scope.holder === null) this.#grant(scope, body);
      const { holder } = scope;
      if (holder !== null && holder.session === body["session"]) {
        return { granted: true, epoch: holder.epoch, ttl_ms: holder.ttl_ms };
      }
      if (now() >= untilMs || gone.aborted || holder === null)
        return { granted: false, holder: holder && shown(holder) };
      await this.#wait(Math.min(untilMs, holder.expiresMs), gone);
      if (gone.aborted) throw new Refusal(503, "OVERLOADED");
    }
  }

  #grant(scope: Scope, body: Asked["body"]): void {
    scope.epoch = ++this.#index;
    scope.holder = {
      epoch: scope.epoch,
      identity: String(body["identity"]),
      metadata: (body["metadata"] ?? {}) as Record<string, string>,
      session: String(body["session"]),
      ttl_ms: Number(body["ttl_ms"]),
      acquired_at_ms: Date.now(),
      expiresMs: now() + Number(body["ttl_ms"]),
      resign_requested: false,
    };
    this.#note(scope, "acquired", null);
  }

  #renew(name: string, body: Asked["body"]): object {
    const holder = this.#held(name, body);
    if (holder === null) throw new Refusal(409, "STALE_EPOCH");
    holder.expiresMs = now() + holder.ttl_ms;
    return { epoch: holder.epoch, ttl_ms: holder.ttl_ms, resign_requested: holder.resign_requested };
  }

  #resign(name: string, body: Asked["body"]): object {
    const scope = this.#scopes.get(name);
    if (scope !== undefined && this.#held(name, body) !== null) this.#free(scope, "resigned");
    return {};
  }

  #askResign(name: string, force: boolean): object {
    const scope = this.#scopes.get(name);
    const holder = scope?.holder ?? null;
    if (scope === undefined || holder === null) return { epoch: null };
    if (force) this.#free(scope, "forced");
    else holder.resign_requested = true;
    return { epoch: holder.epoch };
  }

  async #read(name: string, query: URLSearchParams, gone: AbortSignal): Promise<object> {
    const untilMs = now() + Number(query.get("wait_ms") ?? 0);
    for (;;) {
      if (this.leader === null) throw new Refusal(503, "ERR_NO_LEADER");
      const scope = this.#scopes.get(name);
      if (scope !== undefined) this.#expire(scope);
      const known =
        query.get("epoch") === String(scope?.epoch ?? 0) &&
        query.get("held") === String((scope?.holder ?? null) !== null);
      if (!known || now() >= untilMs || gone.aborted) {
        if (scope === undefined || scope.epoch === 0) throw new Refusal(404, "NOT_FOUND");
        return view(name, scope);
      }
      await this.#wait(Math.min(untilMs, scope?.holder?.expiresMs ?? Infinity), gone);
    }
  }

  #held(name: string, { session, epoch }: Asked["body"]): Holder | null {
    const scope = this.#scopes.get(name);
    if (scope !== undefined) this.#expire(scope);
    const holder = scope?.holder ?? null;
    return holder?.session === session && holder?.epoch === epoch ? holder : null;
  }

  #expire(scope: Scope): void {
    if (scope.holder !== null && now() >= scope.holder.expiresMs) this.#free(scope, "expired");
  }

  #free(scope: Scope, reason: string): void {
    this.#note(scope, reason, Date.now() - (scope.holder?.acquired_at_ms ?? 0));
    scope.holder = null;
    this.#change();
  }

  #note({ epoch, holder, transitions }: Scope, reason: string, heldMs: number | null): void {
    transitions.push({ at_ms: Date.now(), epoch, identity: holder?.identity ?? "?", reason, held_ms: heldMs });
    if (transitions.length > HISTORY_MAX) transitions.shift();
    this.#change();
  }

  #change(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  async #wait(untilMs: number, gone: AbortSignal): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.max(1, Math.min(untilMs - now(), 60_000)));
      gone.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([this.#changed.promise, late]);
    clearTimeout(timer);
  }
}

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: Readonly<Record<string, unknown>>;
  /** Aborts when whoever asked is gone. */
  readonly gone: AbortSignal;
}

export class TestNode {
  readonly id: string;
  readonly port: number;
  /** Paths, in the order in which they came, with what authorised them. */
  readonly asked: { readonly path: string; readonly key: string | undefined }[] = [];
  intercept: Intercept | undefined;
  isFrozen = false;
  readonly #cluster: TestCluster;
  readonly #tls: TlsOptions | undefined;
  #server: Server | undefined;

  constructor(cluster: TestCluster, id: string, port: number, tls: TlsOptions | undefined) {
    this.#cluster = cluster;
    this.id = id;
    this.port = port;
    this.#tls = tls;
  }

  get url(): string {
    return `${this.#tls === undefined ? "http" : "https"}://${HOST}:${this.port}`;
  }

  get advertised(): string | null {
    const { advertise } = this.#cluster.options;
    return advertise === undefined ? this.url : advertise(this);
  }

  async start(): Promise<void> {
    const hear = (request: IncomingMessage, response: ServerResponse): void => void this.#hear(request, response);
    const server = this.#tls === undefined ? createHttp(hear) : createHttps(this.#tls, hear);
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(this.port, HOST, resolve));
  }

  /** As kill -9 does: every connection is cut, and nobody listens. */
  async kill(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }

  async #hear(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://node");
    const key = request.headers["x-api-key"] as string | undefined;
    this.asked.push({ path: url.pathname, key });
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    if (this.isFrozen || this.intercept?.(request, response, url.pathname) === true) return;
    try {
      this.#authorise(key, url.pathname);
      const text = await new Response(request as never).text();
      const body = text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
      const { method = "GET" } = request;
      const asked = { method, path: url.pathname, query: url.searchParams, body, gone: gone.signal };
      this.#say(response, 200, await this.#cluster.answer(this, asked));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#say(response, error.status, error.body);
    }
  }

  #authorise(key: string | undefined, path: string): void {
    const { keys } = this.#cluster.options;
    if (keys === undefined) return;
    const role = key === undefined ? undefined : keys[key];
    if (role === undefined) throw new Refusal(401, "UNAUTHENTICATED");
    if (path.startsWith("/v1/admin") && role !== "operator") throw new Refusal(403, "PERMISSION_DENIED");
  }

  #say(response: ServerResponse, status: number, body: object): void {
    if (this.isFrozen || response.destroyed) return;
    const { header = true } = this.#cluster.options;
    const cluster = header ? { "x-tenure-cluster": this.#cluster.clusterId } : {};
    response.writeHead(status, { "content-type": "application/json", ...cluster }).end(JSON.stringify(body));
  }
}

function view(scope: string, { epoch, holder }: Scope): object {
  if (holder === null) return { scope, epoch, holder: null };
  const { ttl_ms, acquired_at_ms, resign_requested } = holder;
  return { scope, epoch, holder: { ...shown(holder), ttl_ms, acquired_at_ms, resign_requested } };
}

function shown({ epoch, identity, metadata }: Holder): object {
  return { epoch, identity, metadata };
}

function now(): number {
  return performance.now();
}
