// The API of one server in front of its parts, whatever they stand on, and what it is reached with.

import { hash, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { createApi, type Api, type ApiLimits, type ApiTls } from "../../api/index.ts";
import { type CertificatePeer, isLoopback, showAddress, type ServerConfig } from "../../contract/index.ts";
import type { CertificateEnd } from "../../core/health/index.ts";
import { InvariantError } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { parseSpiffeId, TRUST_DOMAIN_DEFAULT, uriNames } from "../../core/kit/spiffe.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { createMetrics } from "../../drivers/telemetry/index.ts";
import type { Cluster } from "../../ports/cluster.ts";
import type { Coordinators } from "../../ports/coordinators.ts";
import type { Logger } from "../../ports/logger.ts";
import type { CoordinatorServerStats, ServerStats } from "../../ports/server-stats.ts";
import type { TxnDecider } from "../../ports/transactions.ts";
import { nameWarning } from "./certificate-names.ts";
import type { NodeServices } from "../assembly/assemble.ts";
import type { ServerNodeOptions } from "./embedded.ts";
import { readWeb } from "./web.ts";

export interface ApiParts {
  readonly clusterId: string;
  readonly cluster: Cluster;
  readonly services: Pick<
    NodeServices,
    | "parts"
    | "scopes"
    | "values"
    | "transactions"
    | "stats"
    | "valuesStats"
    | "lines"
    | "links"
    | "meshState"
    | "arrivals"
  >;
  readonly server: () => ServerStats;
  readonly options: Pick<ServerNodeOptions, "logs" | "diagnostics" | "onFatal">;
  readonly tls: ApiTls | null;
  /** Absent: this node is no transaction coordinator. */
  readonly coordinators?: (Coordinators & { stats(): CoordinatorServerStats }) | undefined;
  readonly txnDecider?: TxnDecider | undefined;
}

export async function openApi(config: ServerConfig, parts: ApiParts): Promise<Api> {
  const { clusterId, cluster, services, server, options, tls, coordinators, txnDecider } = parts;
  const { logs, diagnostics, onFatal } = options;
  const metrics = createMetrics(() => ({
    server: server(),
    jobs: services.stats(),
    mesh: services.meshState?.stats() ?? null,
    values: services.valuesStats(),
    coordinators: coordinators?.stats() ?? null,
    transactions: services.transactions?.stats() ?? null,
    decider: txnDecider?.stats() ?? null,
    http: api.stats(),
    apiCertificateNotAfterMs: notAfterMs(api.certificate()),
    droppedLogLines: logs.dropped(),
    lastBackupAtMs: config.backend === null ? api.stats().lastBackupAtMs : null,
  }));
  const trustDomain = trustDomainOf(config);
  if (tls !== null && tls.clientCa !== null) {
    const text = `client certificates of the trust domain ${trustDomain} count`;
    logs.logger.info({ trust_domain: trustDomain }, text);
  }
  const api: Api = await createApi({
    cluster,
    scopes: services.scopes,
    values: services.values,
    jobs: services.parts,
    lines: services.lines,
    links: services.links,
    meshState: services.meshState,
    arrivals: services.arrivals,
    coordinators,
    transactions: services.transactions ?? undefined,
    txnDecider,
    tcAuthDisabled: config.tc?.disableAuth ?? false,
    nodeId: config.nodeId,
    clusterId,
    keys: config.keys,
    isLoopback: isLoopback(config.api.listen.host),
    trustDomain,
    limits: limitsOf(config),
    metrics: () => metrics.scrape(),
    diagnostics,
    logger: logs.logger,
    audit: logs.audit,
    clock: systemClock,
    nextTurn: (begin) => void setImmediate(begin),
    sha256: (text) => hash("sha256", text),
    parseTime: (text) => Date.parse(text),
    tls,
    web: readWeb(),
    // A broken invariant ends the process; anything else was one caller's bad luck, and is in the log.
    onFault: (error) => {
      if (error instanceof InvariantError) onFatal(error);
    },
  });
  if (tls !== null) warnOfNames(config, tls, logs.logger);
  return api;
}

/** New certificates, for connections that are made from now on. Throws, and changes nothing, where they can't be used. */
export function reloadApi(config: ServerConfig, api: Api, logger: Logger): void {
  const tls = apiTls(config);
  if (tls === null) return;
  api.reload(tls);
  warnOfNames(config, tls, logger);
}

function warnOfNames(config: ServerConfig, { cert }: ApiTls, logger: Logger): void {
  const warning = nameWarning(config, cert);
  if (warning !== null) logger.warn({ event: "certificate-names" }, warning);
}

/** Of what the API is bounded by, the part that the configuration has. */
function limitsOf({ api }: ServerConfig): Partial<ApiLimits> {
  const { connectionAgeS, ...limits } = api.limits;
  return { ...limits, connectionAgeMs: connectionAgeS * 1_000 };
}

/**
 * Whose client certificates count: that of the configuration, else of this node's own certificate, else (where that is none of
 * ours, as of a public authority) of the authority of clients, whose organisation it is (`tenure cert init`).
 */
export function trustDomainOf({ api, peer }: Pick<ServerConfig, "api" | "peer">): string {
  if (api.tls === null) return TRUST_DOMAIN_DEFAULT;
  if (api.tls.trustDomain !== null) return api.tls.trustDomain;
  for (const file of [peer.tls?.certFile, api.tls.certFile]) {
    const [uri = ""] = file === undefined ? [] : uriNames(new X509Certificate(pem(file)).subjectAltName);
    const own = parseSpiffeId(uri)?.trustDomain;
    if (own !== undefined) return own;
  }
  const authority = api.tls.clientCaFile === null ? "" : new X509Certificate(pem(api.tls.clientCaFile)).subject;
  return /^O=([a-z0-9][a-z0-9.-]*)$/m.exec(authority)?.[1] ?? TRUST_DOMAIN_DEFAULT;
}

/** When the certificates end that this node shows, for its alerts: whoever raises them is made before the API. */
export class ShownCertificates {
  readonly #peer: () => number | null;
  #api: Api | null = null;

  /** `peer`: the end of the one for other nodes; null: there is none. */
  constructor(peer: () => number | null) {
    this.#peer = peer;
  }

  opened(api: Api): void {
    this.#api = api;
  }

  ends(): readonly CertificateEnd[] {
    const [peer, api] = [this.#peer(), notAfterMs(this.#api?.certificate() ?? null)];
    return [
      ...(peer === null ? [] : [{ use: "peer", notAfterMs: peer } as const]),
      ...(api === null ? [] : [{ use: "api", notAfterMs: api } as const]),
    ];
  }
}

/** Of the first in the file, the API's own. */
function notAfterMs(certificate: string | null): number | null {
  return certificate === null ? null : new X509Certificate(certificate).validToDate.getTime();
}

export function apiUrlOf({ api }: ServerConfig, listening: ServerConfig["api"]["listen"]): string {
  return api.advertise ?? `${api.tls === null ? "http" : "https"}://${showAddress(listening)}`;
}

export function apiTls(config: ServerConfig): ApiTls | null {
  const { api, mesh } = config;
  if (api.tls === null) return null;
  const { certFile, keyFile, clientCaFile, minVersion } = api.tls;
  const own = clientCaFile === null ? [] : [pem(clientCaFile)];
  const authorities = [...own, ...mesh.peers.flatMap(({ caFile }) => (caFile === null ? [] : [pem(caFile)]))];
  const clientCa = authorities.length === 0 ? null : authorities.join("\n");
  const tls = { cert: pem(certFile), key: pem(keyFile), clientCa, peers: certificatePeers(config), minVersion };
  try {
    createSecureContext({ cert: tls.cert, key: tls.key, ...(tls.clientCa === null ? {} : { ca: tls.clientCa }) });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const text = `the API's certificate ${certFile} can't be used with the key ${keyFile}: ${why}. See \`tenure cert show\`.`;
    throw new TenureError("CERTIFICATE_INVALID", text, { cause: error });
  }
  return tls;
}

/** An authority that signs for this cluster's own clients can't be another site's: each would pass for the other. */
function certificatePeers(config: ServerConfig): CertificatePeer[] {
  const { api, mesh } = config;
  const ownFile = api.tls?.clientCaFile ?? null;
  const own = new Set(ownFile === null ? [] : fingerprintsOf(ownFile));
  return mesh.peers.map(({ id, caFile, trustDomain }) => {
    const authorities = caFile === null ? null : fingerprintsOf(caFile);
    if (authorities?.some((one) => own.has(one)) === true) {
      const text = `${caFile} of the site ${id} is also an authority of this cluster's own clients (api.tls.client_ca_file). Leave mesh.peers[].ca_file out for ${id}.`;
      throw new TenureError("CONFIG_INVALID", text);
    }
    return { id, trustDomain: trustDomain ?? trustDomainOf(config), authorities };
  });
}

function fingerprintsOf(path: string): string[] {
  const found = pem(path).match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return found.map((one) => new X509Certificate(one).fingerprint256);
}

export function pem(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TenureError("CERTIFICATE_INVALID", `${path} can't be read: ${why}.`, { cause: error });
  }
}
