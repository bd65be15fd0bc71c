// One server of Tenure as an object: every part made and joined, started and stopped in order. The command around it
// (../run.ts) owns the process; tests own several of these.
//
//   consensus (directory, wire, engine) ──▶ scopes, cluster ──▶ jobs ──▶ API listens
//   stop: unwilling, leadership handed over ──▶ API answers what is under way ──▶ loops ──▶ engine, wire, directory

import type { Api } from "../../../api/index.ts";
import { showAddress, type ServerConfig } from "../../../contract/index.ts";
import { ClusterService } from "../../../controller/cluster/cluster.ts";
import type { ClusterMachine } from "../../../controller/cluster/cluster-machine.ts";
import { type Leading, raftLeading } from "../../../controller/leadership/leading.ts";
import { triedWithin } from "../../../loops/time.ts";
import { ScopesService } from "../../../controller/scopes/scopes.ts";
import { emptyWorker } from "../../../controller/cluster/worker-queries.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import type { PeerKey } from "../../../core/kit/ids.ts";
import { HAND_OVER_MS } from "../../../core/kit/timeouts.ts";
import { systemClock } from "../../../drivers/system/clock.ts";
import { startLoopMonitor, type LogSink } from "../../../drivers/telemetry/index.ts";
import type { PeerTls } from "../../../drivers/wire/index.ts";
import { type Archive, lacksOf, ownLacks } from "../../../logs/index.ts";
import type { Clearance } from "../../../ports/clearance.ts";
import type { Cluster } from "../../../ports/cluster.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { Scopes } from "../../../ports/scopes.ts";
import { apiTls, apiUrlOf, openApi, pem, reloadApi } from "./api.ts";
import { openConsensus, type ConsensusNode, type ConsensusOptions } from "./consensus.ts";
import { diskRefusal, guardedScopes, pauseRefusal } from "./guards.ts";
import { openArchive, refuseForeignHistory } from "./history.ts";
import { type JobsNode, startJobs } from "./jobs.ts";
import { historyAhead } from "./history-ahead.ts";
import { serverMachine } from "./machine.ts";
import { peerSecret } from "./secret.ts";
import { serverStats } from "./stats.ts";
import { workerName } from "../supervised.ts";

/** How often a stopping leader looks whether another has taken over. */
const HAND_OVER_POLL_MS = 5;

export interface ServerNodeOptions {
  readonly bootstrap: boolean;
  readonly version: string;
  readonly logs: LogSink;
  readonly signal?: AbortSignal | undefined;
  readonly onFatal: (error: unknown) => void;
  /** Where a supervisor may run a worker on this node. */
  readonly clearance?: Clearance | undefined;
  /** For tests: what stands between the engine and the world. */
  readonly world?: Pick<ConsensusOptions, "io" | "wrapDisk" | "wrapWire"> | undefined;
}

export interface ServerNode {
  readonly consensus: ConsensusNode;
  readonly cluster: Cluster;
  readonly scopes: Scopes;
  readonly apiUrl: string;
  /** Reads the certificates again, for new connections. Throws, and changes nothing, where one can't be used. */
  reload(): void;
  stop(): Promise<void>;
}

export async function startServerNode(config: ServerConfig, options: ServerNodeOptions): Promise<ServerNode> {
  const { logger } = options.logs;
  // First: what can't be used is told before anything is founded or joined.
  const tls = apiTls(config);
  const { machine, scopes: scopesParts, jobs: jobsParts, keepIn, attach } = serverMachine();
  // The engine may fail while it starts: what its log holds is applied then.
  const made: { cluster?: ClusterService; archive?: Archive } = {};
  const fail = (error: unknown): void => {
    made.cluster?.setFailed(error instanceof Error ? error.message : String(error));
    options.onFatal(error);
  };
  const consensus = await openConsensus(consensusOptions(config, options, machine, keepIn, fail, made));
  const { engine, wire, directory, random } = consensus;
  const { clearance } = options;
  const worker = clearance && { clearance, empty: (peer: PeerKey) => emptyWorker(wire, peer) };
  const leading = raftLeading({ consensus: engine, clock: systemClock, logger, worker });
  attach(engine);
  const loop = startLoopMonitor();
  const started: { jobs?: JobsNode } = {};
  const cluster = clusterOf(config, options, consensus, leading, machine, { archive: made.archive!, started });
  made.cluster = cluster;
  const { log, fold: applied } = scopesParts;
  const { leadership } = leading;
  const isPaused = (): boolean => machine.isPaused;
  const forked = random.fork("scopes");
  const scopes = new ScopesService({ log, applied, leadership, clock: systemClock, random: forked, isPaused });
  machine.onResumed(() => scopes.resumed());
  const stopParts = async (): Promise<void> => {
    await started.jobs?.stop();
    scopes.close();
    cluster.stop();
    loop.stop();
    leading.close();
    await consensus.stop();
  };
  try {
    // In the turn in which consensus began: the vote that ends an outage is often won while the jobs are opened.
    cluster.start();
    const jobs = await startJobs({
      consensus,
      leadership: leading.leadership,
      believedMs: () => cluster.believedMs(),
      machine,
      worker: clearance !== undefined && config.agent.enabled ? workerName(config.nodeId) : undefined,
      clearance,
      jobs: jobsParts,
      archive: made.archive!,
      config,
      logger,
    });
    started.jobs = jobs;
    const api = await openApi(config, {
      cluster,
      scopes: guardedScopes(scopes, () => pauseRefusal(machine) ?? diskRefusal(directory)),
      jobs,
      clusterId: consensus.clusterId,
      server: () => serverStats(consensus, cluster, loop),
      logs: options.logs,
      tls,
      onFatal: options.onFatal,
    });
    const address = await api.listen(config.api.listen);
    logger.info({ event: "listening", api: showAddress(address), peers: wire.address }, "the node is up");
    return assemble(config, { consensus, leading, cluster, scopes, api, logger, address, stopParts });
  } catch (error) {
    await stopParts();
    throw error;
  }
}

/** What the engine and its directory are made with; the archive is opened before the first entry is applied. */
function consensusOptions(
  config: ServerConfig,
  options: ServerNodeOptions,
  machine: ClusterMachine,
  keepIn: (archive: Archive) => void,
  fail: (error: unknown) => void,
  made: { archive?: Archive },
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
    machine,
    prepare: async (disk, clusterId) => {
      machine.belongsTo(clusterId);
      await refuseForeignHistory(disk);
      const archive = await openArchive(disk, { quotaBytes: config.history.quotaBytes, logger, failed: fail });
      keepIn(archive);
      made.archive = archive;
      return () => archive.close();
    },
    witness: (log) => Promise.resolve(historyAhead(made.archive!, log)),
    logger,
    signal: options.signal,
    onFatal: fail,
    ...options.world,
  };
}

function secretOf({ peer, peers }: ServerConfig, logger: Logger): Uint8Array {
  return peerSecret({ file: peer.secretFile, isAlone: Object.keys(peers).length === 0, logger });
}

function clusterOf(
  config: ServerConfig,
  options: ServerNodeOptions,
  node: ConsensusNode,
  { leadership, transfer }: Leading,
  machine: ClusterMachine,
  { archive, started }: { readonly archive: Archive; readonly started: { readonly jobs?: JobsNode } },
): ClusterService {
  const { engine, wire, directory, random, election } = node;
  return new ClusterService({
    clusterId: node.clusterId,
    version: options.version,
    consensus: engine,
    leadership,
    transfer,
    peers: wire,
    clock: systemClock,
    random: random.fork("cluster"),
    logger: options.logs.logger,
    machine,
    own: { address: wire.address, url: apiUrlOf(config, config.api.listen) },
    electionTimeoutMaxMs: election.electionTimeoutMaxMs,
    disk: {
      // A write that waits for room is late too; that the disk is full says more.
      state: () => (engine.status().isDiskStalled && directory.state() !== "full" ? "stalled" : directory.state()),
      freeBytes: () => directory.freeBytes(),
    },
    snapshots: snapshotsOf(node),
    stalls: () => engine.counts.stalls,
    historyQuota: () => archive.quota.level,
    history: () => started.jobs?.lacked(),
    lacks: async (peer) => (peer === engine.status().peer ? ownLacks(archive) : lacksOf(wire, peer)),
    expect: options.bootstrap ? config.bootstrapExpect : undefined,
    onDrain: (isWanted) => options.clearance?.drained(isWanted),
  });
}

interface Parts {
  readonly consensus: ConsensusNode;
  readonly leading: Leading;
  readonly cluster: ClusterService;
  readonly scopes: ScopesService;
  readonly api: Api;
  readonly logger: Logger;
  /** Where the API listens. */
  readonly address: ServerConfig["api"]["listen"];
  readonly stopParts: () => Promise<void>;
}

function assemble(config: ServerConfig, parts: Parts): ServerNode {
  const { consensus, leading, cluster, scopes, api, logger, address, stopParts } = parts;
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
    await api.stop();
    await stopParts();
  };
  return {
    consensus,
    cluster,
    scopes,
    apiUrl: apiUrlOf(config, address),
    reload: () => {
      const peers = peerTls(config);
      // Both are looked at before either is taken.
      apiTls(config);
      if (peers !== null) consensus.wire.reload(peers);
      reloadApi(config, api, logger);
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

function snapshotsOf({ engine }: ConsensusNode): ConstructorParameters<typeof ClusterService>[0]["snapshots"] {
  return {
    newest: () => engine.snapshot,
    save: async () => {
      await engine.saveSnapshot();
      if (engine.snapshot === null) {
        throw new TenureError("NOT_FOUND", "there is nothing to save yet: this node has applied nothing");
      }
      return engine.snapshot;
    },
    read: async () => {
      const file = await engine.newestSnapshot();
      if (file === null) return null;
      return { view: { index: file.meta.index, term: file.meta.term, bytes: file.bytes.length }, bytes: file.bytes };
    },
  };
}

function peerTls({ peer }: ServerConfig): PeerTls | null {
  if (peer.tls === null) return null;
  const { caFile, certFile, keyFile } = peer.tls;
  return { ca: pem(caFile), cert: pem(certFile), key: pem(keyFile) };
}
