// Three servers of production without an API, on a simulated world: engine, machine, the jobs' log and their service; and
// beside them the machines of agents. The oracle sees each record as it is applied, before the code under test does.

import type { Random } from "../../core/kit/random.ts";
import { peerKey } from "../../core/kit/ids.ts";
import { joined } from "../../core/kit/pieces.ts";
import { configurationOf } from "../../core/raft/index.ts";
import { ScopesFold } from "../../core/scopes/index.ts";
import { ClusterMachine, innerProposals } from "../../controller/cluster/cluster-machine.ts";
import { JobsFeeder } from "../../controller/jobs/feeder.ts";
import { JOBS_LOG_KEPT, SiteJournal } from "../../controller/journal/site-journal.ts";
import { JobsService } from "../../controller/jobs/jobs.ts";
import { JournalService } from "../../controller/journal/service.ts";
import { LeaseSecrets } from "../../controller/jobs/lease-secrets.ts";
import { type Leading, raftLeading } from "../../controller/leadership/leading.ts";
import { Engine } from "../../engine/engine.ts";
import { type FeedBounds, RaftLog } from "../../logs/index.ts";
import type { Proposals } from "../../ports/consensus.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Fold, LogHead, LogRecord } from "../../ports/log.ts";
import { World, type Boot, type TraceSink } from "../kernel/index.ts";
import type { ClockWatch } from "../../controller/cluster/clock-watch.ts";
import { DiskWitness } from "../raft/index.ts";
import type { SimArchive } from "./archive.ts";
import { SimClocks } from "./clocks.ts";
import type { JobsKnobs } from "./knobs.ts";
import { Moonlight, supervisorOf, workerOf } from "./moonlight.ts";
import { JobsOracle } from "./oracle/oracle.ts";
import { type JobsProbeCounts, reached } from "./probes.ts";
import { type Reading, readingOf } from "./reading.ts";
import { ScheduleLedger } from "./oracle/schedule-ledger.ts";
import { charged } from "./schedules.ts";
import { Stores } from "./stores.ts";
import { Usurped } from "./usurpers.ts";

const CLUSTER_ID = "sim";
const FOUNDER = "a1";
const RESTART_AFTER_EXIT_MS = 50;
/** After the first election, one that another node had begun meanwhile. */
const SETTLED_MS = 1_000;
/** As in a server: the scopes' log comes first. */
const JOBS_PLACE = 1;

const NO_LOGGER = { debug() {}, info() {}, warn() {}, error() {} };

/** Leadership is as everybody but the engine sees it: after the clearance of a node that works. */
export interface JobsServer extends Leading {
  readonly engine: Engine;
  readonly fold: SiteJournal;
  readonly service: JobsService;
  readonly reading: Reading;
  readonly clocks: ClockWatch;
}

interface MachineParts {
  readonly fold: SiteJournal;
  readonly archive: SimArchive;
  readonly log: RaftLog;
}

export interface AnsweredAgent {
  readonly life: number;
  readonly session: string;
  readonly epoch: number | undefined;
  /** What it sends from now on shows that it was registered. */
  /** The last of its calls for jobs that was answered; 0: none. */
  readonly answeredUpTo: number;
  readonly isSure: boolean;
}

/** What ploys have clients do. */
export interface PloyClients {
  cancelNow(node: string, jobId: string): void;
  retryNow(node: string, jobId: string): void;
  submitAt(node: string, random: Random): void;
}

export interface JobsClusterOptions {
  readonly seed: string;
  readonly knobs: JobsKnobs;
  readonly digest: Digest;
  readonly startAgent: (cluster: JobsCluster, boot: Boot) => void;
  readonly narrate?: TraceSink | undefined;
  readonly reversed?: boolean | undefined;
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
  /** In the turn in which a server is told a result. */
  onResult: ((node: string, jobId: string) => void) | null = null;
  clients: PloyClients | null = null;
  readonly secrets: LeaseSecrets;
  readonly clocks: SimClocks;
  readonly stores: Stores;
  readonly #options: JobsClusterOptions;
  readonly #servers = new Map<string, { readonly life: number; readonly server: JobsServer }>();
  readonly #founded = new Set<string>();
  readonly #moonlight: Moonlight;
  readonly #witness: DiskWitness;
  #committedIndex = 0;
  /** Who was elected, and when. */
  readonly #elections: { readonly node: string; readonly atMs: number }[] = [];

  constructor(options: JobsClusterOptions) {
    this.#options = options;
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
        else if (this.#moonlight.isSupervisor(boot.node)) this.#moonlight.supervise(boot);
        else if (this.#moonlight.isWorker(boot.node)) {
          if (this.#moonlight.started(boot)) options.startAgent(this, boot);
        } else if (!this.knobs.moonlights || this.#moonlight.begins(boot)) this.#start(boot);
      },
      trace: options.narrate,
    });
    this.#moonlight = new Moonlight(this.world, this.probes, this.knobs.survives);
    this.#witness = new DiskWitness(this.world, options.digest);
    this.world.network.hooks.onSend = (_from, _to, bytes) => this.#witness.sent(CLUSTER_ID, bytes);
    this.clocks = new SimClocks({
      world: this.world,
      names: this.names,
      mood: this.knobs.clocks,
      probes: this.probes,
      leader: () => this.leader(),
      outage: (forMs, hoursMs) => this.#outage(forMs, hoursMs),
      watchOf: (node) => this.server(node)?.clocks,
    });
    this.oracle = new JobsOracle({
      probes: this.probes,
      secrets: this.secrets,
      statesEvery: this.knobs.statesEvery,
      finished: this.knobs,
      report: (node, error) => this.world.report(node, error),
      nowMs: () => this.world.nowMs,
      timeProblem: (timestamp) => this.clocks.problemOf(timestamp),
    });
    this.stores = new Stores({
      knobs: this.knobs,
      probes: this.probes,
      record: (sequence) => this.oracle.record(sequence),
      positionOf: (node) => this.oracle.positionOf(node),
    });
    this.ledger = new ScheduleLedger({
      probes: this.probes,
      latestMs: () => this.clocks.latestMs(),
      wrong: (node, what) => this.world.report(node, new Error(`${node} ${what}`)),
    });
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

  /** Where servers work. */
  crashLoop(node: string): void {
    this.#moonlight.crashLoop(node);
  }

  /** All machines are off for hours: nobody leads, and then everybody begins, with clocks that have gone on. */
  #outage(forMs: number, hoursMs: number): void {
    const { world, knobs } = this;
    const down = knobs.moonlights ? this.names.map(supervisorOf) : this.names;
    for (const name of [...down, ...this.names]) world.crash(name);
    for (const { process } of world.nodes) process.jumpWall(hoursMs);
    for (const name of down) world.startAfter(name, forMs);
  }

  stopNode(node: string): void {
    this.#moonlight.stop(node);
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
    const { node } = boot;
    const { digest } = this.#options;
    const made: { engine?: Engine } = {};
    const { snapshotSliceBytes: sliceBytes, finishedMax, finishedBytesMax } = this.knobs;
    const fold = new SiteJournal(digest, { sliceBytes, limits: { finishedMax, finishedBytesMax } });
    const proposals: Proposals = { propose: (data) => made.engine!.propose(data) };
    const lead = { status: () => made.engine!.status() };
    const logAt = (place: number, folded: Fold, kept?: FeedBounds): RaftLog =>
      new RaftLog({ fold: folded, kept, proposals: innerProposals(proposals, place), lead });
    const archive = this.stores.archive(boot);
    const jobsLog = logAt(JOBS_PLACE, this.#watched(boot, fold, archive), JOBS_LOG_KEPT);
    const machine = new ClusterMachine([logAt(0, new ScopesFold()), jobsLog], digest);
    const founders = this.names.map((name) => peerKey(name, FOUNDER));
    this.oracle.started(node);
    Engine.start({
      clusterId: CLUSTER_ID,
      nodeId: node,
      disk: boot.disk,
      clock: boot.clock,
      digest,
      random: boot.random,
      connect: (self) => boot.wire(self),
      stateMachine: machine,
      newIncarnation: () => `b${boot.life}`,
      bootstrap: this.#founded.has(node) ? null : { incarnation: FOUNDER, configuration: configurationOf(founders) },
      election: { enableLease: this.knobs.enableLease },
      limits: { uncommittedBytesMax: this.knobs.uncommittedBytesMax },
      snapshots: { afterEntries: this.knobs.snapshotAfterEntries, keepEntries: 5 },
      onFatal: (error) => boot.fatal(error),
    }).then(
      (engine) => {
        made.engine = engine;
        if (this.world.node(node).process.life?.number !== boot.life) return;
        const leading = this.knobs.moonlights
          ? this.#moonlight.over(engine, boot)
          : raftLeading({ consensus: engine, clock: boot.clock, logger: NO_LOGGER });
        this.#started(boot, engine, leading, { fold, archive, log: jobsLog });
      },
      (error: unknown) => boot.fatal(error),
    );
  }

  #started(boot: Boot, engine: Engine, leading: Leading, { fold, archive, log }: MachineParts): void {
    const { node, life, clock, random } = boot;
    this.#founded.add(node);
    this.#witness.started(engine.peer);
    engine.subscribe((event) => {
      if (event.kind !== "established") return;
      this.oracle.established(event.term);
      this.#elections.push({ node, atMs: this.world.nowMs });
    });
    // As one who follows events does.
    fold.follow(({ event, bytes }) => {
      if (this.world.node(node).process.life?.number === life) this.oracle.told(node, event.sequence, bytes);
    });
    let ids = 0;
    const { nextFire, newId } = charged(this, boot, () => `${node}.${life}.${++ids}`);
    const views = this.stores.views(boot);
    const clocks = this.clocks.watch(boot, engine);
    const around = { clock, random: random.fork("jobs"), newId };
    const journal = new JournalService({
      ...around,
      log,
      journal: fold,
      author: `${CLUSTER_ID}.0`,
      leadership: leading.leadership,
      believedMs: () => clocks.believedMs(),
    });
    const service = new JobsService({
      ...around,
      journal,
      fold,
      digest: this.#options.digest,
      worker: this.knobs.moonlights ? workerOf(node) : undefined,
      newJobId: newId,
      nextFire,
      refusesNew: () => null,
      find: (jobId) => views.get(jobId),
      expired: (nowMs, limit, from) => views.expired(nowMs, limit, from),
    });
    const { putJobsMax } = this.knobs;
    const feeder = new JobsFeeder({ fold, views, history: archive, clock, logger: NO_LOGGER, putJobsMax });
    this.stores.fed(node, { views, feeder });
    const reading = readingOf({ node, clock, consensus: engine, fold, service, views });
    this.#servers.set(node, { life, server: { ...leading, engine, fold, service, reading, clocks } });
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

  #watched({ node, life }: Boot, fold: SiteJournal, archive: SimArchive): Fold {
    const lives = (): boolean => this.world.node(node).process.life?.number === life;
    const hash = (): string => hex(fold.book.stateHash(this.#options.digest));
    return {
      apply: (record: LogRecord) => {
        if (lives()) this.#lookAtDisks(node);
        const isNews = lives() && record.position > this.oracle.head;
        if (lives()) this.oracle.committed(node, record.position, record.data);
        if (isNews) this.ledger.committed(node, record.data);
        if (lives()) archive.applied(record.position);
        fold.apply(record);
        if (lives()) this.oracle.folded(node, hash);
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
        archive.restored(head.position);
      },
    };
  }
}

/** No bytes; asked for them, it does this. */
function* after(what: () => void): Generator<Uint8Array, void, void> {
  what();
  yield new Uint8Array(0);
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
