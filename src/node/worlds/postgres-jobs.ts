// Everything about jobs on one node of a site on Postgres: the service over the database's log, the views next to it, the
// history that is the log's own table, and the inbox of `tenure_submit`.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { JobBody, shape, specOf } from "../../contract/index.ts";
import type { SiteJournal } from "../../controller/journal/site-journal.ts";
import { LogHistory } from "../../controller/journal/log-history.ts";
import { Submissions, type Submitted } from "../../controller/jobs/submissions.ts";
import { untilThere } from "../../controller/until-there.ts";
import { eventHashOf } from "../../core/events/index.ts";
import type { TakenJob } from "../../core/jobs/index.ts";
import { openViews, type SqliteViews } from "../../drivers/sqlite/index.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import { PostgresInbox, type PostgresLog, type PostgresNodes } from "../../logs/index.ts";
import type { Leadership } from "../../ports/leadership.ts";
import type { Site } from "./postgres.ts";
import { assembleNode, type NodeLog, type NodeServices } from "../assembly/assemble.ts";
import { siteWorld } from "./site.ts";
import { SYSTEM, VIEWS_FILE } from "./system.ts";
import { workerName } from "../../supervisor/index.ts";
import { parseJson } from "../../core/kit/parse-json.ts";
import { NODE_GONE_MS } from "./limits.ts";

export const LOG = "jobs";
/** Design D1: each timeline of the database begins a new block of epochs, also one that was numbered before (trap 38). */
const EPOCHS_PER_BLOCK = 2 ** 32;

export interface SiteLog {
  readonly siteId: string;
  readonly log: PostgresLog;
  readonly fold: SiteJournal;
  readonly leadership: Leadership;
  readonly nodes: Pick<PostgresNodes, "believedMs" | "all">;
}

export async function startSiteJobs(site: Site, line: SiteLog): Promise<NodeServices> {
  const { random, options } = site;
  const { logger } = options.logs;
  const views = await viewsBeside(site, line);
  const worker = isMoonlighting(site) ? workerName(site.config.nodeId) : undefined;
  const about = siteWorld(site.config, options.version, line.siteId, () => null);
  const services = assembleNode({ ...SYSTEM, random, logger, views, worker, site: about }, nodeLog(site, line));
  const submissions = new Submissions({
    leadership: line.leadership,
    open: () => inboxOf(site),
    read: takenJob,
    take: (found) => services.parts.jobs.take(found),
    clock: systemClock,
    logger,
  });
  return {
    ...services,
    stop: async () => {
      await submissions.close();
      await services.stop();
    },
  };
}

/** The table's size is the database's to report. */
const NOT_OURS = { usedBytes: 0, quotaBytes: null, missingSegments: 0, lostSegments: 0, unsyncedBytes: 0 };

function nodeLog({ options }: Site, { siteId, log, fold, leadership, nodes }: SiteLog): NodeLog {
  // Whoever was not heard for so long is no node of the site; one that comes back with an older release stops, and says why.
  const unready = (): string[] => {
    const others = nodes.all.filter(({ version }) => version !== options.version);
    return others.filter(({ silentMs }) => silentMs < NODE_GONE_MS).map(({ nodeId }) => nodeId);
  };
  return {
    // With the epoch that the reign has opened: a promoted standby is another author (design D13).
    get author() {
      return `${siteId}.${blockOf(log.head().epoch)}`;
    },
    journal: { log, fold },
    state: null,
    receipts: null,
    leadership,
    history: new LogHistory({ log, chain: () => fold.chain, digest: systemDigest, clock: systemClock }),
    believedMs: () => nodes.believedMs(),
    refusesJobs: () => null,
    unready,
    unreadyForMesh: unready,
    archive: () => NOT_OURS,
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
async function viewsBeside(site: Site, line: Line): Promise<SqliteViews> {
  const { logs, signal } = site.options;
  const { logger } = logs;
  const path = join(site.config.dataDir, VIEWS_FILE);
  const open = (): Promise<SqliteViews> => openViews({ path, clusterId: line.siteId, logger });
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

/** As the API would read the same: `options` has the fields of `POST /v1/jobs` next to kind and payload. */
function takenJob({ id, kind, payload, options, by }: Submitted): TakenJob {
  const body = { ...(parseJson(options) as object), kind, payload: parseJson(payload) };
  const checked = jobShape.check(body);
  const who = `postgres:${by}`;
  if (checked.ok) return { id, by: who, spec: specOf(checked.value), problem: null };
  const problem = checked.mistakes.map(({ field, message }) => `${field} ${message}`).join("; ");
  return { id, by: who, spec: specOf({ kind }), problem };
}
