// One node of a cluster without its services: the locked data directory, the wire, the engine, for any state machine. What
// `tenure server start` builds upon, and the test clusters too, so that both run the same parts.
//
//   directory, locked ──▶ whose is it? ──▶ wire listens ──▶ engine runs
//                            │ stamped: its cluster      (a wiped node joins again; it never founds by accident)
//                            │ empty, --bootstrap: a new cluster, unless a peer already has one
//                            └ empty: ask the peers for theirs, for as long as that takes

import { randomBytes } from "node:crypto";
import { TenureError } from "../../core/kit/errors.ts";
import { peerKey, type PeerKey } from "../../core/kit/ids.ts";
import { COMMIT_NOTICE_MS } from "../../core/kit/limits.ts";
import { seededRandom, type Random } from "../../core/kit/random.ts";
import { configurationOf, electionConfig, type ElectionConfig } from "../../core/raft/index.ts";
import { openDataDirectory, type DataDirectory, type DiskIo } from "../../drivers/disk/index.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { askCluster, listenWire, probeCluster, type PeerTls, type TcpWire } from "../../drivers/wire/index.ts";
import type { Founding } from "../../engine/data-directory.ts";
import { Engine } from "../../engine/engine.ts";
import { readStampOf } from "../../engine/stamp-reader.ts";
import type { Archive } from "../../logs/index.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Logger } from "../../ports/logger.ts";
import type { StateMachine } from "../../ports/state-machine.ts";
import type { EngineOptions } from "../../engine/engine-options.ts";
import type { Wire } from "../../ports/peers/wire.ts";
import { historyAhead } from "../assembly/history-ahead.ts";
import { Closing } from "./system.ts";

/** How long a founder asks at least whether there is a cluster already; longer while a peer is there and does not answer. */
const PROBE_MS = 1_500;

export interface ConsensusOptions {
  readonly nodeId: string;
  readonly dataDir: string;
  readonly listen: { readonly host: string; readonly port: number };
  /** How the others reach us; null: as we listen. */
  readonly advertise: string | null;
  readonly apiUrl: string | null;
  readonly seeds: Readonly<Record<string, string>>;
  readonly tls: PeerTls | null;
  /** Which all nodes share that speak without TLS (secret.ts). */
  readonly secret?: Uint8Array | undefined;
  /** Node ids that an operator calls members (decision 24). */
  readonly trusted?: readonly string[] | undefined;
  readonly swapsNeedClearance?: EngineOptions["swapsNeedClearance"];
  readonly election?: Partial<ElectionConfig> | undefined;
  readonly snapshots?: EngineOptions["snapshots"];
  readonly minFreeBytes?: number | undefined;
  /** Found a cluster of this node alone, if the directory is empty and no peer has one. */
  readonly bootstrap: boolean;
  /** Of a cluster that this node founds; null: one that is drawn. */
  readonly foundingId?: string | null | undefined;
  readonly machine: StateMachine;
  /** The history of what the machine applies, opened before the first entry is; absent: there is none. */
  readonly openArchive?: ((disk: Disk, clusterId: string) => Promise<Archives>) | undefined;
  readonly logger: Logger;
  /** Ends a join that waits for its peers. */
  readonly signal?: AbortSignal | undefined;
  readonly onFatal: (error: unknown) => void;
  /** For tests and chaos: what stands between the engine and the world. */
  readonly io?: DiskIo | undefined;
  readonly wrapDisk?: ((disk: Disk) => Disk) | undefined;
  readonly wrapWire?: ((wire: Wire) => Wire) | undefined;
}

/** Of a site's own events, and of receipts: pages of other sites. */
export interface Archives {
  readonly events: Archive;
  readonly receipts: Archive;
}

export interface ConsensusNode {
  readonly clusterId: string;
  readonly engine: Engine;
  readonly wire: TcpWire;
  readonly directory: DataDirectory;
  readonly archives: Archives | null;
  readonly random: Random;
  readonly election: ElectionConfig;
  /** Stops sending, finishes the last write, frees the directory. Safe to call twice. */
  stop(): Promise<void>;
}

export async function openConsensus(options: ConsensusOptions): Promise<ConsensusNode> {
  const election = electionConfig(options.election);
  const directory = await openDataDirectory(options.dataDir, { minFreeBytes: options.minFreeBytes, io: options.io });
  const undo = new Closing();
  undo.push(() => directory.close());
  // Also while the engine opens it: on a full disk even that waits.
  directory.onChange((state) => {
    const fields = { event: "disk", state, freeBytes: directory.freeBytes() };
    if (state === "ok") options.logger.info(fields, "the disk has room again");
    else
      options.logger.error(
        fields,
        state === "full" ? "the disk is full: writes wait for room" : "the disk is nearly full",
      );
  });
  try {
    const disk = options.wrapDisk?.(directory.disk) ?? directory.disk;
    const { clusterId, founding } = await findCluster(options, disk);
    const random = seededRandom(randomBytes(8).toString("hex"));
    const wire = await listenWire({
      listen: options.listen,
      advertise: options.advertise,
      apiUrl: options.apiUrl,
      clusterId,
      nodeId: options.nodeId,
      seeds: options.seeds,
      tls: options.tls,
      secret: options.secret,
      leaseEnabled: election.enableLease,
      random: random.fork("wire"),
      logger: options.logger,
    });
    undo.push(() => wire.close());
    options.signal?.throwIfAborted();
    const archives = (await options.openArchive?.(disk, clusterId)) ?? null;
    undo.push(async () => {
      await archives?.events.close();
      await archives?.receipts.close();
    });
    const engine = await Engine.start({
      clusterId,
      nodeId: options.nodeId,
      disk,
      clock: systemClock,
      digest: systemDigest,
      random: random.fork("raft"),
      connect: (self: PeerKey) => options.wrapWire?.(wire.connect(self)) ?? wire.connect(self),
      stateMachine: options.machine,
      newIncarnation,
      bootstrap: founding,
      isAlone: Object.keys(options.seeds).every((id) => id === options.nodeId),
      witness: archives === null ? undefined : async (log) => historyAhead(archives, log, systemDigest),
      onSetAside: (damage) => options.logger.error({ event: "disk-damaged", damage }, SET_ASIDE),
      sponsors: Object.keys(options.seeds),
      trusted: options.trusted,
      swapsNeedClearance: options.swapsNeedClearance,
      election: options.election,
      snapshots: options.snapshots,
      limits: { commitNoticeMs: COMMIT_NOTICE_MS },
      onFatal: options.onFatal,
    });
    undo.push(() => engine.stop());
    const stop = (): Promise<void> => {
      // The engine waits for its last write, which would wait for room: given up, it was promised to nobody.
      if (directory.state() === "full") void directory.close();
      return undo.all();
    };
    return { clusterId, engine, wire, directory, archives, random, election, stop };
  } catch (error) {
    return await undo.because(error);
  }
}

const SET_ASIDE =
  "the log on this disk is damaged: it is set aside (damaged-…), and this node begins anew as an empty disk, which the leader brings up to date. If it was the only voter, nobody can: restore a saved snapshot (docs/runbooks/cluster-restore.md)";

interface Belonging {
  readonly clusterId: string;
  readonly founding: Founding | null;
}

async function findCluster(options: ConsensusOptions, disk: Disk): Promise<Belonging> {
  const { nodeId, seeds, tls, secret, logger, bootstrap } = options;
  const found = await readStampOf(disk, systemDigest);
  if (found !== null && found.phase === "founding" && !bootstrap) {
    throw new TenureError(
      "CONFIG_INVALID",
      "the founding of a cluster was interrupted in this data directory. Start it with --bootstrap to finish it, or empty the directory to join another cluster",
    );
  }
  if (found !== null && (found.isReady || !bootstrap)) return { clusterId: found.clusterId, founding: null };
  const hasPeers = Object.keys(seeds).some((id) => id !== nodeId);
  if (bootstrap) {
    const probe = { nodeId, seeds, tls, secret, waitMs: PROBE_MS, logger, signal: options.signal };
    const theirs = hasPeers ? await probeCluster(probe) : null;
    if (theirs === null) return foundCluster(found?.clusterId ?? options.foundingId ?? newClusterId(), nodeId, logger);
    logger.warn({ cluster: theirs }, "bootstrap was asked for, but a peer has a cluster already: joining it instead");
    return { clusterId: theirs, founding: null };
  }
  if (!hasPeers) {
    throw new TenureError(
      "CONFIG_INVALID",
      "the data directory is empty and no peers are configured. Start the first node of a new cluster with --bootstrap; " +
        "give the others `peers` with at least one running node",
    );
  }
  const signal = options.signal ?? new AbortController().signal;
  const { clusterId } = await askCluster({ nodeId, seeds, tls, secret, signal, logger });
  return { clusterId, founding: null };
}

function foundCluster(clusterId: string, nodeId: string, logger: Logger): Belonging {
  const incarnation = newIncarnation();
  logger.info({ cluster: clusterId, incarnation }, "founding a new cluster of this node alone");
  return { clusterId, founding: { incarnation, configuration: configurationOf([peerKey(nodeId, incarnation)]) } };
}

export function newClusterId(): string {
  return `c-${randomBytes(8).toString("hex")}`;
}

/** Sixty-four random bits: it must never come twice (trap 13). */
export function newIncarnation(): string {
  return randomBytes(8).toString("hex");
}
