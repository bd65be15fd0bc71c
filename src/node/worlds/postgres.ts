// One server of a site on Postgres as an object: every part made and joined, started and stopped in order. The log is the
// database's, and so is the word who leads; what lies in the data directory is a copy that can be deleted.
//
//   data directory ──▶ known in the database ──▶ log read ──▶ jobs ──▶ API listens ──▶ campaigns
//   stop: leadership let go ──▶ API answers what is under way ──▶ jobs ──▶ log ──▶ forgotten in the database
//
// Sessions of one node: its name, the log, its appends (also before it leads: nobody waits for a session then), who leads, the
// queue of those who want to; a leader has one more, for the inbox.

import { randomUUID } from "node:crypto";
import type { Api, ApiTls } from "../../api/index.ts";
import { showAddress, type ServerConfig } from "../../contract/index.ts";
import { ClearedLeadership } from "../../controller/leadership/cleared-leadership.ts";
import { ElectorLeadership } from "../../controller/leadership/elector-leadership.ts";
import { SiteJournal } from "../../controller/journal/site-journal.ts";
import { SiteCluster } from "../../controller/cluster/site-cluster.ts";
import { SNAPSHOT_AFTER_ENTRIES } from "../../core/kit/limits.ts";
import { seededRandom, type Random } from "../../core/kit/random.ts";
import { trustMs } from "../../core/trust/window.ts";
import { openDataDirectory, type DataDirectory } from "../../drivers/disk/index.ts";
import { urlDriver } from "../../drivers/postgres/index.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import { startLoopMonitor } from "../../drivers/telemetry/index.ts";
import { type PostgresSettings, settingsOf } from "../../electors/postgres/index.ts";
import { PostgresDesk } from "../../postgres/desk.ts";
import { lockKeyOf } from "../../postgres/lock-key.ts";
import { createElector } from "../../entry/index.ts";
import { postgres, type PostgresOptions } from "../../entry/postgres.ts";
import { PostgresLog, PostgresNodes } from "../../logs/index.ts";
import type { Elector } from "../../ports/elector.ts";
import type { Leadership } from "../../ports/leadership.ts";
import { apiTls, apiUrlOf, openApi, reloadApi, ShownCertificates } from "./api.ts";
import type { ServerNode, ServerNodeOptions } from "./embedded.ts";
import type { NodeServices } from "../assembly/assemble.ts";
import { LOG, startSiteJobs } from "./postgres-jobs.ts";
import { siteStats } from "./postgres-stats.ts";
import { Closing, failureOf } from "./system.ts";

export interface PostgresNodeOptions extends ServerNodeOptions {
  readonly postgres: PostgresOptions<never> & { readonly url: string };
  /** Whether it campaigns at all. */
  readonly enabled: boolean;
}

/** What every part of a node on Postgres is made with. */
export interface Site {
  readonly config: ServerConfig;
  readonly options: PostgresNodeOptions;
  readonly settings: PostgresSettings;
  readonly random: Random;
  /** Of this process. */
  readonly instance: string;
  readonly url: string;
  readonly certificates: ShownCertificates;
  readonly desk: (purpose: string) => PostgresDesk;
  readonly fail: (error: unknown) => void;
}

export async function startPostgresNode(
  config: ServerConfig,
  options: PostgresNodeOptions,
): Promise<Pick<ServerNode, "reload" | "stop"> & { readonly cluster: SiteCluster; readonly apiUrl: string }> {
  // First: what can't be used is reported before anything is opened.
  const tls = apiTls(config);
  const { fail, shownBy } = failureOf(options.onFatal);
  const site = siteOf(config, options, fail);
  const directory = await openDataDirectory(config.dataDir, { minFreeBytes: config.disk.minFreeBytes });
  const closing = new Closing();
  closing.push(() => directory.close());
  try {
    const parts = await openParts(site, directory, closing);
    const { cluster } = parts;
    shownBy(cluster);
    const api = await openSiteApi(site, parts, directory, tls, closing);
    closing.push(() => api.stop());
    site.certificates.opened(api);
    const address = await api.listen(config.api.listen);
    options.logs.logger.info(
      { event: "listening", api: showAddress(address), backend: site.desk("").where, site: parts.siteId },
      "the node is up",
    );
    cluster.start();
    parts.start();
    return assemble(site, parts, api, closing);
  } catch (error) {
    return await closing.because(error);
  }
}

function siteOf(config: ServerConfig, options: PostgresNodeOptions, fail: Site["fail"]): Site {
  const settings = settingsOf(options.postgres);
  const driver = urlDriver(options.postgres.url, "tenure");
  return {
    config,
    options,
    settings,
    random: seededRandom(randomUUID()),
    instance: randomUUID().slice(0, 8),
    url: apiUrlOf(config, config.api.listen),
    certificates: new ShownCertificates(() => null),
    desk: (purpose) => new PostgresDesk(driver, systemClock, settings, purpose),
    fail,
  };
}

/** Who asks for leadership, and what comes of it. */
interface Campaigner {
  readonly elector: Elector;
  readonly leadership: Leadership;
  readonly campaign: ElectorLeadership;
  start(): void;
}

interface Parts extends Campaigner {
  readonly siteId: string;
  readonly log: PostgresLog;
  readonly nodes: PostgresNodes;
  readonly cluster: SiteCluster;
  readonly services: NodeServices;
}

async function openParts(site: Site, directory: DataDirectory, closing: Closing): Promise<Parts> {
  const { config, options, settings, random, instance, url, certificates, fail } = site;
  const { logger } = options.logs;
  const { nodeId } = config;
  const fold = new SiteJournal(systemDigest);
  const log = new PostgresLog({
    log: LOG,
    fold,
    desk: site.desk("the jobs"),
    clock: systemClock,
    random: random.fork("log"),
    logger,
    schema: settings.schema,
    // Nothing is deleted: the table is the archive.
    snapshots: { everyRecords: config.snapshots.afterEntries ?? SNAPSHOT_AFTER_ENTRIES },
    isHot: true,
    onFatal: fail,
  });
  const nodes = new PostgresNodes({
    log: LOG,
    desk: site.desk("the nodes"),
    clock: systemClock,
    random: random.fork("nodes"),
    logger,
    schema: settings.schema,
    nodeId,
    instance,
    url,
    version: options.version,
    nameKey: lockKeyOf(`${scopeOf(settings)}/node/${nodeId}`, (bytes) => systemDigest.sha256(bytes)).toString(),
    applied: () => log.head().position,
    onFatal: fail,
  });
  closing.push(() => nodes.leave());
  // Whoever stops a node that still waits for its database need not wait too.
  const giveUp = (): void => void Promise.all([nodes.leave(), log.close()]);
  options.signal?.addEventListener("abort", giveUp, { once: true });
  const siteId = await nodes.join();
  closing.push(() => log.close());
  await log.start();
  options.signal?.removeEventListener("abort", giveUp);
  const campaigner = campaignerOf(site, log);
  const { elector, leadership, campaign } = campaigner;
  closing.push(() => elector.close());
  const services = await startSiteJobs(site, { siteId, log, fold, leadership, nodes });
  closing.push(() => services.stop());
  const cluster = new SiteCluster({
    siteId,
    nodeId,
    instance,
    version: options.version,
    url,
    clock: systemClock,
    elector,
    leadership,
    campaign,
    trustMs: trustMs(settings.timing),
    log,
    nodes,
    disk: directory,
    certificates: () => certificates.ends(),
    onDrain: (isWanted) => options.clearance?.drained(isWanted),
  });
  return { ...campaigner, siteId, log, nodes, cluster, services };
}

/** Advisory locks are a database's: two sites in two schemas of one are two scopes. */
function scopeOf({ schema }: PostgresSettings): string {
  return `tenure/site/${schema}/${LOG}`;
}

function campaignerOf(site: Site, log: PostgresLog): Campaigner {
  const { config, options, url, instance } = site;
  const { logger } = options.logs;
  const elector = createElector({
    scope: scopeOf(site.settings),
    backend: postgres(options.postgres),
    identity: config.nodeId,
    metadata: { url, instance },
    enabled: options.enabled,
    logger,
    onTransition: () => campaign.look(),
  });
  const confirm = (epoch: number): Promise<boolean> => log.confirm(epoch);
  const campaign = new ElectorLeadership({ elector, clock: systemClock, logger, confirm });
  const { clearance } = options;
  if (clearance === undefined) return { elector, leadership: campaign, campaign, start: () => campaign.start() };
  const giveUp = (): void => campaign.giveUp();
  const leadership = new ClearedLeadership({ given: campaign, clearance, clock: systemClock, logger, giveUp });
  const start = (): void => {
    leadership.start();
    campaign.start();
  };
  return { elector, leadership, campaign, start };
}

async function openSiteApi(
  { config, options }: Site,
  { siteId, cluster, services, log, nodes, elector }: Parts,
  directory: DataDirectory,
  tls: ApiTls | null,
  closing: Closing,
): Promise<Api> {
  const loop = startLoopMonitor();
  closing.push(() => loop.stop());
  return openApi(config, {
    clusterId: siteId,
    cluster,
    services,
    server: () => siteStats({ cluster, nodes, log, elector, directory, loop }),
    options,
    tls,
  });
}

function assemble({ config, url, options }: Site, { cluster, campaign }: Parts, api: Api, closing: Closing) {
  let stopping: Promise<void> | null = null;
  const stop = async (): Promise<void> => {
    cluster.setDraining(true);
    // The next one leads while this one still answers what is under way.
    await campaign.stop();
    cluster.stop();
    await closing.all();
  };
  return {
    cluster,
    apiUrl: url,
    reload: () => reloadApi(config, api, options.logs.logger),
    stop: () => (stopping ??= stop()),
  };
}
