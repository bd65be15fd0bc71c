// Rare states that a campaign of Raft clusters must have been in (kernel/probes.ts).

export { reached } from "../kernel/index.ts";

export const PROBES = [
  "prior-term-entry-overwritten",
  "joint-interrupted-by-crash",
  "leader-elected-in-joint",
  "snapshot-during-transfer",
  "snapshot-restored",
  "split-vote",
  "double-vote-refused",
  "fast-detection-won",
  "living-leader-taken-for-gone",
  "quorum-lost-step-down",
  "disk-stall-step-down",
  "removed-leader-stepped-down",
  "transfer-done",
  "transfer-failed",
  "forced-transfer-refused",
  "unwilling-leader-yielded",
  "lost-disk-replaced",
  "learner-promoted",
  "membership-changed",
  "torn-tail-cut",
  "started-with-reserved-zeros",
  "damage-set-aside",
  "fsync-error-ended-process",
  "wrong-disk-refused",
  "garbage-refused",
  "stranger-refused",
  "removed-disk-refused",
  "revenant-refused",
  "term-flood-bounded",
  "member-vouched-for",
  "uncommitted-limit-refused",
  "outcome-unknown-but-committed",
  "read-by-round",
  "read-by-lease",
  "read-on-follower",
  "loop-stalled",
  "process-paused-while-leading",
] as const;

export type Probe = (typeof PROBES)[number];
export type ProbeCounts = Partial<Record<Probe, number>>;
