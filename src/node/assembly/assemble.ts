// One server's services, over ports: the same for a server with a log of its own, for one on Postgres and for one that is
// simulated. They differ in the log they are given (own-log.ts, worlds/postgres.ts, sim/jobs) and in who implements the ports.
//
//   log, leadership, history ──▶ journal ──▶ jobs, keys, certificates, events ──▶ the API
//                                   └──▶ feeder ──▶ views, meter

import type { Arrivals } from "../../ports/mesh/arrivals.ts";
import type { MeshSeen } from "../../core/health/mesh.ts";
import type { TransactionsSeen } from "../../core/health/transactions.ts";
import { meshSeen } from "./mesh-stats.ts";
import type { JobsParts } from "../../api/index.ts";
import { JobsFeeder, type JobsFeederOptions } from "../../controller/jobs/feeder.ts";
import { JobsService, type JobsServiceOptions } from "../../controller/jobs/jobs.ts";
import { JobsMeter } from "../../controller/jobs/meter.ts";
import type { ReplayHistory } from "../../controller/jobs/replay.ts";
import { type EventHistory, EventsService } from "../../controller/journal/events.ts";
import { JournalService } from "../../controller/journal/service.ts";
import type { HistoryGuard } from "../../controller/mesh/state/history-guard.ts";
import type { SiteJournal } from "../../controller/journal/site-journal.ts";
import { CertificatesService, type CertificatesServiceOptions } from "../../controller/keys/certificates.ts";
import { KeysService } from "../../controller/keys/keys.ts";
import { ReceiptsService, type ReceiptsServiceOptions } from "../../controller/mesh/receipts/receipts.ts";
import { type OwnController, standalone } from "../../controller/mesh/own/own-view.ts";
import { RegistryService } from "../../controller/mesh/registry.ts";
import { noScopes } from "../../controller/scopes/site-scopes.ts";
import { StateService } from "../../controller/state/state.ts";
import type { TransactionsService } from "../../controller/transactions/transactions.ts";
import { noValues } from "../../controller/values/site-values.ts";
import type { TenureError } from "../../core/kit/errors.ts";
import type { SigningHeld } from "../../core/health/index.ts";
import type { Random } from "../../core/kit/random.ts";
import type { LineState } from "../../core/mesh/model.ts";
import type { StateFold } from "../../core/state/index.ts";
import type { Archive } from "../../logs/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Controllers } from "../../ports/mesh/controllers.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Leadership } from "../../ports/leadership.ts";
import type { Log } from "../../ports/log.ts";
import type { Logger } from "../../ports/logger.ts";
import type { MeshLines } from "../../ports/mesh/lines.ts";
import type { MeshLinks } from "../../ports/mesh/links.ts";
import type { Scopes } from "../../ports/scopes.ts";
import type { Values, ValuesStats } from "../../ports/values.ts";
import type { JobsServerStats } from "../../ports/server-stats.ts";
import type { VerifySignature } from "../../ports/signatures.ts";
import type { Views } from "../../ports/views.ts";
import { islandOf } from "./island.ts";
import { assembleLinks, foreignLines, type LinksWorld } from "./links.ts";
import { assembleMesh, authorOf, keepLines, type LineLog } from "./mesh.ts";
import { type AssembledState, assembleMeshState, keptArrivals, type MeshStateWorld } from "./mesh-state.ts";
import { type ArchiveCounted, jobsStats } from "./stats.ts";

/** What every part of a server takes of the world. */
export interface NodeWorld {
  readonly clock: Clock;
  readonly digest: Digest;
  readonly random: Random;
  readonly logger: Logger;
}

/** What the services take next to that. */
export interface ServicesWorld extends NodeWorld, Pick<JobsServiceOptions, "newId" | "newJobId" | "nextFire"> {
  readonly views: NodeViews;
  /** Of this node itself; undefined: it has none. */
  readonly worker: string | undefined;
  readonly putJobsMax?: JobsFeederOptions["putJobsMax"];
  /** Undefined: it takes part in no mesh. */
  readonly mesh?: Pick<ReceiptsServiceOptions, "maxSkewMs"> | undefined;
  /** Undefined: it calls no other site, and none may call it. */
  readonly links?: LinksWorld | undefined;
  /** Undefined: nothing of other sites is shown. */
  readonly meshState?: MeshStateWorld | undefined;
  /** This site, as others know it. */
  readonly site: SiteWorld;
}

export interface SiteWorld extends Omit<OwnController, "controllerId"> {
  /** Which is the controller id too, until one is written. */
  readonly clusterId: string;
  readonly verify: VerifySignature;
  readonly mesh: MeshSettings;
}

export interface MeshSettings {
  readonly mode: "standalone" | "distributed";
  readonly registrationTtlMs: number;
  readonly expirationCheckIntervalMs: number;
}

export interface NodeViews extends Views {
  /** What was kept is gone, or a part of it. */
  onReset(listener: () => void): void;
}

/** A log, who leads in it, and its history. */
export interface NodeLog {
  /** Whose events they are. Read when a reign begins. */
  readonly author: string;
  readonly journal: { readonly log: Log; readonly fold: SiteJournal };
  /** Scopes and values; null: other processes keep none here. */
  readonly state: { readonly log: Log; readonly fold: StateFold } | null;
  /** Pages of other sites; null: they can't be kept here. */
  readonly receipts: NodeReceipts | null;
  readonly leadership: Leadership;
  readonly history: EventHistory & ReplayHistory;
  /** The same where it is an archive of this node's. */
  readonly eventArchive?: Archive | undefined;
  /** What the last replay of the merged state has found, for this node's alerts. */
  watchReplay?(problem: () => string | null): void;
  /** Why nothing of the own line is given out, for this node's alerts. */
  watchSigning?(held: () => SigningHeld | null): void;
  /** What this node sees of other sites, for its alerts. */
  watchMesh?(seen: () => MeshSeen | null): void;
  /** The same of its island's transactions. */
  watchTransactions?(seen: () => TransactionsSeen): void;
  /** Said once, by whoever assembles the node: before that nothing of the history goes. Null: whatever is older than it is kept may. */
  guardHistory?(guard: HistoryGuard | null): void;
  /** Something of it was found to be lost, or is there again. */
  onHistoryChanged?(listener: () => void): void;
  /** The time of day, where it is agreed on. */
  believedMs(): number | null;
  /** A cluster that was restored paused; a site on Postgres never is. */
  readonly pausing?: { readonly isPaused: boolean; onResumed(listener: () => void): void } | undefined;
  /** Why nothing new is taken; null: it is. */
  readonly refusesJobs: () => TenureError | null;
  readonly refusesState?: (() => TenureError | null) | undefined;
  readonly unready: CertificatesServiceOptions["unready"];
  /** The same of records of values. */
  readonly unreadyForValues?: (() => readonly string[]) | undefined;
  /** The same of records of transactions. */
  readonly unreadyForTransactions?: (() => readonly string[]) | undefined;
  /** Nodes that are not known to be of a release that reads records of the mesh: such a record would stop them. */
  readonly unreadyForMesh: () => readonly string[];
  /** Whoever was revoked must stay out after a restart too. */
  onRevoked?(): void;
  archive(): ArchiveCounted;
  /** What this site has of another site's line; absent: nothing of any. */
  lineState?(line: string): LineState | null;
  /** Of logs in which a site can have a line of its own. */
  readonly line?: LineLog | undefined;
}

/** The log of receipts, what it is folded into, and where receipts are kept. */
export interface NodeReceipts extends Pick<ReceiptsServiceOptions, "log" | "fold" | "unready" | "refuses"> {
  readonly archive: Archive;
}

export interface NodeServices {
  readonly parts: JobsParts & { readonly jobs: JobsService; readonly events: EventsService };
  readonly scopes: Scopes;
  readonly values: Values;
  /** This island's part in transactions; null: nodes on Postgres take part in none. */
  readonly transactions: TransactionsService | null;
  /** Undefined: the site is standalone. */
  readonly lines: MeshLines | undefined;
  readonly links: MeshLinks | undefined;
  readonly meshState: AssembledState | undefined;
  /** Undefined: nothing of another site ever arrived here. */
  readonly arrivals: () => Arrivals | undefined;
  /** Null: this site takes part in no mesh. */
  readonly receipts: ReceiptsService | null;
  stats(): JobsServerStats;
  /** Null: nodes on Postgres keep no values. */
  valuesStats(): ValuesStats | null;
  /** Answers nobody any more; the log and what is under it go on. */
  stop(): Promise<void>;
}

export function assembleNode(world: ServicesWorld, log: NodeLog): NodeServices {
  const { clock, digest, logger, views } = world;
  const { leadership, history, pausing } = log;
  const { fold } = log.journal;
  const isPaused = (): boolean => pausing?.isPaused ?? false;
  const state = stateOf(world, log, isPaused);
  const around = { clock, random: world.random.fork("jobs"), newId: world.newId };
  // After a new line that an operator asked for, another one of the same log.
  const author = (): string => authorOf(log.author, fold.controllers.registry.renewed);
  const journal = journalOf(log, around, author);
  const meshed = { ...around, journal, fold, author, loggedAuthor: () => log.author, digest, logger };
  keepLines(log.line, meshed);
  const jobs = jobsOf(world, log, { ...around, journal, isPaused });
  // Jobs of committed transactions; the calls to other islands come with the coordinator of the node.
  state?.transactions.attach({ jobs });
  const feeder = new JobsFeeder({ fold, views, history, clock, logger, putJobsMax: world.putJobsMax });
  views.onReset(() => feeder.restart());
  log.onHistoryChanged?.(() => feeder.historyChanged());
  const events = new EventsService({ journal: fold, history, digest });
  const keys = new KeysService({ fold: fold.keys, journal });
  const certificates = new CertificatesService({ fold: fold.certificates, journal, unready: log.unready });
  const site = siteOf(world, log, meshed, events);
  journal.serve(() => [feeder, site.meshState?.feeder].forEach((one) => one?.caughtUp()));
  for (const doors of [keys, certificates]) doors.onRevoked(() => log.onRevoked?.());
  const meter = new JobsMeter({ leadership, clock: { wallMs: () => log.believedMs() ?? clock.wallMs() } });
  const stopMeter = fold.follow(({ event }) => meter.applied(event));
  return {
    parts: { jobs, views, events, keys, certificates, controllers: site.controllers },
    scopes: state?.scopes ?? noScopes(),
    values: state?.values ?? noValues(),
    transactions: state?.transactions ?? null,
    lines: site.lines,
    links: site.links,
    meshState: site.meshState,
    arrivals: site.arrivals,
    receipts: site.receipts,
    valuesStats: () => state?.values.stats ?? null,
    stats: () => jobsStats({ jobs, feeder, meter, fold, events: events.head(), archive: log.archive() }),
    stop: async () => {
      site.close();
      journal.close();
      state?.close();
      site.receipts?.close();
      stopMeter();
      feeder.close();
      events.close();
      await site.meshState?.stop();
      await views.close();
    },
  };
}

function jobsOf(
  world: ServicesWorld,
  log: NodeLog,
  around: Pick<JobsServiceOptions, "clock" | "random" | "newId" | "journal" | "isPaused">,
): JobsService {
  const { digest, views } = world;
  const jobs = new JobsService({
    ...around,
    fold: log.journal.fold,
    digest,
    worker: world.worker,
    newJobId: world.newJobId,
    nextFire: world.nextFire,
    refusesNew: log.refusesJobs,
    find: (jobId) => views.get(jobId),
    expired: (nowMs, limit, after) => views.expired(nowMs, limit, after),
  });
  log.pausing?.onResumed(() => jobs.resumed());
  return jobs;
}

function journalOf(log: NodeLog, around: Pick<JobsServiceOptions, "clock" | "random" | "newId">, author: () => string) {
  const { leadership } = log;
  return new JournalService({
    ...around,
    log: log.journal.log,
    journal: log.journal.fold,
    get author() {
      return author();
    },
    leadership,
    believedMs: () => log.believedMs(),
  });
}

/** This site among other sites. Of one that is standalone only the registry is there. */
function siteOf(world: ServicesWorld, log: NodeLog, meshed: Parameters<typeof assembleMesh>[1], events: EventsService) {
  const { leadership } = log;
  const { journal } = meshed;
  const receipts = receiptsOf(world, log, journal);
  const foreign = foreignLines(world, log);
  const mesh = assembleMesh(log.line, meshed, {
    events,
    foreign,
    leads: () => leadership.epoch() !== null,
    lineState: (line) => log.lineState?.(line) ?? null,
  });
  if (mesh !== undefined) log.watchSigning?.(() => mesh.gate.alarm());
  const lines = mesh?.lines;
  const controllers = controllersOf(world, log, journal, (id) => links?.isLinked(id) ?? false);
  const links = assembleLinks(world, log, { journal, controllers, receipts, mesh, foreign });
  const { registry } = log.journal.fold.controllers;
  if (links !== undefined) log.watchMesh?.(() => meshSeen(registry, links, world.mesh?.maxSkewMs ?? 0));
  const meshState = assembleMeshState(world, log, { events, links, lines, leads: () => leadership.epoch() });
  log.guardHistory?.(meshState?.guard ?? null);
  return {
    controllers,
    receipts,
    lines,
    links,
    meshState,
    arrivals: meshState === undefined ? keptArrivals(world, log, events) : () => meshState.arrivals,
    close: (): void => {
      links?.close();
      mesh?.stop();
      foreign?.close();
      controllers.close();
    },
  };
}

function controllersOf(
  world: ServicesWorld,
  log: NodeLog,
  journal: JournalService,
  isLinked: (id: string) => boolean,
): Controllers & { close(): void } {
  const { clock, digest, site } = world;
  const { clusterId, name, url, version, verify, mesh } = site;
  const fold = log.journal.fold.controllers;
  const own: OwnController = {
    get controllerId() {
      return fold.registry.own?.controllerId ?? clusterId;
    },
    name,
    url,
    version,
  };
  const ttlMs = mesh.registrationTtlMs;
  if (mesh.mode === "standalone") return { ...standalone(own, ttlMs, clock), close: () => undefined };
  return new RegistryService({
    fold,
    journal,
    clock,
    digest,
    verify,
    own,
    ttlMs,
    checkMs: mesh.expirationCheckIntervalMs,
    lineState: (line) => log.lineState?.(line) ?? null,
    unready: log.unreadyForMesh,
    isLinked,
  });
}

function stateOf(world: ServicesWorld, log: NodeLog, isPaused: () => boolean): StateService | null {
  if (log.state === null) return null;
  const { clock, random } = world;
  const { log: own, fold: applied } = log.state;
  const { leadership, pausing, refusesState: refusesNew, unreadyForValues: unready, unreadyForTransactions } = log;
  const around = { leadership, clock, random: random.fork("scopes"), isPaused, refusesNew, unready };
  const state = new StateService({ log: own, applied, ...around, unreadyForTransactions, island: islandOf(world) });
  log.watchTransactions?.(() => state.transactions.stats());
  pausing?.onResumed(() => state.resumed());
  return state;
}

function receiptsOf(world: ServicesWorld, log: NodeLog, { time }: JournalService): ReceiptsService | null {
  if (world.mesh === undefined || log.receipts === null) return null;
  const { clock, random } = world;
  const { leadership } = log;
  const around = { clock, random: random.fork("receipts"), leadership, wallMs: () => time.wallMs() };
  return new ReceiptsService({ ...log.receipts, ...around, ...world.mesh });
}
