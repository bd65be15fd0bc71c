// A real server's transaction coordinator: its files in the node's data directory, HTTPS to the others, its start and its end.
//
//   identity (before anything is opened) ──▶ files ──▶ service ──▶ the API answers for it ──▶ announced once ──▶ votes, campaigns, leads
//   stop: leaves as far as that goes in its time ──▶ the API ends

import { hash } from "node:crypto";
import { isLoopback, type ServerConfig, type TcConfig } from "../../contract/index.ts";
import { CoordinatorService, openCoordinatorFiles } from "../../controller/coordinators/index.ts";
import { incarnationOf } from "../../core/kit/ids.ts";
import { coordinatorCalls, TcHttp, type TcTls } from "../../drivers/coordinators/index.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import type { Certificates } from "../../ports/certificates.ts";
import type { Logger } from "../../ports/logger.ts";
import { assembleCoordination } from "../assembly/coordinators.ts";
import { pem, trustDomainOf } from "./api.ts";
import { type ConsensusNode, newClusterId, newIncarnation } from "./consensus.ts";
import { announceOnce, coordinatorIdentity, sameIdentity } from "./tc-start.ts";

export interface CoordinatorParts {
  readonly tc: TcConfig;
  readonly identity: string;
  readonly consensus: Pick<ConsensusNode, "clusterId" | "engine" | "directory" | "random">;
  readonly certificates: Pick<Certificates, "isRevoked">;
  readonly logger: Logger;
  readonly signal?: AbortSignal | undefined;
  readonly onFatal: (error: unknown) => void;
}

export interface CoordinatorNode {
  readonly service: CoordinatorService;
  /** Once the API answers. Throws BACKEND_UNAVAILABLE where nobody of `tc.join` does. */
  start(): Promise<void>;
  /** Throws, and changes nothing, where the certificate names another node. */
  check(): void;
  /** New connections show the certificate that the files have now. */
  reload(): void;
  stop(): Promise<void>;
}

/** Null: this node is no coordinator. First of all: what the certificate can't be is reported before anything is opened. */
export function coordinatorOf(config: ServerConfig): Pick<CoordinatorParts, "tc" | "identity"> | null {
  const { tc } = config;
  return tc === null ? null : { tc, identity: coordinatorIdentity(config, tc.endpoint) };
}

export async function openCoordinator(config: ServerConfig, parts: CoordinatorParts): Promise<CoordinatorNode> {
  const { tc, identity, consensus, certificates, logger, signal, onFatal } = parts;
  const { clusterId, engine, directory } = consensus;
  const files = await openCoordinatorFiles({
    disk: directory.disk,
    digest: systemDigest,
    node: identity,
    log: incarnationOf(engine.status().peer),
    newIncarnation,
  });
  const http = new TcHttp({
    tls: tlsOf(config),
    isLoopback: isLoopback(config.api.listen.host),
    trustDomain: trustDomainOf(config),
    isRevoked: (sha256) => certificates.isRevoked(sha256),
    clock: systemClock,
    logger,
  });
  const random = consensus.random.fork("coordinator");
  const coordination = assembleCoordination({
    self: files.self,
    endpoint: tc.endpoint,
    clock: systemClock,
    random: random.fork("elector"),
    logger,
    make: (hooks) =>
      new CoordinatorService({
        ...hooks,
        files,
        endpoint: tc.endpoint,
        seeds: tc.join,
        backendHash: backendHashOf(clusterId),
        calls: coordinatorCalls(http),
        clock: systemClock,
        random,
        logger,
        newClusterId,
        fatal: onFatal,
      }),
  });
  const { service } = coordination;
  const leading = new AbortController();
  return {
    service,
    start: async () => {
      await announceOnce(tc, { http, clock: systemClock, signal });
      if (signal?.aborted === true) return;
      service.start();
      // What the leader decides comes with transactions; the roster and the registry are the coordinator's own.
      const led = coordination.lead((term) => untilOver(term.signal), { signal: leading.signal });
      led.catch((error: unknown) => {
        if (!leading.signal.aborted) onFatal(error);
      });
    },
    check: () => sameIdentity(config, tc.endpoint, identity),
    reload: () => {
      const tls = tlsOf(config);
      if (tls !== null) http.reload(tls);
    },
    stop: async () => {
      await service.stop();
      leading.abort();
      await coordination.close();
      http.close();
    },
  };
}

/** As whom an island takes part in transactions, at whichever of its nodes. */
function backendHashOf(clusterId: string): string {
  return hash("sha256", `tenure-backend\n${clusterId}`);
}

function tlsOf({ api }: ServerConfig): TcTls | null {
  if (api.tls === null || api.tls.clientCaFile === null) return null;
  const { certFile, keyFile, clientCaFile } = api.tls;
  return { cert: pem(certFile), key: pem(keyFile), ca: pem(clientCaFile) };
}

function untilOver(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
