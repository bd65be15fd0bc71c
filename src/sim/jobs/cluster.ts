// Three servers of production on a simulated world: engine, machine, the jobs' log with its archive, and the services over them, the
// API's handlers included; and the machines of agents. The oracle sees each record as it is applied, before the code under test does.

import type { Random } from "../../core/kit/random.ts";
import { peerKey } from "../../core/kit/ids.ts";
import { joined } from "../../core/kit/pieces.ts";
import { configurationOf, ELECTION_DEFAULTS } from "../../core/raft/index.ts";
import type { StateFold } from "../../core/state/index.ts";
import type { EventsService } from "../../controller/journal/events.ts";
import type { SiteJournal } from "../../controller/journal/site-journal.ts";
import type { ReceiptsFold } from "../../controller/mesh/receipts/receipts-fold.ts";
import type { PageReceived, VerifiedPage } from "../../controller/mesh/receipts/receipts-reign.ts";
import type { JobsService } from "../../controller/jobs/jobs.ts";
import { LeaseSecrets } from "../../controller/jobs/lease-secrets.ts";
import type { Leading } from "../../controller/leadership/leading.ts";
import { noValues } from "../../controller/values/site-values.ts";
import { Engine } from "../../engine/engine.ts";
import { type Archive, RECEIPTS } from "../../logs/index.ts";
import { pause } from "../../loops/time.ts";
import { assembleNode, type SiteWorld } from "../../node/assembly/assemble.ts";
import { historyAhead } from "../../node/assembly/history-ahead.ts";
import { serverMachine } from "../../node/assembly/machine.ts";
import { type OwnLogOptions, startOwnLog } from "../../node/assembly/own-log.ts";
import type { Certificates } from "../../ports/certificates.ts";
import type { Keys } from "../../ports/keys.ts";
import type { LogFields, Logger } from "../../ports/logger.ts";
import { workerName } from "../../supervisor/index.ts";
import type { Fold, LogHead, LogRecord } from "../../ports/log.ts";
import type { Scopes } from "../../ports/scopes.ts";
import type { Values } from "../../ports/values.ts";
import { World, type Boot, type Owner, type Scheduled } from "../kernel/index.ts";
import { DiskWitness } from "../raft/index.ts";
import type { JobsClients } from "./clients.ts";
import { SimClocks } from "./clocks.ts";
import { type Following, followingOf } from "./following.ts";
import { Histories } from "./history.ts";
import type { JobsKnobs } from "./knobs.ts";
import { Moonlight, supervisorOf } from "./moonlight.ts";
import { PROTOCOL, SimPeers } from "./peers.ts";
import { ArrivalLedger } from "./oracle/arrivals.ts";
import { Chronicle } from "./oracle/chronicle.ts";
import { DoorLedger } from "./oracle/door-ledger.ts";
import { JobsOracle } from "./oracle/oracle.ts";
import { ValuesLedger } from "./oracle/values-ledger.ts";
import { type JobsProbeCounts, reached } from "./probes.ts";
import { type Reading, readingOf } from "./reading.ts";
import type { JobsRunOptions } from "./run.ts";
import { ScheduleLedger } from "./oracle/schedule-ledger.ts";
import { charged } from "./schedules.ts";
import { Stores } from "./stores.ts";
import { Usurped } from "./usurpers.ts";
import { PROTOCOL_OF_TRANSACTIONS, PROTOCOL_OF_VALUES, Releases } from "./values/releases.ts";

const CLUSTER_ID = "sim";
const STANDALONE: SiteWorld = {
  clusterId: CLUSTER_ID,
  name: CLUSTER_ID,
  url: () => "http://sim",
  version: "0.0.0",
  verify: () => false,
  mesh: { mode: "standalone", registrationTtlMs: 300_000, expirationCheckIntervalMs: 60_000 },
};
const FOUNDER = "a1";
const RESTART_AFTER_EXIT_MS = 50;
/** As configured by default. */
const MAX_SKEW_MS = 1_000;
/** After the first election, one that another node had begun meanwhile. */
const SETTLED_MS = 1_000;

/** Leadership is as everybody but the engine sees it: after the clearance of a node that works. */
export interface JobsServer extends Leading {
  readonly engine: Engine;
  readonly fold: SiteJournal;
  readonly service: JobsService;
  readonly reading: Reading;
  readonly archive: Archive;
  /** Null: the site is alone. */
  readonly receipts: Archive | null;
  readonly mesh: ReceiptsFold;
  /** Pages of other sites. */
  readonly receive: (pages: readonly VerifiedPage[]) => Promise<readonly PageReceived[]>;
  readonly pause: (ms: number) => Promise<unknown>;
  readonly following: Following;
  readonly events: EventsService;
  readonly keys: Keys;
  readonly certificates: Certificates;
  readonly scopes: Scopes;
  readonly values: Values;
}

export interface AnsweredAgent {
  readonly life: number;
  readonly session: string;
  readonly epoch: number | undefined;
  /** The last of its calls for jobs that was answered; 0: none. */
  readonly answeredUpTo: number;
  /** What it sends from now on shows that it was registered. */
  readonly isSure: boolean;
}

export interface JobsClusterOptions extends Pick<JobsRunOptions, "digest" | "narrate" | "reversed"> {
  readonly seed: string;
  readonly knobs: JobsKnobs;
  readonly startAgent: (cluster: JobsCluster, boot: Boot) => void;
}

export class JobsCluster {
  readonly world: World;
  readonly oracle: JobsOracle;
  readonly ledger: ScheduleLedger;
  readonly probes: JobsProbeCounts = {};
  readonly knobs: JobsKnobs;
  readonly names: readonly string[];
  readonly agents: readonly string[];
  /** By name: the last process of an agent that was answered. */
  readonly sessions = new Map<string, AnsweredAgent>();
  readonly usurped = new Usurped();
  /** By agent that runs: has it renew at this server, now. */
  readonly renewals = new Map<string, (to: string) => void>();
  /** Has a counter among the values be read anywhere, and written at this server. */
  countAt: ((to: string) => void) | null = null;
  /** In the turn in which a server is told a result. */
  onResult: ((node: string, jobId: string) => void) | null = null;
  /** For what ploys have clients do. */
  clients: JobsClients | null = null;
  readonly secrets: LeaseSecrets;
  readonly clocks: SimClocks;
  readonly peers: SimPeers;
  readonly histories: Histories;
  readonly stores: Stores;
  readonly doors: DoorLedger;
  /** Where servers work. */
  readonly moonlight: Moonlight;
  readonly chronicle: Chronicle;
  readonly arrivals: ArrivalLedger;
  /** Scopes and values. */
  readonly values: ValuesLedger;
  /** Which server is of which release. */
  readonly releases: Releases;
  readonly #options: JobsClusterOptions;
  readonly #servers = new Map<string, { readonly life: number; readonly server: JobsServer }>();
  readonly #founded = new Set<string>();
  readonly #witness: DiskWitness;
  readonly #logger: Logger;
  #committedIndex = 0;
  /** Who was elected, and when. */
  readonly #elections: { readonly node: string; readonly atMs: number }[] = [];

  constructor(options: JobsClusterOptions) {
    this.#options = options;
    this.#logger = probing(this.probes);
    this.secrets = new LeaseSecrets(options.digest);
    this.knobs = options.knobs;
    this.names = Array.from({ length: this.knobs.servers }, (_, at) => `n${at + 1}`);
    this.agents = Array.from({ length: this.knobs.agents }, (_, at) => `w${at + 1}`);
    const all = [...this.names, ...this.agents];
    const processes = this.knobs.moonlights ? [...all, ...this.names.map(supervisorOf)] : all;
    this.world = new World({
      seed: options.seed,
      nodes: options.reversed === true ? processes.toReversed() : processes,
      link: this.knobs.link,
      disk: this.knobs.disk,
      restartAfterExitMs: RESTART_AFTER_EXIT_MS,
      start: (boot) => {
        if (this.agents.includes(boot.node)) options.startAgent(this, boot);
        else if (this.moonlight.isSupervisor(boot.node)) this.moonlight.supervise(boot);
        else if (this.moonlight.isWorker(boot.node)) {
          if (this.moonlight.started(boot)) options.startAgent(this, boot);
        } else if (!this.knobs.moonlights || this.moonlight.begins(boot)) this.#start(boot);
      },
      trace: options.narrate,
    });
    this.moonlight = new Moonlight(this.world, this.probes, this.knobs.survives);
    this.#witness = new DiskWitness(this.world, options.digest);
    this.world.network.hooks.onSend = (_from, _to, bytes) => this.#witness.sent(CLUSTER_ID, bytes);
    this.clocks = new SimClocks(this);
    this.oracle = new JobsOracle(this);
    this.releases = new Releases(this);
    this.peers = new SimPeers(this);
    this.histories = new Histories(this);
    this.stores = new Stores(this);
    this.chronicle = new Chronicle((sequence) => this.oracle.record(sequence), options.digest);
    const wrong = (node: string, what: string): void => this.world.report(node, new Error(`${node} ${what}`));
    this.arrivals = new ArrivalLedger(options.digest, wrong);
    this.doors = new DoorLedger(this.probes, wrong);
    const isOlder = (node: string): boolean => this.releases.isOlder(node);
    this.values = new ValuesLedger({ probes: this.probes, wrong, isOlder });
    this.ledger = new ScheduleLedger(this.probes, wrong, () => this.clocks.latestMs());
    for (const [at, name] of all.entries()) this.world.node(name).process.setClockRate(this.knobs.clockRates[at] ?? 1);
  }

  get random(): Random {
    return this.world.random;
  }

  /** Undefined while it is dead, or has not come up. */
  server(name: string): JobsServer | undefined {
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

  /** Of its release. */
  protocolOf(node: string): number {
    return this.releases.protocolOf(node);
  }

  /** Outside of every process. */
  later(owner: Owner, afterMs: number, fire: () => void): Scheduled {
    return this.world.scheduler.schedule(this.world.nowMs + afterMs, owner, fire);
  }

  /** All machines are off for hours: nobody leads, and then everybody begins, with clocks that have gone on. */
  outage(forMs: number, hoursMs: number): void {
    const { world, knobs } = this;
    const down = knobs.moonlights ? this.names.map(supervisorOf) : this.names;
    for (const name of [...down, ...this.names]) world.crash(name);
    for (const { process } of world.nodes) process.jumpWall(hoursMs);
    for (const name of down) world.startAfter(name, forMs);
  }

  /**
   * Null: since this time, from which on nothing failed, whoever was elected stayed. Machines of servers that work are stopped and
   * started by their supervisors for a while longer.
   */
  deposition(sinceMs: number): string | null {
    if (this.knobs.moonlights || !this.clocks.areAllRight) return null;
    const [first, ...others] = this.#elections.filter(({ atMs }) => atMs >= sinceMs);
    const later = others.find(({ atMs }) => atMs > (first?.atMs ?? 0) + SETTLED_MS);
    if (first === undefined || later === undefined) return null;
    return `${first.node} was elected at ${first.atMs.toFixed(0)} ms and ${later.node} at ${later.atMs.toFixed(0)} ms, though nothing failed in between`;
  }

  /** Clocks keep drifting: that is no fault. */
  calm(): void {
    this.world.calm();
    const all = [...this.names, ...this.agents];
    for (const [at, name] of all.entries()) this.world.node(name).process.setClockRate(this.knobs.clockRates[at] ?? 1);
  }

  /** Null: all servers have the same events and states, every job is over, and no schedule owes a time. */
  difference(): string | null {
    for (const name of this.names) {
      const server = this.server(name);
      if (server === undefined) return `${name} does not run`;
      const position = this.oracle.positionOf(name);
      if (position !== this.oracle.head) return `${name} has ${position} of ${this.oracle.head} events`;
    }
    for (const [jobId, { now, isFinal, spec }] of this.oracle.jobs) {
      if (isFinal) continue;
      const leader = this.server(this.leader() ?? "");
      const why = JSON.stringify(leader?.service.whyPending(jobId) ?? null);
      return `job ${jobId} of ${spec.kind} is ${now.state}, pending for ${why}`;
    }
    const agreedMs = this.clocks.agreedMs();
    return agreedMs === null ? null : this.ledger.owed(agreedMs);
  }

  #start(boot: Boot): void {
    const { digest } = this.#options;
    boot.when(this.histories.open(boot, digest), (archive) => {
      if (this.knobs.foreignEvents === 0) return this.#startEngine(boot, { archive, receipts: null });
      const opened = this.histories.open(boot, digest, RECEIPTS);
      boot.when(opened, (receipts) => this.#startEngine(boot, { archive, receipts }));
    });
  }

  #startEngine(boot: Boot, { archive, receipts }: Pick<OwnLogOptions, "archive" | "receipts">): void {
    const { node } = boot;
    const { digest } = this.#options;
    const { snapshotSliceBytes: sliceBytes, finishedMax, finishedBytesMax } = this.knobs;
    const machine = serverMachine(digest, {
      journal: { sliceBytes, limits: { finishedMax, finishedBytesMax } },
      watched: (fold) => this.#watched(boot, fold),
      watchedState: (fold) => this.#watchedState(boot, fold),
    });
    machine.keepIn(archive);
    if (receipts !== null) machine.keepReceiptsIn(receipts);
    this.#watchReceipts(boot, machine.mesh.fold, machine.jobs.fold);
    const founders = this.names.map((name) => peerKey(name, FOUNDER));
    this.oracle.started(node);
    this.values.started(node);
    const started = Engine.start({
      clusterId: CLUSTER_ID,
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
      election: { enableLease: this.knobs.enableLease },
      limits: { uncommittedBytesMax: this.knobs.uncommittedBytesMax },
      snapshots: { afterEntries: this.knobs.snapshotAfterEntries, keepEntries: 5 },
      onFatal: (error) => boot.fatal(error),
    });
    boot.when(started, (engine) => this.#started(boot, { engine, machine, archive, receipts }));
  }

  /** As node/worlds does it, with the ports of this world. */
  #started(boot: Boot, made: Pick<OwnLogOptions, "engine" | "machine" | "archive" | "receipts">): void {
    const { node, life } = boot;
    const { engine, archive, receipts } = made;
    const { fold } = made.machine.jobs;
    this.#founded.add(node);
    this.#witness.started(engine.peer);
    engine.subscribe((event) => {
      if (event.kind !== "established") return;
      this.oracle.established(event.term);
      this.#elections.push({ node, atMs: this.world.nowMs });
    });
    // As one who follows events does.
    fold.follow(({ event, bytes }) => {
      if (boot.isAlive()) this.oracle.told(node, event.sequence, bytes);
    });
    const { moonlights, putJobsMax } = this.knobs;
    const clearance = moonlights ? this.moonlight.clearance(boot) : undefined;
    const around = { ...boot, digest: this.#options.digest, logger: this.#logger };
    const log = startOwnLog({
      ...around,
      ...made,
      clusterId: CLUSTER_ID,
      version: "0.0.0",
      peers: this.peers.of(boot, engine.peer),
      protocolOfRevocations: PROTOCOL,
      protocolOfMesh: PROTOCOL,
      protocolOfValues: PROTOCOL_OF_VALUES,
      protocolOfTransactions: PROTOCOL_OF_TRANSACTIONS,
      own: { address: `${node}:7000`, url: `http://${node}` },
      electionTimeoutMaxMs: ELECTION_DEFAULTS.electionTimeoutMaxMs,
      disk: { state: () => "ok", freeBytes: () => null },
      keepDays: null,
      clearance,
    });
    this.#watchHistory(log);
    const { leading, cluster } = log;
    if (clearance !== undefined) this.moonlight.up(boot, leading.leadership, clearance);
    let ids = 0;
    const { nextFire, newId } = charged(this, boot, () => `${node}.${life}.${++ids}`);
    const views = this.stores.views(boot);
    const worker = moonlights ? workerName(node) : undefined;
    const mesh = receipts === null ? undefined : { maxSkewMs: MAX_SKEW_MS };
    const { parts, scopes, ...assembled } = assembleNode(
      { ...around, newId, newJobId: newId, nextFire, views, worker, putJobsMax, site: STANDALONE, mesh },
      { ...log, history: this.histories.watched(archive) },
    );
    const { jobs: service, events, keys, certificates } = parts;
    const values = this.releases.isOlder(node) ? noValues() : assembled.values;
    const read = { node, clock: boot.clock, cluster, parts };
    const [reading, following] = [readingOf(read), followingOf(read)];
    const server = {
      ...leading,
      engine,
      fold,
      service,
      reading,
      following,
      archive,
      receipts,
      events,
      keys,
      certificates,
      scopes,
      values,
      mesh: made.machine.mesh.fold,
      receive: async (pages: readonly VerifiedPage[]) => (await assembled.receipts?.receive(pages)) ?? [],
      pause: (ms: number) => pause(boot.clock, ms),
    };
    this.#servers.set(node, { life, server });
  }

  #watchHistory(log: ReturnType<typeof startOwnLog>): void {
    log.onHistoryChanged?.(() => {
      reached(this.probes, "segment-fetched");
      if (log.fetched().refused > 0) reached(this.probes, "segment-refused");
    });
  }

  /** As for bare clusters: what is committed is on the disks of a majority when it is first applied anywhere. */
  #lookAtDisks(node: string): void {
    const engine = this.#servers.get(node)?.server.engine;
    const status = engine?.status();
    const term = status === undefined ? undefined : engine?.raft.termAt(status.commit);
    if (status === undefined || term === undefined || status.commit <= this.#committedIndex) return;
    this.#committedIndex = status.commit;
    this.#witness.committed(node, status.commit, term, status.configuration);
  }

  /** What arrives, own and foreign, as it is applied. */
  #watchReceipts({ node, isAlive: lives }: Boot, mesh: ReceiptsFold, fold: SiteJournal): void {
    if (this.knobs.foreignEvents === 0) return;
    this.arrivals.started(node);
    fold.follow(({ event }) => {
      if (lives()) this.arrivals.own(node, event.sequence);
    });
    mesh.follow((sealed) => {
      if (lives()) this.arrivals.receipt(node, sealed, mesh);
    });
    fold.onRestored(() => {
      if (lives()) this.arrivals.ownRestored(node, fold.chain.sequence);
    });
    mesh.onRestored(() => {
      if (!lives()) return;
      if (mesh.state.foreign > 0) reached(this.probes, "receipts-restored");
      this.arrivals.restored(node, fold.chain.sequence, mesh);
    });
  }

  #watched({ node, isAlive: lives }: Boot, fold: SiteJournal): Fold {
    const hash = (): string => hex(fold.book.stateHash(this.#options.digest));
    return {
      apply: (record: LogRecord) => {
        if (lives()) this.#lookAtDisks(node);
        const isNews = lives() && record.position > this.oracle.head;
        if (lives()) this.oracle.committed(node, record.position, record.data);
        if (isNews) this.ledger.committed(node, record.data);
        if (isNews) this.doors.committed(record.position, record.data);
        fold.apply(record);
        if (!lives()) return;
        this.oracle.folded(node, hash);
        this.doors.folded(node, record.position, fold);
      },
      snapshot: () => {
        const from = this.oracle.positionOf(node);
        const whenWritten = (): void => {
          if (lives() && this.oracle.positionOf(node) > from) reached(this.probes, "snapshot-amid-commands");
        };
        return joined(fold.snapshot(), after(whenWritten));
      },
      restore: (data: Uint8Array, head: LogHead) => {
        fold.restore(data, head);
        if (!lives()) return;
        this.oracle.restored(node, head.position, hash());
        this.doors.restored(node, head.position, fold);
      },
    };
  }

  #watchedState({ node, isAlive: lives }: Boot, fold: StateFold): Fold {
    return {
      apply: (record: LogRecord) => {
        if (lives()) this.values.committed(node, record);
        fold.apply(record);
        if (lives()) this.values.folded(node, fold);
      },
      snapshot: () => fold.snapshot(),
      restore: (data: Uint8Array, head: LogHead) => {
        const restored: Fold = fold;
        restored.restore(data, head);
        if (lives()) this.values.restored(node, head.position, fold);
      },
    };
  }
}

/** Of what servers log: what a run should have seen. */
function probing(probes: JobsProbeCounts): Logger {
  const seen = ({ event, alert }: LogFields): void => {
    if (alert === "clock_skewed") reached(probes, "clock-found-off");
    if (alert === "clocks_disagree") reached(probes, "clocks-disagreed");
    if (event === "not-cleared") reached(probes, "not-cleared-in-time");
  };
  return { info: () => undefined, warn: seen, error: seen };
}

/** No bytes; asked for them, it does this. */
function* after(what: () => void): Generator<Uint8Array, void, void> {
  what();
  yield new Uint8Array(0);
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
