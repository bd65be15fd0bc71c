// The metrics of jobs, their events and what is made of them. Counters and times are those of what this node has committed as
// leader: over all nodes each job counts once. Gauges are of the state as this node has applied it: take one node's, or the
// largest, never the sum.

import { by, counter, gauge, histogram, labelled, type ServerMetric } from "./metric-kit.ts";

export const JOB_METRICS: readonly ServerMetric[] = [
  labelled("tenure_jobs", "gauge", "Jobs in memory, by state; finished ones for a while.", ({ jobs }) =>
    by("state", jobs.byState),
  ),
  counter("tenure_jobs_submitted_total", "Jobs that this node has taken as leader.", (s) => s.jobs.counts.submitted),
  counter(
    "tenure_jobs_leased_total",
    "Jobs that this node has given to agents as leader, each time.",
    (s) => s.jobs.counts.leased,
  ),
  labelled(
    "tenure_jobs_finished_total",
    "counter",
    "Jobs that were finished under this leader, by state.",
    ({ jobs }) => by("state", jobs.counts.finished),
  ),
  labelled(
    "tenure_jobs_retried_total",
    "counter",
    "Jobs that were sent round again under this leader, by what ended the attempt before.",
    ({ jobs }) => by("cause", jobs.counts.retried),
  ),
  histogram("tenure_job_commit_ms", "From a submission to its commit, on the leader.", (s) => s.jobs.counts.commitMs),
  histogram(
    "tenure_job_assigned_ms",
    "From a submission, or from when it may run, until its first assignment is committed.",
    (s) => s.jobs.counts.assignedMs,
  ),
  gauge("tenure_leases_waiting", "Agents whose call waits on this node for a job.", (s) => s.jobs.waitingPolls),
  gauge("tenure_agents_online", "Agents that the leader hears from.", (s) => s.jobs.agentsOnline),
  counter(
    "tenure_results_stale_total",
    "Results that this node has refused as STALE_EPOCH.",
    (s) => s.jobs.staleRejected,
  ),
  gauge(
    "tenure_idempotency_keys",
    "Idempotency keys whose answers are remembered.",
    (s) => s.jobs.idempotencyKeys.remembered,
  ),
  counter(
    "tenure_idempotency_keys_dropped_total",
    "Idempotency keys that went before their 24 hours were over, for want of room.",
    (s) => s.jobs.idempotencyKeys.droppedEarly,
  ),
  histogram(
    "tenure_schedule_lag_ms",
    "How long after its time a schedule fired under this leader.",
    (s) => s.jobs.counts.scheduleLagMs,
  ),
  gauge("tenure_events_first_sequence", "The first event that this node has.", (s) => s.jobs.events.first),
  gauge("tenure_events_last_sequence", "The last event that is applied here.", (s) => s.jobs.events.sequence),
  gauge("tenure_archive_bytes", "What the history of events takes on this disk.", (s) => s.jobs.archive.usedBytes),
  gauge("tenure_archive_quota_bytes", "What it may take; absent without a quota.", (s) => s.jobs.archive.quotaBytes),
  gauge(
    "tenure_archive_segments_missing",
    "Parts of the history that this node does not have and fetches from others.",
    (s) => s.jobs.archive.missingSegments,
  ),
  gauge(
    "tenure_archive_segments_lost",
    "Parts of the history that no member of the cluster has.",
    (s) => s.jobs.archive.lostSegments,
  ),
  gauge(
    "tenure_archive_unsynced_bytes",
    "Events that are in the log and not yet durable in the archive.",
    (s) => s.jobs.archive.unsyncedBytes,
  ),
  gauge(
    "tenure_views_lag_events",
    "Events that are applied and not yet in lists, searches and logs.",
    (s) => s.jobs.views.lagEvents,
  ),
  gauge("tenure_views_waiting", "Changes that wait to be put into the views.", (s) => s.jobs.views.waiting),
];
