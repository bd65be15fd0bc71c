// Everything about jobs on one server: the archive of events, the views, the service and what the API is in front of.

import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { JobsParts } from "../../../api/index.ts";
import type { ServerConfig } from "../../../contract/index.ts";
import { CertificatesService } from "../../../controller/keys/certificates.ts";
import type { ClusterMachine } from "../../../controller/cluster/cluster-machine.ts";
import { membersBelow } from "../../../controller/cluster/cluster-view.ts";
import { EventsService } from "../../../controller/journal/events.ts";
import { JobsFeeder } from "../../../controller/jobs/feeder.ts";
import { JobsMeter } from "../../../controller/jobs/meter.ts";
import { JobsService } from "../../../controller/jobs/jobs.ts";
import { KeysService } from "../../../controller/keys/keys.ts";
import { JournalService } from "../../../controller/journal/service.ts";
import { openViews } from "../../../drivers/sqlite/index.ts";
import { systemClock } from "../../../drivers/system/clock.ts";
import { systemDigest } from "../../../drivers/system/digest.ts";
import { newJobId } from "../../../drivers/system/ids.ts";
import { PROTOCOL_OF_REVOCATIONS } from "../../../drivers/wire/index.ts";
import type { Archive, MissingHistory, SegmentFetcher } from "../../../logs/index.ts";
import type { Clearance } from "../../../ports/clearance.ts";
import type { Leadership } from "../../../ports/leadership.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { JobsServerStats } from "../../../ports/server-stats.ts";
import type { ConsensusNode } from "./consensus.ts";
import { diskRefusal } from "./guards.ts";
import { exchangeHistory, historyRefusal, retainHistory } from "./history.ts";
import type { ServerMachine } from "./machine.ts";
import { nextFire } from "./schedules.ts";
import { jobsStats } from "./stats.ts";

const VIEWS_FILE = "views.sqlite";

export interface JobsNodeOptions {
  readonly consensus: ConsensusNode;
  readonly jobs: ServerMachine["jobs"];
  readonly archive: Archive;
  readonly leadership: Leadership;
  /** The time of day, where it is agreed on. */
  readonly believedMs: () => number | null;
  /** Says whether the cluster is paused. */
  readonly machine: Pick<ClusterMachine, "isPaused" | "onResumed">;
  /** Of this node itself. */
  readonly worker: string | undefined;
  readonly clearance: Clearance | undefined;
  readonly config: Pick<ServerConfig, "dataDir" | "history">;
  readonly logger: Logger;
}

export interface JobsNode {
  readonly parts: JobsParts & { readonly jobs: JobsService };
  /** What was fetched from the other nodes. */
  readonly fetched: () => SegmentFetcher["counts"];
  /** What this node lacks of the history. */
  readonly lacked: () => MissingHistory;
  stats(): JobsServerStats;
  stop(): Promise<void>;
}

export async function startJobs(options: JobsNodeOptions): Promise<JobsNode> {
  const { consensus, leadership, archive, machine, config, logger } = options;
  const { log, fold } = options.jobs;
  const made: { feeder?: JobsFeeder } = {};
  const views = await openViews({
    path: join(config.dataDir, VIEWS_FILE),
    clusterId: consensus.clusterId,
    logger,
    onReset: () => made.feeder?.restart(),
  });
  const around = { clock: systemClock, random: consensus.random.fork("jobs"), newId: randomUUID };
  // A recovery has another cluster id, and so another author (design D13).
  const author = consensus.clusterId;
  const { believedMs } = options;
  const journal = new JournalService({ ...around, log, journal: fold, author, leadership, believedMs });
  const jobs = new JobsService({
    ...around,
    journal,
    fold,
    digest: systemDigest,
    worker: options.worker,
    newJobId,
    nextFire,
    isPaused: () => machine.isPaused,
    refusesNew: () => diskRefusal(consensus.directory) ?? historyRefusal(archive),
    find: (jobId) => views.get(jobId),
    expired: (nowMs, limit, after) => views.expired(nowMs, limit, after),
  });
  machine.onResumed(() => jobs.resumed());
  const feeder = new JobsFeeder({ fold, views, history: archive, clock: systemClock, logger });
  made.feeder = feeder;
  const events = new EventsService({ journal: fold, history: archive, digest: systemDigest });
  const keys = new KeysService({ fold: fold.keys, journal });
  const certificates = new CertificatesService({
    fold: fold.certificates,
    journal,
    unready: () => membersBelow(PROTOCOL_OF_REVOCATIONS, consensus.wire, consensus.engine.status()),
  });
  for (const doors of [keys, certificates]) doors.onRevoked(() => saveSoon(consensus));
  const meter = new JobsMeter({ leadership, clock: { wallMs: () => options.believedMs() ?? systemClock.wallMs() } });
  const stopMeter = fold.follow(({ event }) => meter.applied(event));
  const fetcher = exchangeHistory(consensus, archive, logger, {
    clearance: options.clearance,
    changed: () => feeder.historyChanged(),
  });
  const isPaused = (): boolean => machine.isPaused;
  const retention = retainHistory(archive, config.history.keepDays, { isPaused, logger });
  return {
    parts: { jobs, views, events, keys, certificates },
    fetched: () => fetcher.counts,
    lacked: () => fetcher.standing,
    stats: () => jobsStats({ jobs, feeder, meter, fold, events: events.head(), archive: archive.stats() }),
    stop: async () => {
      journal.close();
      stopMeter();
      feeder.close();
      events.close();
      await fetcher.stop();
      await retention.stop();
      await views.close();
    },
  };
}

/**
 * A node that is started where nobody leads knows what its last snapshot says, and not what of its log is committed: whoever was
 * revoked would be let in again. In the turn after it was applied, or the snapshot would be of before.
 */
function saveSoon({ engine }: ConsensusNode): void {
  systemClock.setTimer(systemClock.monotonicMs(), () => void engine.saveSnapshot());
}
