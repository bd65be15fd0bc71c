// One island: its servers of production, one or three, with a coordinator each, in a world that other islands share. Names of nodes begin with the
// island's, so that several islands have streams, links and disks of their own.

import { assert } from "../../core/kit/assert.ts";
import { incarnationOf, peerKey } from "../../core/kit/ids.ts";
import type { Random } from "../../core/kit/random.ts";
import { configurationOf, ELECTION_DEFAULTS } from "../../core/raft/index.ts";
import type { StateFold } from "../../core/state/index.ts";
import type { BackendHash } from "../../core/txn/model.ts";
import type { SiteJournal } from "../../controller/journal/site-journal.ts";
import { Engine } from "../../engine/engine.ts";
import { type Archive, EVENTS } from "../../logs/index.ts";
import { assembleNode, type NodeServices, type SiteWorld } from "../../node/assembly/assemble.ts";
import { historyAhead } from "../../node/assembly/history-ahead.ts";
import { openArchive } from "../../node/assembly/history.ts";
import { serverMachine, type ServerMachine } from "../../node/assembly/machine.ts";
import { startOwnLog } from "../../node/assembly/own-log.ts";
import { nextFireBy } from "../../node/assembly/schedules.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Fold, LogHead, LogRecord } from "../../ports/log.ts";
import type { TxnDecider, TxnParticipant } from "../../ports/transactions.ts";
import { SimPeers } from "../jobs/peers.ts";
import { SimViews, StoredRows } from "../jobs/views.ts";
import type { Boot, World } from "../kernel/index.ts";
import { Coordinating, type CoordinatingStage } from "./coordinating.ts";
import { nodesOf, type TxnKnobs } from "./knobs.ts";
import type { TxnLedger } from "./oracle/txn-ledger.ts";
import { type TxnProbeCounts, reached } from "./probes.ts";
import { TXN_SIM_ANSWERS_IN_MS } from "./limits.ts";

const nextFire = nextFireBy(() => ({ offsetMinutesAt: () => 0 }));
const FOUNDER = "a1";
const PROTOCOL = 7;
const ARCHIVE_LIMITS = { bytesMax: 1024 * 1024, blockBytesMax: 2_048, eventsMax: 60 };
const NO_LOGGER = { debug() {}, info() {}, warn() {}, error() {} };

/** One process of a node. */
export interface TxnServer {
  readonly node: string;
  readonly engine: Engine;
  readonly state: StateFold;
  readonly parts: NodeServices["parts"];
  readonly scopes: NodeServices["scopes"];
  readonly values: NodeServices["values"];
  readonly transactions: TxnParticipant;
  readonly coordinating: Coordinating;
  readonly decider: TxnDecider;
  /** Gives up the leadership of the island's log. */
  transfer(): void;
}

export interface IslandStage extends CoordinatingStage {
  readonly world: World;
  readonly knobs: TxnKnobs;
  readonly digest: Digest;
  readonly ledger: TxnLedger;
  readonly probes: TxnProbeCounts;
}

export class SimIsland {
  readonly id: string;
  readonly hash: BackendHash;
  readonly names: readonly string[];
  readonly world: World;
  readonly random: Random;
  readonly knobs: TxnKnobs;
  readonly answersInMs = TXN_SIM_ANSWERS_IN_MS;
  readonly #stage: IslandStage;
  readonly #peers: SimPeers;
  readonly #servers = new Map<string, { readonly life: number; readonly server: TxnServer }>();
  readonly #founded = new Set<string>();
  readonly #rows = new Map<string, StoredRows>();

  constructor(id: string, stage: IslandStage) {
    this.id = id;
    this.#stage = stage;
    this.hash = stage.hashOf(id);
    this.world = stage.world;
    this.knobs = stage.knobs;
    this.random = stage.world.random.fork(`island/${id}`);
    this.names = nodesOf(id, stage.knobs);
    this.#peers = new SimPeers(this);
  }

  protocolOf(): number {
    return PROTOCOL;
  }

  /** Undefined while it is dead, or has not come up. */
  server(name: string): TxnServer | undefined {
    const one = this.#servers.get(name);
    return one !== undefined && this.world.node(name).process.life?.number === one.life ? one.server : undefined;
  }

  get servers(): readonly TxnServer[] {
    return this.names.flatMap((name) => this.server(name) ?? []);
  }

  any(random: Random): TxnServer | undefined {
    const { servers } = this;
    return servers.length === 0 ? undefined : random.pick(servers);
  }

  /** Whose values are looked at: of nodes that run, each in turn. */
  lookAt(): TxnServer | undefined {
    const { servers } = this;
    return servers[Math.floor(this.world.nowMs) % Math.max(1, servers.length)];
  }

  /** The one of the highest term that takes itself for the leader. */
  leader(): string | undefined {
    let best: { name: string; term: number } | undefined;
    for (const name of this.names) {
      const status = this.server(name)?.engine.status();
      if (status?.role === "leader" && status.term > (best?.term ?? -1)) best = { name, term: status.term };
    }
    return best?.name;
  }

  start(boot: Boot): void {
    const { disk, clock } = boot;
    const { digest } = this.#stage;
    const failed = (error: unknown): void => boot.fatal(error);
    const opened = openArchive({ of: EVENTS, disk, digest, clock, limits: ARCHIVE_LIMITS, logger: NO_LOGGER, failed });
    boot.when(opened, (archive) => this.#startEngine(boot, archive));
  }

  #startEngine(boot: Boot, archive: Archive): void {
    const { node } = boot;
    const { digest, knobs, ledger } = this.#stage;
    const machine = serverMachine(digest, {
      watched: (fold) => this.#watchedJobs(boot, fold),
      watchedState: (fold) => this.#watchedState(boot, fold),
    });
    machine.keepIn(archive);
    ledger.island(this.hash).started(node);
    const founders = this.names.map((name) => peerKey(name, FOUNDER));
    const started = Engine.start({
      clusterId: this.id,
      nodeId: node,
      disk: boot.disk,
      clock: boot.clock,
      digest,
      random: boot.random,
      connect: (self) => boot.wire(self),
      stateMachine: machine.machine,
      newIncarnation: () => `b${boot.life}`,
      bootstrap: this.#founded.has(node) ? null : { incarnation: FOUNDER, configuration: configurationOf(founders) },
      witness: async (log) => historyAhead({ events: archive, receipts: null }, log, digest),
      snapshots: { afterEntries: knobs.snapshotAfterEntries, keepEntries: 5 },
      onFatal: (error) => boot.fatal(error),
    });
    boot.when(started, (engine) => {
      this.#founded.add(node);
      const log = incarnationOf(engine.status().peer);
      boot.when(Coordinating.open(boot, this.#stage, log), (files) =>
        this.#started(boot, { engine, machine, archive }, files),
      );
    });
  }

  /** As node/worlds does it, with the ports of this world. */
  #started(
    boot: Boot,
    made: { readonly engine: Engine; readonly machine: ServerMachine; readonly archive: Archive },
    files: Awaited<ReturnType<typeof Coordinating.open>>,
  ): void {
    const { node, life } = boot;
    const { engine, machine } = made;
    const { digest, probes, ledger } = this.#stage;
    engine.subscribe((event) => {
      if (event.kind !== "established" || event.term <= 1) return;
      reached(probes, "island-leader-changed");
      const isPrepared = [...ledger.island(this.hash).txns.values()].some(({ phase }) => phase === "prepared");
      if (isPrepared) reached(probes, "island-leader-changed-while-prepared");
    });
    const around = { ...boot, digest, logger: NO_LOGGER };
    const log = startOwnLog({
      ...around,
      ...made,
      receipts: null,
      clusterId: this.id,
      version: "0.0.0",
      peers: this.#peers.of(boot, engine.peer),
      protocolOfRevocations: PROTOCOL,
      protocolOfMesh: PROTOCOL,
      protocolOfValues: PROTOCOL,
      protocolOfTransactions: PROTOCOL,
      own: { address: `${node}:7000`, url: `http://${node}` },
      electionTimeoutMaxMs: ELECTION_DEFAULTS.electionTimeoutMaxMs,
      disk: { state: () => "ok", freeBytes: () => null },
      keepDays: null,
    });
    let ids = 0;
    const newId = (): string => `${node}.${life}.${++ids}`;
    const assembled = assembleNode(
      {
        ...around,
        newId,
        newJobId: newId,
        nextFire,
        views: this.#views(boot),
        worker: undefined,
        site: this.#site(node),
      },
      log,
    );
    const { parts, scopes, values, transactions } = assembled;
    assert(transactions !== null, "an island takes part in transactions");
    const coordinating = new Coordinating(boot, this.#stage, { island: this.hash, files, transactions });
    const server: TxnServer = {
      node,
      engine,
      state: machine.state.fold,
      parts,
      scopes,
      values,
      transactions,
      coordinating,
      decider: coordinating.decider,
      transfer: () => void log.leading.transfer(null),
    };
    this.#servers.set(node, { life, server });
    coordinating.start();
  }

  #site(node: string): SiteWorld {
    return {
      clusterId: this.id,
      name: this.id,
      url: () => `http://${node}`,
      version: "0.0.0",
      verify: () => false,
      mesh: { mode: "standalone", registrationTtlMs: 300_000, expirationCheckIntervalMs: 60_000 },
    };
  }

  #views({ node, clock, random }: Boot): SimViews {
    const rows = this.#rows.get(node) ?? new StoredRows();
    this.#rows.set(node, rows);
    return new SimViews(rows, clock, random.fork("views"), this.knobs.viewsDelayMs, {});
  }

  /** The ledger sees each record before the code under test does, and the state after it. */
  #watchedState({ node, isAlive }: Boot, fold: StateFold): Fold {
    const ledger = this.#stage.ledger.island(this.hash);
    return {
      apply: (record: LogRecord) => {
        if (isAlive()) ledger.committed(node, record);
        fold.apply(record);
        if (isAlive()) ledger.folded(node, fold);
      },
      snapshot: () => fold.snapshot(),
      restore: (data: Uint8Array, head: LogHead) => {
        fold.restore(data);
        if (isAlive()) ledger.restored(node, head.position, fold);
      },
    };
  }

  #watchedJobs({ node, isAlive }: Boot, fold: SiteJournal): Fold {
    const { ledger } = this.#stage;
    return {
      apply: (record: LogRecord) => {
        if (isAlive()) {
          const event = JSON.parse(textDecoder.decode(record.data)) as JobEvent;
          if (event.eventType === "build:submitted") {
            const { kind } = event.payload.spec;
            ledger.job(node, this.hash, { sequence: record.position, jobId: event.entityId, isOfTxn: kind === "txn" });
          }
        }
        fold.apply(record);
      },
      snapshot: () => fold.snapshot(),
      restore: (data: Uint8Array, head: LogHead) => fold.restore(data, head),
    };
  }
}

const textDecoder = new TextDecoder();

interface JobEvent {
  readonly eventType: string;
  readonly entityId: string;
  readonly payload: { readonly spec: { readonly kind: string } };
}
