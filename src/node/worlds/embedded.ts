// One server with a log of its own as an object: the ports made with drivers, the assembly called, started and stopped in order. The command around it
// (cli/server/run.ts) owns the process; tests own several of these.
//
//   consensus (directory, wire, engine) ──▶ its log, the cluster ──▶ services ──▶ API listens
//   stop: unwilling, leadership handed over ──▶ API answers what is under way ──▶ loops ──▶ engine, wire, directory

import { hostname } from "node:os";
import { join } from "node:path";
import type { Api, Diagnostics } from "../../api/index.ts";
import { showAddress, type ServerConfig } from "../../contract/index.ts";
import { triedWithin } from "../../loops/time.ts";
import { assert } from "../../core/kit/assert.ts";
import { HAND_OVER_MS } from "../../core/kit/timeouts.ts";
import { openViews } from "../../drivers/sqlite/index.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import { signerOf, verifyEd25519 } from "../../drivers/system/signatures.ts";
import { openMeshKey } from "../../drivers/pki/index.ts";
import { startLoopMonitor, type LogSink } from "../../drivers/telemetry/index.ts";
import {
  type PeerTls,
  PROTOCOL_OF_MESH,
  PROTOCOL_OF_REVOCATIONS,
  PROTOCOL_OF_TRANSACTIONS,
  PROTOCOL_OF_VALUES,
} from "../../drivers/wire/index.ts";
import { RECEIPTS } from "../../logs/index.ts";
import type { Clearance } from "../../ports/clearance.ts";
import type { Cluster } from "../../ports/cluster.ts";
import type { Logger } from "../../ports/logger.ts";
import { workerName } from "../../supervisor/index.ts";
import { assembleNode } from "../assembly/assemble.ts";
import { openArchive, refuseForeignHistory } from "../assembly/history.ts";
import { serverMachine, type ServerMachine } from "../assembly/machine.ts";
import type { MeshSettings } from "../assembly/mesh.ts";
import { type OwnLog, type OwnLogOptions, startOwnLog } from "../assembly/own-log.ts";
import { apiTls, apiUrlOf, openApi, pem, reloadApi, ShownCertificates } from "./api.ts";
import { type ConsensusNode, type ConsensusOptions, openConsensus } from "./consensus.ts";
import { type CoordinatorNode, coordinatorOf, openCoordinator } from "./coordinator.ts";
import { peerSecret } from "./secret.ts";
import { checkControllerId, siteWorld } from "./site.ts";
import { serverStats } from "./stats.ts";
import { Closing, failureOf, SYSTEM, VIEWS_FILE } from "./system.ts";
import { HAND_OVER_POLL_MS } from "./limits.ts";
import { meshWorld, openMeshState } from "./mesh.ts";

export interface ServerNodeOptions {
  readonly bootstrap: boolean;
  readonly version: string;
  readonly logs: LogSink;
  readonly signal?: AbortSignal | undefined;
  readonly onFatal: (error: unknown) => void;
  /** What it shows of itself to whoever helps. */
  readonly diagnostics: () => Diagnostics;
  /** Where a supervisor may run a worker on this node. */
  readonly clearance?: Clearance | undefined;
  /** For tests: what stands between the engine and the world. */
  readonly world?: Pick<ConsensusOptions, "io" | "wrapDisk" | "wrapWire"> | undefined;
}

export interface ServerNode {
  readonly cluster: Cluster;
  readonly apiUrl: string;
  /** Reads the certificates again, for new connections. Throws, and changes nothing, where one can't be used. */
  reload(): void;
  stop(): Promise<void>;
}

export async function startServerNode(config: ServerConfig, options: ServerNodeOptions): Promise<ServerNode> {
  const { logger } = options.logs;
  // First: what can't be used is reported before anything is founded or joined.
  const tls = apiTls(config);
  const asCoordinator = coordinatorOf(config);
  const machine = serverMachine(systemDigest);
  // The engine may fail while it starts: what its log holds is applied then.
  const { fail, shownBy } = failureOf(options.onFatal);
  const consensus = await openConsensus(consensusOptions(config, options, machine, fail));
  const closing = new Closing();
  closing.push(() => consensus.stop());
  try {
    const certificates = new ShownCertificates(() => consensus.wire.stats().certificateNotAfterMs);
    const log = startOwnLog({
      ...ownLogOptions(config, options, consensus, machine),
      certificates: () => certificates.ends(),
    });
    const { cluster } = log;
    shownBy(cluster);
    const loop = startLoopMonitor();
    closing.push(
      () => log.stop(),
      () => loop.stop(),
    );
    const { clusterId, random } = consensus;
    const views = await openViews({ path: join(config.dataDir, VIEWS_FILE), clusterId, logger });
    const worker = options.clearance !== undefined && config.agent.enabled ? workerName(config.nodeId) : undefined;
    checkControllerId(config, clusterId, machine.jobs.fold.controllers);
    const site = siteWorld(config, options.version, clusterId, () => cluster.view().leader?.url ?? null);
    const meshState = await openMeshState(config, clusterId, logger);
    const world = { ...SYSTEM, random, logger, views, worker, site, meshState, ...meshWorld(config) };
    const services = assembleNode(world, log);
    closing.push(() => services.stop());
    const around = {
      consensus,
      certificates: services.parts.certificates,
      logger,
      signal: options.signal,
      onFatal: fail,
    };
    const { transactions } = services;
    assert(transactions !== null, "a server with a log of its own keeps transactions");
    const coordinator = asCoordinator && (await openCoordinator(config, { ...asCoordinator, ...around, transactions }));
    if (coordinator === null) transactions.attach({ isAlone: true });
    else log.watchCoordinators(() => coordinator.service.seen());
    const api = await openApi(config, {
      cluster,
      services,
      clusterId,
      server: () => serverStats(consensus, cluster, loop),
      options,
      tls,
      coordinators: coordinator?.service,
      txnDecider: coordinator?.decider,
    });
    closing.push(() => api.stop());
    certificates.opened(api);
    const address = await api.listen(config.api.listen);
    // It leaves while its API still answers: until it is removed it votes.
    closing.push(() => coordinator?.stop());
    await coordinator?.start();
    logger.info({ event: "listening", api: showAddress(address), peers: consensus.wire.address }, "the node is up");
    return assemble(config, { consensus, log, api, coordinator, logger, address, closing });
  } catch (error) {
    return await closing.because(error);
  }
}

/** What the engine and its directory are made with; the archive is opened before the first entry is applied. */
function consensusOptions(
  config: ServerConfig,
  options: ServerNodeOptions,
  { machine, keepIn, keepReceiptsIn }: ServerMachine,
  fail: (error: unknown) => void,
): ConsensusOptions {
  const { logger } = options.logs;
  return {
    nodeId: config.nodeId,
    dataDir: config.dataDir,
    listen: config.peer.listen,
    advertise: config.peer.advertise,
    apiUrl: apiUrlOf(config, config.api.listen),
    seeds: config.peers,
    tls: peerTls(config),
    secret: config.peer.tls === null ? secretOf(config, logger) : undefined,
    trusted: config.peer.trust,
    swapsNeedClearance: true,
    election: config.election,
    snapshots: config.snapshots,
    minFreeBytes: config.disk.minFreeBytes,
    bootstrap: options.bootstrap,
    foundingId: config.mesh.controllerId,
    machine,
    openArchive: async (disk, clusterId) => {
      machine.belongsTo(clusterId);
      await refuseForeignHistory(disk, systemDigest);
      const { quotaBytes } = config.history;
      const around = { ...SYSTEM, disk, logger, failed: fail };
      const events = await openArchive({ ...around, quotaBytes });
      // Also of a site that takes part in no mesh: it may have, and then goes on counting. Empty it has no file.
      const receipts = await openArchive({ ...around, of: RECEIPTS });
      keepIn(events);
      keepReceiptsIn(receipts);
      return { events, receipts };
    },
    logger,
    signal: options.signal,
    onFatal: fail,
    ...options.world,
  };
}

function ownLogOptions(
  config: ServerConfig,
  options: ServerNodeOptions,
  consensus: ConsensusNode,
  machine: ServerMachine,
): OwnLogOptions {
  const { engine, wire, directory, archives, random, election, clusterId } = consensus;
  assert(archives !== null, "the archives were opened with the directory");
  return {
    ...SYSTEM,
    random,
    logger: options.logs.logger,
    clusterId,
    version: options.version,
    engine,
    machine,
    archive: archives.events,
    receipts: archives.receipts,
    peers: wire,
    protocolOfRevocations: PROTOCOL_OF_REVOCATIONS,
    protocolOfMesh: PROTOCOL_OF_MESH,
    protocolOfValues: PROTOCOL_OF_VALUES,
    protocolOfTransactions: PROTOCOL_OF_TRANSACTIONS,
    own: { address: wire.address, url: apiUrlOf(config, config.api.listen) },
    electionTimeoutMaxMs: election.electionTimeoutMaxMs,
    disk: directory,
    keepDays: config.history.keepDays,
    expect: options.bootstrap ? config.bootstrapExpect : undefined,
    clearance: options.clearance,
    mesh: ownMesh(config, clusterId),
  };
}

/** Undefined: the site is standalone. The node's key is made here, on the first start. */
function ownMesh({ mesh, nodeId }: ServerConfig, clusterId: string): MeshSettings | undefined {
  if (mesh.mode === "standalone") return undefined;
  return {
    controller: mesh.controllerId ?? clusterId,
    name: mesh.controllerName ?? hostname(),
    key: { node: nodeId, signer: signerOf(openMeshKey(mesh.keyFile)) },
    verify: verifyEd25519,
  };
}

function secretOf({ peer, peers }: ServerConfig, logger: Logger): Uint8Array {
  return peerSecret({ file: peer.secretFile, isAlone: Object.keys(peers).length === 0, logger });
}

interface Parts {
  readonly consensus: ConsensusNode;
  readonly log: OwnLog;
  readonly api: Api;
  readonly coordinator: CoordinatorNode | null;
  readonly logger: Logger;
  /** Where the API listens. */
  readonly address: ServerConfig["api"]["listen"];
  readonly closing: Closing;
}

function assemble(config: ServerConfig, parts: Parts): ServerNode {
  const { consensus, log, api, coordinator, logger, address, closing } = parts;
  const { cluster, leading } = log;
  const { engine } = consensus;
  let stopping: Promise<void> | null = null;
  const { directory } = consensus;
  const { willingness } = cluster;
  // Whose disk is low leaves leading to those who have room, if there are any.
  const stopWatching = directory.onChange((state) => willingness.set("disk", state !== "ok"));
  if (directory.state() !== "ok") willingness.set("disk", true);
  const stop = async (): Promise<void> => {
    stopWatching();
    cluster.setDraining(true);
    // The successor's worker is ended first; whom nobody follows is unwilling all the same.
    const { mayWork, transfer } = leading;
    if (mayWork && engine.status().role === "leader") await triedWithin(systemClock, HAND_OVER_MS, transfer(null));
    willingness.set("stopping", true);
    await handOver(consensus);
    await closing.all();
  };
  return {
    cluster,
    apiUrl: apiUrlOf(config, address),
    reload: () => {
      const peers = peerTls(config);
      // All are read before one of them is taken.
      apiTls(config);
      coordinator?.check();
      if (peers !== null) consensus.wire.reload(peers);
      reloadApi(config, api, logger);
      coordinator?.reload();
    },
    stop: () => (stopping ??= stop()),
  };
}

/** Leadership first, then the end: nobody has to notice that a node was stopped in order. */
async function handOver({ engine }: ConsensusNode): Promise<void> {
  const untilMs = systemClock.monotonicMs() + HAND_OVER_MS;
  const { configuration } = engine.status();
  if (configuration.voters.length < 2) return;
  while (engine.status().role === "leader" && systemClock.monotonicMs() < untilMs) {
    await new Promise<void>((resume) => systemClock.setTimer(systemClock.monotonicMs() + HAND_OVER_POLL_MS, resume));
  }
}

function peerTls({ peer }: ServerConfig): PeerTls | null {
  if (peer.tls === null) return null;
  const { caFile, certFile, keyFile } = peer.tls;
  return { ca: pem(caFile), cert: pem(certFile), key: pem(keyFile) };
}
