// The HTTP API of one node: every route of the contract, in front of the ports.
//
//   made ──listen──▶ serving ──stop──▶ stopping ──▶ stopped
//
// Stopping: no new connection is taken, new requests on open ones get 503, long polls end with 503, what is under way is
// answered, and after `graceMs` the rest is cut.

import type { FastifyInstance } from "fastify";
import {
  type CertificatePeer,
  JOB_ROUTES,
  type ListenAddress,
  REGISTRY_ROUTES,
  type Role,
  showAddress,
} from "../contract/index.ts";
import { TenureError } from "../core/kit/errors.ts";
import type { IdentityKind } from "../core/kit/spiffe.ts";
import { STOP_GRACE_MS } from "../core/kit/timeouts.ts";
import { adminHandlers } from "./handlers/admin.ts";
import { drainHandlers } from "./handlers/drain.ts";
import { Audit } from "./audit.ts";
import { Callers } from "./traffic/callers.ts";
import { Connections } from "./traffic/connections.ts";
import { clusterHandlers } from "./handlers/cluster.ts";
import { registerEndpoints, registerExtras } from "./endpoints.ts";
import { makeFramework, tlsOptions } from "./framework.ts";
import { eventHandlers } from "./handlers/events.ts";
import type { Handlers, JobsParts, Service } from "./handlers/handler.ts";
import type { MeshLines } from "../ports/mesh/lines.ts";
import type { HttpStats } from "../ports/server-stats.ts";
import { HttpCounters } from "./http-stats.ts";
import { HELD_PER_CALLER_MAX } from "./limits.ts";
import { jobHandlers } from "./handlers/jobs.ts";
import { jobMutations } from "./handlers/job-mutations.ts";
import { KeyRounds } from "./traffic/key-rounds.ts";
import { meshStateHandlers } from "./handlers/mesh-state.ts";
import { LongPolls } from "./traffic/long-polls.ts";
import { API_LIMITS, type ApiLimits, type ApiOptions, type ApiTls } from "./options.ts";
import { passageOf, type Registered, registeredOf } from "./traffic/passage.ts";
import { meshLinesHandlers } from "./handlers/mesh-lines.ts";
import { meshLinksHandlers, refuseEvicted } from "./handlers/mesh-links.ts";
import { meshOperatorHandlers } from "./handlers/mesh-operator.ts";
import { registryHandlers } from "./handlers/mesh-registry.ts";
import { probeHandlers } from "./handlers/probes.ts";
import { Refusal } from "./refusal.ts";
import { scopeHandlers } from "./handlers/scopes.ts";
import { Shares } from "./traffic/shares.ts";
import { SiteDoor } from "./traffic/site-door.ts";
import { steeringHandlers } from "./handlers/steering.ts";
import { StreamPlaces } from "./streams/stream-places.ts";
import { tcHandlers } from "./handlers/tc.ts";
import { txnHandlers } from "./handlers/txn/txn.ts";
import { Traffic } from "./traffic/traffic.ts";
import { valueHandlers } from "./handlers/values.ts";
import { registerWeb } from "./web.ts";

export interface Api {
  /** Resolves with the address in use: port 0 takes a free one. */
  listen(address: ListenAddress): Promise<ListenAddress>;
  stats(): HttpStats;
  /** What the router knows. */
  routes(): readonly KnownRoute[];
  /** New certificates, for new connections; those of now are used for one more answer. Only where it was made with TLS. */
  reload(tls: ApiTls): void;
  /** What new connections are shown, in PEM; null without TLS. */
  certificate(): string | null;
  /** Safe to call twice. */
  stop(graceMs?: number): Promise<void>;
}

export interface KnownRoute {
  readonly method: string;
  readonly path: string;
  readonly role: Registered["role"] | null;
  /** Route.identities: the role is not looked at. */
  readonly identities: readonly IdentityKind[] | null;
}

export async function createApi(options: ApiOptions): Promise<Api> {
  const server = new ApiServer(options);
  await server.prepare();
  return server;
}

class ApiServer implements Api {
  readonly #options: ApiOptions;
  readonly #limits: ApiLimits;
  readonly #app: FastifyInstance;
  readonly #traffic: Traffic;
  readonly #audit: Audit;
  readonly #polls: LongPolls;
  readonly #streams: StreamPlaces;
  readonly #callers: Callers;
  readonly #connections: Connections;
  readonly #shares: Shares;
  readonly #counters = new HttpCounters();
  readonly #routes: KnownRoute[] = [];
  #certificate: string | null;
  #peers: readonly CertificatePeer[];
  #stopped: Promise<void> | undefined;

  constructor(options: ApiOptions) {
    const { tls = null, keys, jobs, isLoopback, sha256, trustDomain } = options;
    this.#options = options;
    this.#certificate = tls?.cert ?? null;
    this.#peers = tls?.peers ?? [];
    this.#limits = { ...API_LIMITS, ...options.limits };
    this.#audit = new Audit(options.audit, options.clock, this.#limits);
    this.#polls = new LongPolls(options.clock);
    this.#streams = new StreamPlaces(this.#limits.streamsMax);
    const hasClientCa = tls !== null && tls.clientCa !== null;
    this.#callers = new Callers({
      keys,
      replicated: jobs?.keys ?? null,
      isRevoked: (hash) => jobs?.certificates.isRevoked(hash) ?? false,
      cluster: options.cluster,
      rounds: new KeyRounds(options, this.#limits),
      nodeId: options.nodeId,
      isLoopback,
      isTcOpen: options.tcAuthDisabled === true,
      sha256,
      trustDomain,
      peers: () => this.#peers,
      hasClientCa,
      parseTime: options.parseTime,
      wallMs: () => options.clock.wallMs(),
    });
    warnOfOpenDoor(options, this.#callers.anonymousRoles());
    this.#shares = new Shares({
      connections: this.#limits.connectionsPerCaller,
      requests: this.#limits.requestsPerCaller,
      streams: this.#limits.streamsPerCaller,
      bytes: this.#limits.answerBytesPerCaller,
      held: HELD_PER_CALLER_MAX,
    });
    this.#connections = new Connections(this.#limits, options.clock, this.#counters, this.#shares);
    this.#traffic = new Traffic(options, this.#limits, {
      callers: this.#callers,
      connections: this.#connections,
      shares: this.#shares,
      streams: this.#streams,
      audit: this.#audit,
      counters: this.#counters,
      isStopping: () => this.#isStopping,
    });
    this.#app = makeFramework(this.#limits, tls, this.#counters, (error, request, reply) =>
      this.#traffic.answerError(error, request, reply),
    );
  }

  async prepare(): Promise<void> {
    const app = this.#app;
    app.server.on("connection", (socket) => this.#connections.accept(socket));
    // Before Fastify sees it, so that it holds for what no hook sees: a path that can't be decoded.
    app.server.prependListener("request", (request, answer) => this.#connections.asked(request.socket, answer));
    app.addHook("onRoute", ({ method, path, config }) => {
      const { role = null, forIdentities } = config?.registered ?? {};
      const identities = forIdentities?.kinds ?? null;
      for (const one of [method].flat()) this.#routes.push({ method: one, path, role, identities });
    });
    await this.#traffic.install(app);
    const { jobs, ...options } = this.#options;
    const sites = new SiteDoor({
      links: options.links,
      polls: this.#polls,
      shares: this.#shares,
      nodeId: options.nodeId,
    });
    // Whether it is let in or not: a refusal costs as much.
    app.addHook("onRequest", (request, reply) => sites.arrive(request, reply));
    // After the caller is let in.
    app.addHook("preParsing", async (request, _reply, payload) => {
      const passage = passageOf(request);
      // Whether it may register again is the registry's to say.
      if (passage !== null && registeredOf(request)?.name !== REGISTER) refuseEvicted(options.links, passage.caller);
      return payload;
    });
    const service: Service = {
      ...options,
      limits: this.#limits,
      polls: this.#polls,
      audit: this.#audit,
      counters: this.#counters,
      isStopping: () => this.#isStopping,
      isQuiet: () => jobs?.jobs.isDraining() ?? false,
      anonymousRoles: () => this.#callers.anonymousRoles(),
    };
    const handlers = {
      ...probeHandlers(service),
      ...clusterHandlers(service),
      ...scopeHandlers(service),
      ...valueHandlers(service),
      ...adminHandlers(service),
      ...drainHandlers(service, jobs?.jobs),
      ...meshLinesHandlers(options.lines, options.links),
      ...meshOperatorHandlers(service, options.lines, options.links),
      ...meshLinksHandlers(service, options.links),
      ...meshStateHandlers(service),
      ...tcHandlers(service),
      ...txnHandlers(service),
      ...(jobs === undefined ? withoutJobs(service) : withJobs(service, jobs, options.lines)),
    };
    registerEndpoints(app, service, handlers, this.#traffic);
    registerExtras(app, this.#options.extraRoutes ?? [], this.#traffic);
    registerWeb(app, this.#options.web ?? [], this.#options.cluster);
    // After what is being applied: whoever is ended looks at it again.
    const review = (): void => void Promise.resolve().then(() => this.#polls.review());
    jobs?.keys.onRevoked(review);
    jobs?.certificates.onRevoked(review);
    await app.ready();
  }

  async listen({ host, port }: ListenAddress): Promise<ListenAddress> {
    await this.#app.listen({ host, port }).catch((error: NodeJS.ErrnoException) => {
      const why = error.code === "EADDRINUSE" ? "another process listens there" : error.message;
      const text = `this node can't listen for clients on ${showAddress({ host, port })}: ${why}. Free it, or change api.listen.`;
      throw new TenureError("CONFIG_INVALID", text, { cause: error });
    });
    const address = this.#app.server.address();
    return { host, port: typeof address === "object" && address !== null ? address.port : port };
  }

  stats(): HttpStats {
    return this.#counters.snapshot(this.#connections.open, this.#streams.taken);
  }

  routes(): readonly KnownRoute[] {
    return this.#routes;
  }

  reload(tls: ApiTls): void {
    const server = this.#app.server as { setSecureContext?: (options: object) => void };
    server.setSecureContext?.(tlsOptions(tls));
    this.#certificate = tls.cert;
    this.#peers = tls.peers ?? [];
    this.#callers.forget();
    this.#connections.retireAll();
    this.#polls.review();
  }

  certificate(): string | null {
    return this.#certificate;
  }

  stop(graceMs: number = STOP_GRACE_MS): Promise<void> {
    this.#stopped ??= this.#stop(graceMs);
    return this.#stopped;
  }

  async #stop(graceMs: number): Promise<void> {
    const { clock } = this.#options;
    const timer = clock.setTimer(clock.monotonicMs() + graceMs, () => this.#app.server.closeAllConnections());
    // The flag is up when the polls end, so that their answers close the connections.
    await Promise.resolve();
    const closed = this.#app.close();
    this.#polls.stop();
    await closed;
    this.#connections.stop();
    this.#audit.stop();
    timer.cancel();
  }

  get #isStopping(): boolean {
    return this.#stopped !== undefined;
  }
}

const REGISTER = `POST ${REGISTRY_ROUTES.registerController.path}`;
const SITE_ROUTES = { ...JOB_ROUTES, ...REGISTRY_ROUTES };
type JobHandlers = Pick<Handlers, keyof typeof SITE_ROUTES>;

function withJobs(service: Service, parts: JobsParts, lines: MeshLines | undefined): JobHandlers {
  return {
    ...jobHandlers(service, parts),
    ...jobMutations(service, parts),
    ...eventHandlers(service, parts, lines),
    ...steeringHandlers(service, parts),
    ...registryHandlers(service, parts.controllers),
  };
}

function withoutJobs({ nodeId }: Service): JobHandlers {
  const absent = (): never => {
    throw new Refusal("NOT_FOUND", `Node ${nodeId} serves no jobs.`);
  };
  return Object.fromEntries(Object.keys(SITE_ROUTES).map((id) => [id, absent])) as unknown as JobHandlers;
}

/** Keys of the replicated state may not be known yet: they end it later, without a word. */
function warnOfOpenDoor({ logger, nodeId }: ApiOptions, roles: readonly Role[]): void {
  if (roles.length === 0) return;
  logger.warn(
    { event: "anonymous-access", nodeId, roles: roles.join(",") },
    `everybody on this machine may call without a key, as ${roles.join(", ")}. Before anything else than a demo, make keys: tenure key create --help`,
  );
}
