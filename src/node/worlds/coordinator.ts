// A real server's transaction coordinator: its files in the node's data directory, HTTPS to the others, its start and its end.
//
//   identity (before anything is opened) ──▶ files ──▶ service ──▶ the API answers for it ──▶ announced once ──▶ votes, campaigns, leads
//   stop: leaves as far as that goes in its time ──▶ the API ends

import { isLoopback, type ServerConfig, type TcConfig } from "../../contract/index.ts";
import { CoordinatorService, openCoordinatorFiles } from "../../controller/coordinators/index.ts";
import { incarnationOf } from "../../core/kit/ids.ts";
import type { TransactionsService } from "../../controller/transactions/transactions.ts";
import { coordinatorCalls, TcHttp, type TcTls } from "../../drivers/coordinators/index.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import { HttpIslandCalls, httpTxnForward } from "../../drivers/transactions/index.ts";
import type { Certificates } from "../../ports/certificates.ts";
import type { Logger } from "../../ports/logger.ts";
import type { TxnDecider } from "../../ports/transactions.ts";
import { assembleCoordination, type Coordination } from "../assembly/coordinators.ts";
import { assembleDecider, type DeciderParts } from "../assembly/transactions.ts";
import { pem, trustDomainOf } from "./api.ts";
import { type ConsensusNode, newClusterId, newIncarnation } from "./consensus.ts";
import { announceOnce, coordinatorIdentity, sameIdentity } from "./tc-start.ts";

export interface CoordinatorParts {
  readonly tc: TcConfig;
  readonly identity: string;
  readonly consensus: Pick<ConsensusNode, "engine" | "directory" | "random">;
  readonly certificates: Pick<Certificates, "isRevoked">;
  /** This island's part in transactions. */
  readonly transactions: TransactionsService;
  readonly logger: Logger;
  readonly signal?: AbortSignal | undefined;
  readonly onFatal: (error: unknown) => void;
}

export interface CoordinatorNode {
  readonly service: CoordinatorService;
  readonly decider: TxnDecider;
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
  const { tc, identity, consensus, certificates, transactions, logger, signal, onFatal } = parts;
  const { engine, directory } = consensus;
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
        backendHash: transactions.backendHash,
        calls: coordinatorCalls(http),
        clock: systemClock,
        random,
        logger,
        newClusterId,
        fatal: onFatal,
      }),
  });
  const { service } = coordination;
  const { calls, decider } = decidingOf(tc, { coordination, http, transactions, random, logger });
  const leading = new AbortController();
  return {
    service,
    decider,
    start: async () => {
      await announceOnce(tc, { http, clock: systemClock, signal });
      if (signal?.aborted === true) return;
      service.start();
      const led = coordination.lead((term) => decider.lead(term.signal), { signal: leading.signal });
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
      calls.close();
      http.close();
    },
  };
}

/** What decides transactions, and its calls to islands. */
function decidingOf(
  { endpoint: ownEndpoint }: TcConfig,
  parts: Pick<DeciderParts, "random" | "logger"> & {
    readonly coordination: Coordination<CoordinatorService>;
    readonly transactions: TransactionsService;
    readonly http: TcHttp;
  },
) {
  const { coordination, http, transactions: own, random } = parts;
  const { service } = coordination;
  const registry = () => service.registry().entries;
  const clock = systemClock;
  const calls = new HttpIslandCalls({ http, registry, own, ownEndpoint, clock, random: random.fork("islands") });
  const around = { clock, digest: systemDigest, forward: httpTxnForward(http), random: random.fork("decider") };
  return { calls, decider: assembleDecider({ ...parts, ...around, calls }) };
}

function tlsOf({ api }: ServerConfig): TcTls | null {
  if (api.tls === null || api.tls.clientCaFile === null) return null;
  const { certFile, keyFile, clientCaFile } = api.tls;
  return { cert: pem(certFile), key: pem(keyFile), ca: pem(clientCaFile) };
}
