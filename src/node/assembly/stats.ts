// All that one server counts of its jobs, gathered at one moment.

import type { JobsFeeder } from "../../controller/jobs/feeder.ts";
import type { JobsMeter } from "../../controller/jobs/meter.ts";
import type { JobsService } from "../../controller/jobs/jobs.ts";
import type { Archive } from "../../logs/index.ts";
import type { EventsHead } from "../../ports/events.ts";
import type { JobsServerStats } from "../../ports/server-stats.ts";

export type ArchiveCounted = Pick<
  ReturnType<Archive["stats"]>,
  "usedBytes" | "quotaBytes" | "missingSegments" | "lostSegments" | "unsyncedBytes"
>;

interface JobsCounted {
  readonly jobs: Pick<JobsService, "stats" | "waiting">;
  readonly feeder: Pick<JobsFeeder, "position" | "waiting">;
  readonly meter: Pick<JobsMeter, "counts">;
  readonly fold: { readonly book: { readonly keys: JobsServerStats["idempotencyKeys"] } };
  readonly events: EventsHead;
  readonly archive: ArchiveCounted;
}

export function jobsStats({ jobs, feeder, meter, fold, events, archive }: JobsCounted): JobsServerStats {
  const { byState, agentsOnline, staleRejected } = jobs.stats();
  const { usedBytes, quotaBytes, missingSegments, lostSegments, unsyncedBytes } = archive;
  return {
    byState,
    counts: meter.counts(),
    waitingPolls: jobs.waiting,
    agentsOnline,
    staleRejected,
    idempotencyKeys: fold.book.keys,
    events,
    archive: { usedBytes, quotaBytes, missingSegments, lostSegments, unsyncedBytes },
    views: { lagEvents: Math.max(0, events.sequence - feeder.position), waiting: feeder.waiting },
  };
}
