// The log of servers that keep one themselves: who leads by consensus, the archive exchanged with the other members, and the
// cluster as an operator sees it. Around an engine that runs, in the turn in which it began: the vote that ends an outage is
// often won while the rest of a server is opened.

import type { CoordinatorsSeen } from "../../core/health/coordinators.ts";
import type { TransactionsSeen } from "../../core/health/transactions.ts";
import type { MeshSeen } from "../../core/health/mesh.ts";
import { ClusterService, type ClusterOptions } from "../../controller/cluster/cluster.ts";
import { membersBelow, membersHeardBelow } from "../../controller/cluster/cluster-view.ts";
import { emptyWorker } from "../../controller/cluster/worker-queries.ts";
import type { MeshAnswers } from "../../controller/mesh/own/key-queries.ts";
import type { GuardedArchive, HistoryGuard } from "../../controller/mesh/state/history-guard.ts";
import { type Leading, raftLeading } from "../../controller/leadership/leading.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { SigningHeld } from "../../core/health/index.ts";
import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import type { ChainPoint } from "../../core/archive/index.ts";
import { members } from "../../core/raft/index.ts";
import type { Engine } from "../../engine/engine.ts";
import { type Archive, lacksOf, ownLacks, type Retention, type SegmentFetcher } from "../../logs/index.ts";
import type { Clearance } from "../../ports/clearance.ts";
import type { Peers } from "../../ports/peers/peers.ts";
import type { PeerQueries } from "../../ports/peers/queries.ts";
import type { NodeLog, NodeReceipts, NodeWorld } from "./assemble.ts";
import { diskRefusal, type DiskState, pauseRefusal } from "./guards.ts";
import {
  aboutReceipts,
  exchangeHistory,
  historyLevel,
  historyRefusal,
  receiptsRefusal,
  retainHistory,
} from "./history.ts";
import type { LineLog, MeshMembers, MeshSettings } from "./mesh.ts";
import type { ServerMachine } from "./machine.ts";

export interface OwnLogOptions
  extends
    NodeWorld,
    Pick<ClusterOptions, "clusterId" | "version" | "own" | "electionTimeoutMaxMs" | "expect" | "certificates"> {
  readonly engine: Engine;
  readonly machine: ServerMachine;
  readonly archive: Archive;
  /** Of receipts; null: pages of other sites are not kept. */
  readonly receipts: Archive | null;
  readonly peers: Peers & PeerQueries;
  /** From which protocol on a peer reads a revoked certificate. */
  readonly protocolOfRevocations: number;
  /** From which protocol on a peer reads records of values. */
  readonly protocolOfValues: number;
  /** From which protocol on a peer reads records of transactions. */
  readonly protocolOfTransactions: number;
  /** From which protocol on a peer reads records of the mesh. */
  readonly protocolOfMesh: number;
  readonly disk: DiskState;
  /** Null: for ever. */
  readonly keepDays: number | null;
  /** Where a supervisor may run a worker on this node. */
  readonly clearance?: Clearance | undefined;
  /** Undefined: the site is standalone. */
  readonly mesh?: MeshSettings | undefined;
}

export interface OwnLog extends NodeLog {
  readonly cluster: ClusterService;
  readonly leading: Leading;
  /** What came from the other members. */
  readonly fetched: () => SegmentFetcher["counts"];
  /** What this node's coordinator sees, for this node's alerts. */
  watchCoordinators(seen: () => CoordinatorsSeen): void;
  /** Once nobody uses the log any more; before the archive and the engine are stopped. */
  stop(): Promise<void>;
}

export function startOwnLog(options: OwnLogOptions): OwnLog {
  const { engine, archive, receipts, peers, disk, clock, random, logger, clearance } = options;
  const { machine, state, jobs, attach } = options.machine;
  const worker = clearance && { clearance, empty: (peer: PeerKey) => emptyWorker(peers, peer) };
  const leading = raftLeading({ consensus: engine, clock, logger, worker });
  attach(engine);
  const listeners: (() => void)[] = [];
  const changed = (): void => listeners.forEach((listener) => listener());
  const { line, meshAnswers } = lineLogOf(options);
  const guarded = Promise.withResolvers<HistoryGuard | null>();
  const kept = keepHistory(options, { changed, mesh: meshAnswers, guard: guarded.promise });
  const later = laterAlerts();
  const cluster = new ClusterService({
    ...options,
    ...leading,
    consensus: engine,
    random: random.fork("cluster"),
    machine,
    disk: diskSeen(options),
    snapshots: snapshotsOf(engine),
    stalls: () => engine.counts.stalls,
    historyQuota: () => historyLevel(archive, receipts),
    history: () => kept.fetcher.standing,
    ...later.asked,
    lacks: async (peer) => (peer === engine.status().peer ? ownLacks(archive) : lacksOf(peers, peer)),
    receipts: () => kept.receiptsFetcher?.standing,
    lacksReceipts: async (peer) => {
      if (receipts === null) return null;
      return peer === engine.status().peer ? ownLacks(receipts) : lacksOf(aboutReceipts(peers), peer);
    },
    onDrain: (isWanted) => clearance?.drained(isWanted),
  });
  cluster.start();
  return {
    cluster,
    leading,
    fetched: () => kept.fetcher.counts,
    // A recovery has another cluster id, and so another author (design D13).
    author: options.clusterId,
    journal: jobs,
    state,
    receipts: receipts && receiptsOf(options, receipts),
    leadership: leading.leadership,
    history: archive,
    eventArchive: archive,
    ...later.watch,
    guardHistory: (guard) => guarded.resolve(guard),
    onHistoryChanged: (listener) => void listeners.push(listener),
    believedMs: () => cluster.believedMs(),
    pausing: machine,
    refusesJobs: () => diskRefusal(disk) ?? historyRefusal(archive),
    refusesState: () => pauseRefusal(machine) ?? diskRefusal(disk),
    unready: () => membersBelow(options.protocolOfRevocations, peers, engine.status()),
    unreadyForValues: () => membersBelow(options.protocolOfValues, peers, engine.status()),
    unreadyForTransactions: () => membersBelow(options.protocolOfTransactions, peers, engine.status()),
    unreadyForMesh: () => membersBelow(options.protocolOfMesh, peers, engine.status()),
    // A node that is started where nobody leads knows what its last snapshot says, and not what of its log is committed: whoever
    // was revoked would be let in again. In the turn after it was applied, or the snapshot would be of before.
    onRevoked: () => void clock.setTimer(clock.monotonicMs(), () => void engine.saveSnapshot()),
    archive: () => archive.stats(),
    lineState: (id) => options.machine.mesh.fold.state.line(id) ?? null,
    line,
    stop: async () => {
      guarded.reject(new Error("the node stops"));
      await kept.stop();
      cluster.stop();
      leading.close();
    },
  };
}

function diskSeen({ engine, disk }: OwnLogOptions): ClusterOptions["disk"] {
  return {
    // A write that waits for room is late too; that the disk is full says more.
    state: () => (engine.status().isDiskStalled && disk.state() !== "full" ? "stalled" : disk.state()),
    freeBytes: () => disk.freeBytes(),
  };
}

type LaterWatched = "watchReplay" | "watchSigning" | "watchMesh" | "watchCoordinators" | "watchTransactions";

/** What this node's alerts ask of the mesh, of its coordinator and of transactions, which are assembled after the cluster's service. */
function laterAlerts() {
  let replayProblem: (() => string | null) | null = null;
  let signingHeld: (() => SigningHeld | null) | null = null;
  let seen: (() => MeshSeen | null) | null = null;
  let coordinators: (() => CoordinatorsSeen) | null = null;
  let transactions: (() => TransactionsSeen) | null = null;
  const watch: Required<Pick<OwnLog, LaterWatched>> = {
    watchReplay: (problem) => {
      replayProblem = problem;
    },
    watchSigning: (held) => {
      signingHeld = held;
    },
    watchMesh: (sites) => {
      seen = sites;
    },
    watchCoordinators: (others) => {
      coordinators = others;
    },
    watchTransactions: (stats) => {
      transactions = stats;
    },
  };
  const asked = {
    replayProblem: () => replayProblem?.() ?? null,
    signingHeld: () => signingHeld?.() ?? null,
    mesh: () => seen?.() ?? null,
    coordinators: () => coordinators?.() ?? null,
    transactions: () => transactions?.() ?? null,
  };
  return { asked, watch };
}

interface HistoryAround {
  readonly changed: () => void;
  readonly mesh: () => MeshAnswers | null;
  /** Null: whatever is older than it is kept may go. Pending: nobody knows yet. */
  readonly guard: Promise<HistoryGuard | null>;
}

/** Both histories: exchanged with the other members, and kept for as long as is configured. */
function keepHistory(options: OwnLogOptions, { changed, mesh, guard }: HistoryAround) {
  const { engine, archive, receipts, peers, clock, random, logger, clearance } = options;
  const around = { clock, random: random.fork("history"), logger };
  const exchange = exchangeHistory({ ...around, engine, peers, archive, receipts, clearance, changed, mesh });
  const retained = (one: Archive, of: GuardedArchive): Retention =>
    retainHistory(one, options.keepDays, {
      isPaused: () => options.machine.machine.isPaused,
      mayGo: async (sequence) =>
        (await guard)?.mayGo(of, sequence) ?? Promise.resolve({ through: sequence, isStuck: false }),
      clock,
      logger,
    });
  // Who stops before anybody has asked.
  guard.catch(() => undefined);
  const retentions = [retained(archive, "own"), ...(receipts === null ? [] : [retained(receipts, "receipts")])];
  return {
    fetcher: exchange.events,
    receiptsFetcher: exchange.receipts,
    stop: async (): Promise<void> => {
      await exchange.events.stop();
      await exchange.receipts?.stop();
      for (const retention of retentions) await retention.stop();
    },
  };
}

/** The site's own line, and what the other members are answered about it. */
function lineLogOf({ archive, engine, peers, machine, own, mesh, protocolOfMesh }: OwnLogOptions): {
  readonly line: LineLog;
  readonly meshAnswers: () => MeshAnswers | null;
} {
  let answers: MeshAnswers | null = null;
  const head = (): ChainPoint => archive.head();
  if (mesh === undefined) return { line: { head, mesh: null }, meshAnswers: () => null };
  const others = (): readonly PeerKey[] => {
    const { configuration, peer: self } = engine.status();
    return members(configuration).filter((peer) => peer !== self);
  };
  const urls = (): readonly string[] => {
    const nodes = new Set(others().map(nodeIdOf));
    const theirs = peers.list().flatMap(({ nodeId, apiUrl }) => (apiUrl !== null && nodes.has(nodeId) ? [apiUrl] : []));
    return own.url === null ? theirs : [own.url, ...theirs];
  };
  const meshed: MeshMembers = {
    ...mesh,
    history: archive,
    others,
    expected: () => machine.machine.invited,
    unready: () => membersBelow(protocolOfMesh, peers, engine.status()),
    urls,
    peers,
    answerWith: (given) => {
      answers = given;
    },
  };
  return { line: { head, mesh: meshed }, meshAnswers: () => answers };
}

function receiptsOf(
  { machine: { mesh }, engine, peers, disk, archive, protocolOfMesh }: OwnLogOptions,
  receipts: Archive,
): NodeReceipts {
  return {
    ...mesh,
    archive: receipts,
    // Who has one has read one. What is known of a member that is down is then enough: it was able to, when the log was opened.
    unready: () =>
      (mesh.log.head().epoch === 0 ? membersBelow : membersHeardBelow)(protocolOfMesh, peers, engine.status()),
    refuses: () => diskRefusal(disk) ?? receiptsRefusal(archive, receipts),
  };
}

function snapshotsOf(engine: Engine): ClusterOptions["snapshots"] {
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
