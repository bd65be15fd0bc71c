// Rare states that a simulation of jobs must have been in to be worth anything: a campaign in which one of them stayed at
// zero proves less than it seems, and fails.

export const JOBS_PROBES = [
  "append-refused-and-rolled-back",
  "outcome-unknown",
  "unknown-but-committed",
  "not-leader-told",
  "repeated-idempotent-answer",
  "idempotency-mismatch-told",
  "refusal-told",
  "stale-result-told",
  "old-leader-epoch-told",
  "repeated-result",
  "lease-lost-told",
  "committed-told-by-renewal",
  "cancelled-told-by-renewal",
  "grant-too-old-to-trust",
  "given-to-a-waiting-poll",
  "lost-answer-taken-back",
  "stopped-with-an-answer-in-flight",
  "lease-expired",
  "attempt-timed-out",
  "running-job-cancelled",
  "retried-by-hand",
  "concurrency-limit-reached",
  "agent-came-back",
  "old-session-refused",
  "old-agent-epoch-refused",
  "name-taken-often",
  "agent-removed",
  "failover",
  "snapshot-restored",
  "snapshot-amid-commands",
  "job-forgotten",
  "missed-events-read",
  "missed-events-not-there-yet",
  "leader-paused",
  "worker-started",
  "worker-killed",
  "worker-survived",
  "not-cleared-in-time",
  "controller-lost",
  "hung-controller-killed",
  "supervisor-gave-up",
  "stopped-in-order",
  "successor-emptied",
  "missed-time-fired",
  "caught-up-by-two-leaders",
  "oldest-missed-times-left-out",
  "clock-found-off",
  "clocks-disagreed",
  "leader-found-off",
  "nobody-for-days",
  "all-clocks-jumped",
] as const;

export type JobsProbe = (typeof JOBS_PROBES)[number];
export type JobsProbeCounts = Partial<Record<JobsProbe, number>>;

export function reached(counts: JobsProbeCounts, probe: JobsProbe): void {
  counts[probe] = (counts[probe] ?? 0) + 1;
}
