// One site of a simulated mesh: its servers of production, one or three, in a world that other sites share. Names of nodes begin with the
// site's, so that several sites have streams, links and disks of their own.

import { assert } from "../../core/kit/assert.ts";
import { peerKey } from "../../core/kit/ids.ts";
import type { Random } from "../../core/kit/random.ts";
import { configurationOf, ELECTION_DEFAULTS } from "../../core/raft/index.ts";
import type { SiteJournal } from "../../controller/journal/site-journal.ts";
import type { ReceiptsFold } from "../../controller/mesh/receipts/receipts-fold.ts";
import { Engine } from "../../engine/engine.ts";
import { type Archive, type ArchiveKind, EVENTS, RECEIPTS } from "../../logs/index.ts";
import { assembleNode, type NodeServices, type SiteWorld } from "../../node/assembly/assemble.ts";
import { historyAhead } from "../../node/assembly/history-ahead.ts";
import { openArchive } from "../../node/assembly/history.ts";
import { nextFireBy } from "../../node/assembly/schedules.ts";
import { serverMachine, type ServerMachine } from "../../node/assembly/machine.ts";
import { type OwnLogOptions, startOwnLog } from "../../node/assembly/own-log.ts";
import type { SealedReceipt } from "../../core/mesh/receipts/index.ts";
import type { Digest } from "../../ports/digest.ts";
import type { MeshLines } from "../../ports/mesh/lines.ts";
import type { Signer, VerifySignature } from "../../ports/signatures.ts";
import type { Fold, LogHead, LogRecord } from "../../ports/log.ts";
import type { Boot, World } from "../kernel/index.ts";
import { PROTOCOL, SimPeers } from "../jobs/peers.ts";
import { SimViews, StoredRows } from "../jobs/views.ts";
import { doorOf } from "./door.ts";
import { type MeshKnobs, parentsOf } from "./knobs.ts";
import type { Ledger } from "./ledger.ts";
import { type MeshProbeCounts, reached } from "./probes.ts";
import type { Transport } from "./transport.ts";
import { MESH_SKEW_MS_MAX } from "./limits.ts";

const nextFire = nextFireBy(() => ({ offsetMinutesAt: () => 0 }));
const FOUNDER = "a1";
const TRIO = 3;
const ANSWERS_IN_MS = 1_000;
/** As the configuration's defaults: heartbeats come more than twice in the time to live of a registration. */
const HEARTBEAT_IN_TTL = 0.4;
/** Much more often than by default: runs are short. */
const EXPIRY_CHECK_MS = 1_000;
const ARCHIVE_LIMITS = { bytesMax: 1024 * 1024, blockBytesMax: 2_048 };
const NO_LOGGER = { debug() {}, info() {}, warn() {}, error() {} };

export interface SiteServer {
  readonly node: string;
  readonly engine: Engine;
  readonly fold: SiteJournal;
  readonly mesh: ReceiptsFold;
  readonly parts: NodeServices["parts"];
  readonly archive: Archive;
  readonly receipts: Archive;
  readonly lines: Pick<MeshLines, "gate" | "own" | "resume">;
}

export interface SiteStage {
  readonly world: World;
  readonly knobs: MeshKnobs;
  readonly digest: Digest;
  readonly ledger: Ledger;
  readonly probes: MeshProbeCounts;
  readonly verify: VerifySignature;
  readonly transport: Transport;
  signerOf(node: string): Signer;
}

export class SimSite {
  readonly id: string;
  readonly names: readonly string[];
  readonly world: World;
  readonly random: Random;
  readonly knobs: MeshKnobs;
  readonly answersInMs = ANSWERS_IN_MS;
  readonly #stage: SiteStage;
  readonly #peers: SimPeers;
  readonly #servers = new Map<string, { readonly life: number; readonly server: SiteServer }>();
  readonly #founded = new Set<string>();
  /** By node: the stamp of the last receipt of this life. */
  readonly #receiptMs = new Map<string, number>();
  readonly #rows = new Map<string, StoredRows>();

  constructor(id: string, stage: SiteStage) {
    this.id = id;
    this.#stage = stage;
    this.world = stage.world;
    this.knobs = stage.knobs;
    this.random = stage.world.random.fork(`site/${id}`);
    this.names = namesOf(id, stage.knobs);
    this.#peers = new SimPeers(this);
  }

  /** Undefined while it is dead, or has not come up. */
  server(name: string): SiteServer | undefined {
    const one = this.#servers.get(name);
    return one !== undefined && this.world.node(name).process.life?.number === one.life ? one.server : undefined;
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
    this.#stage.ledger.ended(boot.node);
    this.#receiptMs.set(boot.node, Infinity);
    boot.when(Promise.all([this.#archive(boot, EVENTS), this.#archive(boot, RECEIPTS)]), ([archive, receipts]) =>
      this.#startEngine(boot, archive, receipts),
    );
  }

  #archive(boot: Boot, of: ArchiveKind): Promise<Archive> {
    const { disk, clock } = boot;
    const { digest, knobs } = this.#stage;
    const limits = { ...ARCHIVE_LIMITS, eventsMax: knobs.segmentEvents };
    return openArchive({ of, disk, digest, clock, limits, logger: NO_LOGGER, failed: (error) => boot.fatal(error) });
  }

  #startEngine(boot: Boot, archive: Archive, receipts: Archive): void {
    const { node } = boot;
    const { digest, knobs } = this.#stage;
    const machine: ServerMachine = serverMachine(digest, {
      watched: (fold) => this.#watched(boot, fold, () => machine),
    });
    machine.keepIn(archive);
    machine.keepReceiptsIn(receipts);
    machine.mesh.fold.follow((sealed) => {
      if (boot.isAlive()) this.#received(node, sealed, machine.jobs.fold.chain.sequence);
    });
    machine.mesh.fold.onRestored(() => {
      this.#resumes(machine);
      if (machine.mesh.fold.state.foreign > 0) reached(this.#stage.probes, "snapshot-of-foreign-events");
    });
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
      witness: async (log) => historyAhead({ events: archive, receipts }, log, digest),
      snapshots: { afterEntries: knobs.snapshotAfterEntries, keepEntries: 5 },
      onFatal: (error) => boot.fatal(error),
    });
    boot.when(started, (engine) => this.#started(boot, { engine, machine, archive, receipts }));
  }

  /** As node/worlds does it, with the ports of this world. */
  #started(
    boot: Boot,
    made: Pick<OwnLogOptions, "engine" | "machine" | "archive"> & { readonly receipts: Archive },
  ): void {
    const { node, life } = boot;
    const { engine, machine, archive, receipts } = made;
    const { probes } = this.#stage;
    engine.subscribe((event) => {
      if (event.kind === "established" && this.names.length > 1 && event.term > 1) reached(probes, "leader-changed");
    });
    const { digest } = this.#stage;
    this.#founded.add(node);
    const around = { ...boot, digest, logger: NO_LOGGER };
    const log = startOwnLog({
      ...around,
      ...made,
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
      mesh: {
        controller: this.id,
        name: this.id,
        key: { node, signer: this.#stage.signerOf(node) },
        verify: this.#stage.verify,
      },
    });
    let ids = 0;
    const newId = (): string => `${node}.${life}.${++ids}`;
    const views = this.#views(boot);
    const { parts, links, lines } = assembleNode(
      {
        ...around,
        newId,
        newJobId: newId,
        nextFire,
        views,
        worker: undefined,
        site: this.#asKnown(node, () => log.cluster.view().leader?.url ?? null),
        mesh: { maxSkewMs: MESH_SKEW_MS_MAX },
        links: {
          accept: "vouched",
          parents: this.#parentUrls(),
          heartbeatMs: this.knobs.ttlMs * HEARTBEAT_IN_TTL,
          sites: this.#stage.transport.sites(boot),
        },
      },
      log,
    );
    assert(links !== undefined && lines !== undefined, "a site of the mesh has links and lines");
    const urls = this.names.map((name) => `http://${name}`);
    const heard = (controller: string): void => this.#stage.ledger.heard(this.id, controller);
    this.#stage.transport.listen(
      node,
      doorOf({ links, lines, controllers: parts.controllers, cluster: log.cluster, urls, heard }, boot),
    );
    this.#servers.set(node, {
      life,
      server: { node, engine, fold: machine.jobs.fold, mesh: machine.mesh.fold, parts, archive, receipts, lines },
    });
  }

  #asKnown(node: string, leaderUrl: () => string | null): SiteWorld {
    return {
      clusterId: this.id,
      name: this.id,
      url: () => leaderUrl() ?? `http://${node}`,
      version: "0.0.0",
      verify: this.#stage.verify,
      mesh: { mode: "distributed", registrationTtlMs: this.knobs.ttlMs, expirationCheckIntervalMs: EXPIRY_CHECK_MS },
    };
  }

  /** The first node of each: the others are learnt from answers. */
  #parentUrls(): readonly string[] {
    return parentsOf(this.knobs.topology, this.id).map((parent) => `http://${namesOf(parent, this.knobs)[0]}`);
  }

  #views({ node, clock, random }: Boot): SimViews {
    const rows = this.#rows.get(node) ?? new StoredRows();
    this.#rows.set(node, rows);
    return new SimViews(rows, clock, random.fork("views"), this.knobs.viewsDelayMs, {});
  }

  #received(node: string, sealed: SealedReceipt, own: number): void {
    const { ledger } = this.#stage;
    const { timestamp, first, page } = sealed.receipt;
    ledger.receipt(this.id, node, sealed, own);
    const beforeMs = this.#receiptMs.get(node) ?? Infinity;
    this.#receiptMs.set(node, timestamp);
    // A receipt is never stamped below the one before: only a later stamp is the time at which the leader had the page.
    if (timestamp <= beforeMs) return;
    for (const item of page.items.slice(first - page.after - 1)) {
      if ("bytes" in item) ledger.caused(node, timestampOf(item.bytes), timestamp);
    }
  }

  /** The ledger sees each record before the code under test does. */
  #watched({ node, isAlive }: Boot, fold: SiteJournal, machine: () => ServerMachine): Fold {
    const { ledger } = this.#stage;
    return {
      apply: (record: LogRecord) => {
        if (isAlive()) ledger.own(this.id, node, record.position, record.data, machine().mesh.fold.state.foreign);
        fold.apply(record);
      },
      snapshot: () => fold.snapshot(),
      restore: (data: Uint8Array, head: LogHead) => {
        fold.restore(data, head);
        this.#resumes(machine());
      },
    };
  }

  #resumes({ jobs, mesh }: ServerMachine): void {
    const { foreign, head } = mesh.fold.state;
    this.#stage.ledger.resumes(this.id, jobs.fold.chain.sequence, head.sequence, foreign);
  }
}

export function namesOf(site: string, { trio }: Pick<MeshKnobs, "trio">): readonly string[] {
  return Array.from({ length: site === trio ? TRIO : 1 }, (_, at) => `${site}-n${at + 1}`);
}

const textDecoder = new TextDecoder();

function timestampOf(bytes: Uint8Array): number {
  return (JSON.parse(textDecoder.decode(bytes)) as { readonly timestamp: number }).timestamp;
}
