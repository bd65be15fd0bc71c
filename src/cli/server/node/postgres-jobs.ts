// Everything about jobs on one node of a site on Postgres: the service over the database's log, the views beside it, the
// history that is the log's own table, and the inbox of `tenure_submit`.

import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { JobsParts } from "../../../api/index.ts";
import { JobBody, shape, specOf } from "../../../contract/index.ts";
import { CertificatesService } from "../../../controller/keys/certificates.ts";
import { EventsService } from "../../../controller/journal/events.ts";
import { JobsFeeder } from "../../../controller/jobs/feeder.ts";
import type { SiteJournal } from "../../../controller/journal/site-journal.ts";
import { JobsMeter } from "../../../controller/jobs/meter.ts";
import { JobsService } from "../../../controller/jobs/jobs.ts";
import { KeysService } from "../../../controller/keys/keys.ts";
import { JournalService } from "../../../controller/journal/service.ts";
import { LogHistory } from "../../../controller/journal/log-history.ts";
import { Submissions, type Submitted } from "../../../controller/jobs/submissions.ts";
import { untilThere } from "../../../controller/until-there.ts";
import { eventHashOf } from "../../../core/events/index.ts";
import type { TakenJob } from "../../../core/jobs/index.ts";
import { openViews, type SqliteViews } from "../../../drivers/sqlite/index.ts";
import { systemClock } from "../../../drivers/system/clock.ts";
import { systemDigest } from "../../../drivers/system/digest.ts";
import { newJobId } from "../../../drivers/system/ids.ts";
import { PostgresInbox, type PostgresLog, type PostgresNodes } from "../../../logs/index.ts";
import type { Leadership } from "../../../ports/leadership.ts";
import type { JobsServerStats } from "../../../ports/server-stats.ts";
import type { Site } from "./postgres.ts";
import { nextFire } from "./schedules.ts";
import { jobsStats } from "./stats.ts";
import { workerName } from "../supervised.ts";
import { parseJson } from "../../../core/kit/parse-json.ts";

export const LOG = "jobs";
const VIEWS_FILE = "views.sqlite";
const NODE_GONE_MS = 60_000;
/** Design D1: each timeline of the database begins a new block of epochs, also one that was numbered before (trap 38). */
const EPOCHS_PER_BLOCK = 2 ** 32;

export interface SiteLog {
  readonly siteId: string;
  readonly log: PostgresLog;
  readonly fold: SiteJournal;
  readonly leadership: Leadership;
  readonly nodes: Pick<PostgresNodes, "believedMs" | "all">;
}

export interface SiteJobs {
  readonly parts: JobsParts;
  stats(): JobsServerStats;
  stop(): Promise<void>;
}

export async function startSiteJobs(site: Site, { siteId, log, fold, leadership, nodes }: SiteLog): Promise<SiteJobs> {
  const { random, options } = site;
  const { logger } = options.logs;
  const made: { feeder?: JobsFeeder } = {};
  const views = await viewsBeside(site, { siteId, log, fold }, () => made.feeder?.restart());
  const around = { clock: systemClock, random: random.fork("jobs"), newId: randomUUID };
  const journal = new JournalService({
    ...around,
    log,
    journal: fold,
    // Asked when a reign begins, with the epoch that it has opened: a promoted standby is another author (design D13).
    get author() {
      return `${siteId}.${blockOf(log.head().epoch)}`;
    },
    leadership,
    believedMs: () => nodes.believedMs(),
  });
  const jobs = new JobsService({
    ...around,
    journal,
    fold,
    digest: systemDigest,
    worker: isMoonlighting(site) ? workerName(site.config.nodeId) : undefined,
    newJobId,
    nextFire,
    refusesNew: () => null,
    find: (jobId) => views.get(jobId),
    expired: (nowMs, limit, after) => views.expired(nowMs, limit, after),
  });
  const history = new LogHistory({ log, chain: () => fold.chain, digest: systemDigest, clock: systemClock });
  const feeder = new JobsFeeder({ fold, views, history, clock: systemClock, logger });
  made.feeder = feeder;
  const events = new EventsService({ journal: fold, history, digest: systemDigest });
  const keys = new KeysService({ fold: fold.keys, journal });
  const certificates = new CertificatesService({
    fold: fold.certificates,
    journal,
    // Whoever was not heard for so long is no node of the site; one that comes back with an older release stops, and says why.
    unready: () => {
      const others = nodes.all.filter(({ version }) => version !== options.version);
      return others.filter(({ silentMs }) => silentMs < NODE_GONE_MS).map(({ nodeId }) => nodeId);
    },
  });
  const meter = new JobsMeter({ leadership, clock: { wallMs: () => nodes.believedMs() ?? systemClock.wallMs() } });
  const stopMeter = fold.follow(({ event }) => meter.applied(event));
  const submissions = new Submissions({
    leadership,
    open: () => inboxOf(site),
    read: takenJob,
    take: (found) => jobs.take(found),
    clock: systemClock,
    logger,
  });
  // The table's size is the database's to tell.
  const archive = { usedBytes: 0, quotaBytes: null, missingSegments: 0, lostSegments: 0, unsyncedBytes: 0 };
  return {
    parts: { jobs, views, events, keys, certificates },
    stats: () => jobsStats({ jobs, feeder, meter, fold, events: events.head(), archive }),
    stop: async () => {
      await submissions.close();
      journal.close();
      stopMeter();
      feeder.close();
      events.close();
      await views.close();
    },
  };
}

function isMoonlighting({ config, options }: Site): boolean {
  return options.clearance !== undefined && config.agent.enabled;
}

function blockOf(epoch: number): number {
  return Math.floor((epoch - 1) / EPOCHS_PER_BLOCK) + 1;
}

type Line = Pick<SiteLog, "siteId" | "log" | "fold">;

/** Views of a history that the database has lost (a restored backup, a failover) are made anew. */
async function viewsBeside(site: Site, line: Line, onReset: () => void): Promise<SqliteViews> {
  const { logs, signal } = site.options;
  const { logger } = logs;
  const path = join(site.config.dataDir, VIEWS_FILE);
  const open = (): Promise<SqliteViews> => openViews({ path, clusterId: line.siteId, logger, onReset });
  const views = await open();
  if (await untilThere(() => isOfLine(views, line), systemClock, signal)) return views;
  logger.warn(
    { event: "views", log: line.fold.chain.sequence },
    "what this node has shown is not, or not all, in the log of the database: lists are made anew",
  );
  await views.close();
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
  return open();
}

/** Whether the log has the event that the views have seen last. */
async function isOfLine(views: SqliteViews, { log, fold }: Line): Promise<boolean> {
  const [position, seen] = await Promise.all([views.reached(), views.line()]).catch(() => [0, null] as const);
  if (position > fold.chain.sequence) return false;
  if (position === 0 || seen === null) return true;
  const [record] = await log.readStored(position, 1);
  return record === undefined || eventHashOf(record.data, systemDigest) === seen;
}

function inboxOf({ desk, random, options, settings }: Site): PostgresInbox {
  return new PostgresInbox({
    desk: desk("the inbox"),
    clock: systemClock,
    random: random.fork("inbox"),
    logger: options.logs.logger,
    schema: settings.schema,
    log: LOG,
  });
}

const jobShape = shape(JobBody);

/** As the API would read the same: `options` has the fields of `POST /v1/jobs` beside kind and payload. */
function takenJob({ id, kind, payload, options, by }: Submitted): TakenJob {
  const body = { ...(parseJson(options) as object), kind, payload: parseJson(payload) };
  const checked = jobShape.check(body);
  const who = `postgres:${by}`;
  if (checked.ok) return { id, by: who, spec: specOf(checked.value), problem: null };
  const problem = checked.mistakes.map(({ field, message }) => `${field} ${message}`).join("; ");
  return { id, by: who, spec: specOf({ kind }), problem };
}
