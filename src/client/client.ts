// The client of Tenure's own servers: reads anywhere, everything else at the leader, which it finds by itself. It holds
// no connection, no timer and no state but the leader's last address, so there is nothing to close.

import { type ErrorCode, refuseUnknownOptions, TenureError } from "../contract/errors.ts";
import { toCamel, toSnake } from "../contract/snake-case.ts";
import { CALL_MS } from "../contract/timeouts.ts";
import { Caller, type CallOptions, readQuery, type ReadOptions } from "./caller.ts";
import { type ClientCoordinators, coordinatorsOf } from "./coordinators/index.ts";
import { type ClientFetch, exchange, jsonOf } from "./exchange.ts";
import { type ClientJobs, jobsOf } from "./jobs.ts";
import { DOWNLOAD_TIMEOUT_MS, NODE_TIMEOUT_MS } from "./limits.ts";
import { type ClientScopes, scopesOf } from "./scopes.ts";
import { type ClientValues, valuesOf } from "./values/index.ts";
import { type ClientWork, workOf } from "./work.ts";
import { type TransactionsPart, transactionsOf } from "./transactions/index.ts";
import type {
  AuditView,
  ClusterView,
  LeaderView,
  MemberChange,
  MemberChangeView,
  NodeDrainView,
  ResumeView,
  SavedSnapshotView,
  StoredSnapshotView,
  TransferView,
} from "./views.ts";

export interface ClientOptions {
  /** Any of the cluster's nodes; better several. */
  readonly urls: string | readonly string[];
  /** The API key; sent to these URLs and to the members that they name, and nowhere else. */
  readonly key?: string | undefined;
  /** Another way to send requests, such as one with a client certificate. */
  readonly fetch?: ClientFetch | undefined;
  /** For each call as a whole, with everything that is tried again; 10 seconds. */
  readonly timeoutMs?: number | undefined;
  /** How much of that may go by while nobody leads; all of it. */
  readonly leaderWaitMs?: number | undefined;
}

/** One node's own view; null where it gave none, and then why. */
export type NodeAnswer =
  | { readonly url: string; readonly view: ClusterView; readonly why: null; readonly code: null }
  /** `code`: of its refusal, or of what is in the way to it; null: it did not answer. */
  | { readonly url: string; readonly view: null; readonly why: string; readonly code: ErrorCode | null };

export interface Client extends ClientCluster, ClientJobs, TransactionsPart {
  /** What agents call; `tenure/agent` does it for you. */
  readonly work: ClientWork;
}

export interface ClientCluster {
  leader(options?: CallOptions): Promise<LeaderView>;
  /** As whichever node answers first sees it. */
  cluster(options?: ReadOptions): Promise<ClusterView>;
  /** As each node sees it: the configured ones, and the members that they name. Never rejects for a node that is down. */
  nodes(options?: CallOptions): Promise<readonly NodeAnswer[]>;
  /** To the best other voter where no target is named. */
  transfer(
    request?: { readonly target?: string | undefined; readonly force?: boolean | undefined },
    options?: CallOptions,
  ): Promise<TransferView>;
  /**
   * Takes the node at `url` out, or in again: another leads, and it does not want to until it is undone, or started anew.
   * Refused where nobody else could lead; not with `force`.
   */
  drainNode(
    url: string,
    request: { readonly nodeId: string; readonly drain?: boolean | undefined; readonly force?: boolean | undefined },
    options?: CallOptions,
  ): Promise<NodeDrainView>;
  /** Lets a cluster act that was restored paused. */
  resume(options?: CallOptions): Promise<ResumeView>;
  changeMember(change: MemberChange, options?: CallOptions): Promise<MemberChangeView>;
  /** On the leader, or on the node at `url`. */
  saveSnapshot(
    options?: CallOptions & { readonly url?: string | undefined },
  ): Promise<SavedSnapshotView & { readonly url: string }>;
  /** The newest snapshot of the node at `url`, as a file. */
  downloadSnapshot(url: string, options?: CallOptions): Promise<ReadableStream<Uint8Array>>;
  /** Reports to the node at `url` that the snapshot which was fetched there is checked and stored: its metric shows when. */
  storedSnapshot(url: string, stored: { readonly index: number }, options?: CallOptions): Promise<StoredSnapshotView>;
  /** What the node at `url` has written down. */
  audit(url: string, options?: CallOptions): Promise<AuditView>;
  readonly scopes: ClientScopes;
  /** Small documents next to the scopes, which a leader writes only while its epoch is in force. */
  readonly values: ClientValues;
  /** Of transactions over several clusters. */
  readonly coordinators: ClientCoordinators;
}

/** All there are, for those whom no compiler tells of a misspelt one. */
export const CLIENT_OPTIONS = {
  urls: true,
  key: true,
  fetch: true,
  timeoutMs: true,
  leaderWaitMs: true,
} as const satisfies Readonly<Record<keyof ClientOptions, true>>;

/** Does nothing before it is asked something; throws CONFIG_INVALID where the options are wrong. */
export function createClient(options: ClientOptions): Client {
  refuseUnknownOptions("createClient", options, CLIENT_OPTIONS);
  return clientWith(options, adviceOf(options));
}

/** A client that runs no transactions and does no agent's work: who bundles a page that only looks and steers ships no more than that. */
export function createSteering(options: ClientOptions): ClientCluster & ClientJobs {
  const caller = callerWith(options, adviceOf(options));
  return Object.assign(new ServersClient(caller), jobsOf(caller));
}

/** What agents call, without the rest of a client: who bundles an agent ships no more than that. */
export function createWork(options: ClientOptions): ClientWork {
  return workOf(callerWith(options, adviceOf(options)));
}

function adviceOf({ key }: ClientOptions): string {
  return key === undefined
    ? "An API key is given with this client's option `key`."
    : "Check this client's option `key`.";
}

/** `keyAdvice` is told to whoever is answered 401: how this tool takes its key. */
export function clientWith(options: ClientOptions, keyAdvice: string): Client {
  const caller = callerWith(options, keyAdvice);
  return Object.assign(new ServersClient(caller), jobsOf(caller), transactionsOf(caller), { work: workOf(caller) });
}

export function callerWith(options: ClientOptions, keyAdvice: string): Caller {
  const { urls, key, fetch: given, timeoutMs = CALL_MS, leaderWaitMs = timeoutMs } = options;
  return new Caller({
    keyAdvice,
    urls: typeof urls === "string" ? urls.split(",").map((url) => url.trim()) : urls,
    headers: key === undefined ? {} : { "x-api-key": key },
    // Called as a function of its own: a browser's fetch refuses to be a method of something else.
    fetch: given ?? ((url, init) => fetch(url, init)),
    timeoutMs,
    leaderWaitMs,
  });
}

class ServersClient implements ClientCluster {
  readonly scopes: ClientScopes;
  readonly values: ClientValues;
  readonly coordinators: ClientCoordinators;
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
    this.scopes = scopesOf(caller);
    this.values = valuesOf(caller);
    this.coordinators = coordinatorsOf(caller);
  }

  async leader(options: CallOptions = {}): Promise<LeaderView> {
    return await this.#caller.leader(options);
  }

  async cluster(options: ReadOptions = {}): Promise<ClusterView> {
    return await this.#caller.readJson<ClusterView>(`/v1/cluster${readQuery(options)}`, options);
  }

  async nodes(options: CallOptions = {}): Promise<readonly NodeAnswer[]> {
    const { configured } = this.#caller.addresses;
    const first = await Promise.all(configured.map((url) => this.#node(url, options)));
    for (const { view } of first) this.#caller.addresses.learn(view?.members.map((member) => member.url) ?? []);
    const learned = this.#caller.addresses.all().slice(configured.length);
    const seen = new Set(first.map(({ view }) => view?.nodeId));
    // A node that is configured under another name than it gives itself is not asked twice.
    const isSeen = (url: string): boolean =>
      first.some(({ view }) => view?.members.some((member) => member.url === url && seen.has(member.nodeId)) === true);
    const second = learned.filter((url) => !isSeen(url)).map((url) => this.#node(url, options));
    return [...first, ...(await Promise.all(second))];
  }

  async transfer(
    { target, force = false }: { target?: string | undefined; force?: boolean | undefined } = {},
    options: CallOptions = {},
  ): Promise<TransferView> {
    const body = { ...(target === undefined ? {} : { target }), ...(force ? { force } : {}) };
    return await this.#admin<TransferView>("/v1/admin/transfer", body, options);
  }

  async drainNode(
    url: string,
    { nodeId, drain = true, force = false }: Parameters<ClientCluster["drainNode"]>[1],
    options: CallOptions = {},
  ): Promise<NodeDrainView> {
    const path = `/v1/admin/nodes/${encodeURIComponent(nodeId)}/drain`;
    const body = { drain, ...(force ? { force } : {}) };
    return await this.#caller.bodyOf(await this.#caller.ask(url, { method: "POST", path, body }, options));
  }

  async resume(options: CallOptions = {}): Promise<ResumeView> {
    const request = { method: "POST", path: "/v1/admin/resume", body: {}, isIdempotent: true } as const;
    return await this.#caller.bodyOf<ResumeView>(await this.#caller.mutate(request, options));
  }

  async changeMember(change: MemberChange, options: CallOptions = {}): Promise<MemberChangeView> {
    return await this.#admin<MemberChangeView>("/v1/admin/members", toSnake(change), options);
  }

  async saveSnapshot(
    options: CallOptions & { readonly url?: string | undefined } = {},
  ): Promise<SavedSnapshotView & { readonly url: string }> {
    const url = options.url ?? (await this.#caller.leaderUrl(options));
    const response = await this.#caller.ask(url, { method: "POST", path: "/v1/admin/snapshot", body: {} }, options);
    return { ...(await this.#caller.bodyOf<SavedSnapshotView>(response)), url };
  }

  async downloadSnapshot(url: string, options: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const request = { method: "GET", path: "/v1/admin/snapshot" } as const;
    const response = await this.#caller.ask(url, request, { timeoutMs: DOWNLOAD_TIMEOUT_MS, ...options });
    if (response.body === null)
      throw new TenureError("BACKEND_UNAVAILABLE", `${url} sent an empty snapshot; try again.`);
    return response.body as ReadableStream<Uint8Array>;
  }

  async storedSnapshot(
    url: string,
    { index }: { readonly index: number },
    options: CallOptions = {},
  ): Promise<StoredSnapshotView> {
    const request = { method: "POST", path: "/v1/admin/snapshot/stored", body: { index } } as const;
    return await this.#caller.bodyOf(await this.#caller.ask(url, request, options));
  }

  async audit(url: string, options: CallOptions = {}): Promise<AuditView> {
    return await this.#caller.bodyOf(await this.#caller.ask(url, { method: "GET", path: "/v1/admin/audit" }, options));
  }

  async #admin<T>(path: string, body: unknown, options: CallOptions): Promise<T> {
    const response = await this.#caller.mutate({ method: "POST", path, body, isIdempotent: false }, options);
    return await this.#caller.bodyOf<T>(response);
  }

  async #node(url: string, options: CallOptions): Promise<NodeAnswer> {
    const line = this.#caller.line({ timeoutMs: NODE_TIMEOUT_MS, ...options });
    const answer = await exchange(line, url, { method: "GET", path: "/v1/cluster" });
    options.signal?.throwIfAborted();
    if (answer.kind === "ok") {
      const body = toCamel(await jsonOf(answer.response).catch(() => undefined)) as ClusterView | undefined;
      if (Array.isArray(body?.members)) return { url, view: body, why: null, code: null };
      return { url, view: null, why: "it answers, but not as a Tenure server does", code: null };
    }
    return answer.kind === "silent"
      ? { url, view: null, why: answer.why, code: answer.code }
      : { url, view: null, why: answer.message, code: answer.code };
  }
}
