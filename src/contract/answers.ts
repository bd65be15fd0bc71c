// What the API answers, field by field: the tests hold every answer to it, and clients may rely on it. Names are those of
// ports/cluster.ts and ports/scopes.ts in snake_case.

import { Type } from "typebox";
import { RoleName } from "./roles.ts";
import { integer, nullable, oneOf, strict } from "./schema-kit.ts";

const Text = Type.String();
const Milliseconds = Type.Number({ minimum: 0 });
const RoleOfNode = oneOf("LEADER", "STANDBY", "DRAINING");

export const LeaderAnswer = strict({
  leader_id: Text,
  leader_address: nullable(Text),
  leader_url: nullable(Text),
  term: integer(0),
  node_id: Text,
});
export const RoleAnswer = strict({
  node_id: Text,
  role: RoleOfNode,
  leader_id: nullable(Text),
  leader_url: nullable(Text),
  leader_epoch: nullable(integer(0)),
});

export const LivezAnswer = strict({ status: oneOf("ok") });
export const ReadyzAnswer = strict({ status: oneOf("ok", "not_ready"), reason: nullable(Text) });

const Alert = strict({
  name: oneOf(
    "follower_unresponsive",
    "leader_suspect",
    "leader_unavailable",
    "election_failed",
    "multiple_leaders",
    "state_diverged",
    "failover_rate_high",
    "disk_full",
    "disk_low",
    "history_quota_near",
    "history_quota_used",
    "history_incomplete",
    "history_lost",
    "loop_stalled",
    "leader_unknown",
    "node_removed",
    "disk_cloned",
    "peer_unauthenticated",
    "certificate_ends",
    "clock_skewed",
    "clocks_disagree",
    "mesh_replay_differs",
    "mesh_signing_held",
    "mesh_peer_unreachable",
    "mesh_peer_lagging",
    "mesh_clock_skew",
    "mesh_fork",
    "tc_no_leader",
    "tc_voter_missing",
    "tc_cluster_mismatch",
    "tc_identity_shared",
    "txn_in_doubt",
    "url_shared",
    "cluster_paused",
  ),
  severity: oneOf("warning", "critical"),
  message: Text,
  since_wall_ms: Milliseconds,
  node_id: nullable(Text),
});
export const HealthzAnswer = strict({
  status: oneOf("ok", "degraded", "critical"),
  node_id: Text,
  role: RoleOfNode,
  is_ready: Type.Boolean(),
  alerts: Type.Array(Alert),
  anonymous_roles: Type.Array(RoleName),
});

const Member = strict({
  node_id: Text,
  incarnation: Text,
  kind: oneOf("voter", "learner", "leaving", "joining", "node"),
  is_leader: Type.Boolean(),
  address: nullable(Text),
  url: nullable(Text),
  is_connected: Type.Boolean(),
  refusal: nullable(Text),
  progress: nullable(
    strict({
      match: integer(0),
      next: integer(0),
      lag: integer(0),
      state: oneOf("probe", "replicate", "snapshot"),
      last_contact_ms: Milliseconds,
      healthy: Type.Boolean(),
    }),
  ),
});
const Election = strict({
  term: integer(0),
  stage: oneOf("pre-vote", "vote"),
  reason: oneOf("timeout", "leader-gone", "transfer", "requested"),
  candidate: Text,
  candidates: Type.Array(Text),
  votes: Type.Array(strict({ voter: Text, granted: Type.Boolean() })),
  started_at_ms: Type.Number(),
  duration_ms: Milliseconds,
  result: oneOf("won", "lost", "timed-out", "superseded"),
  repeated: integer(1),
});
const SNAPSHOT = { index: integer(0), term: integer(0), bytes: integer(0) };
const SnapshotAnswer = strict(SNAPSHOT);
/** `role` of the node that saved it: who may not read the cluster's view learns here which node is the leader. */
export const SavedSnapshotAnswer = strict({ ...SNAPSHOT, role: RoleOfNode });

export const ClusterAnswer = strict({
  cluster_id: Text,
  node_id: Text,
  incarnation: Text,
  version: Text,
  backend: oneOf("raft", "postgres"),
  role: RoleOfNode,
  term: integer(0),
  leader: nullable(strict({ node_id: Text, address: nullable(Text), url: nullable(Text) })),
  commit: integer(0),
  applied: integer(0),
  first_index: integer(0),
  last_index: integer(0),
  staleness_ms: nullable(Milliseconds),
  is_joint: Type.Boolean(),
  members: Type.Array(Member),
  elections: Type.Array(Election),
  alerts: Type.Array(Alert),
  snapshot: nullable(SnapshotAnswer),
  disk: strict({ state: oneOf("ok", "low", "full", "stalled"), free_bytes: nullable(Type.Number()) }),
  ancestors: Type.Array(Text),
  is_paused: Type.Boolean(),
  is_draining: Type.Boolean(),
  is_coordinator: Type.Boolean(),
  is_ready: Type.Boolean(),
  not_ready_reason: nullable(Text),
});

export const ResumeAnswer = strict({ cluster_id: Text, is_paused: Type.Boolean() });
/** `at_ms`: the node's wall clock, which `tenure_backup_last_timestamp_seconds` shows from here on. */
export const StoredSnapshotAnswer = strict({ index: integer(1), at_ms: Milliseconds });
export const DiagnosticsAnswer = strict({
  node_id: Text,
  version: Text,
  runtime: Text,
  uptime_ms: Milliseconds,
  rss_bytes: integer(0),
  /** By the fields of the configuration file. */
  config: Type.Record(Type.String(), Type.Unknown()),
  /** Oldest first, each as it was written. */
  log_lines: Type.Array(Text),
});

export const DrainNodeAnswer = strict({
  node_id: Text,
  is_draining: Type.Boolean(),
  role: RoleOfNode,
  leader_id: nullable(Text),
  leader_epoch: nullable(integer(0)),
});
export const TransferAnswer = strict({
  success: Type.Boolean(),
  message: Text,
  old_leader_id: Text,
  new_leader_id: nullable(Text),
});
export const MembersAnswer = strict({
  op: oneOf("add", "promote", "replace", "remove"),
  node_id: Text,
  message: Text,
  members: Type.Array(Member),
});
export const AskResignAnswer = strict({ epoch: nullable(integer(1)) });

export const AuditAnswer = strict({
  records: Type.Array(
    strict({
      at_ms: Milliseconds,
      node_id: Text,
      who: Text,
      how: oneOf("key", "certificate", "anonymous"),
      role: nullable(RoleName),
      address: Text,
      operation: Text,
      target: nullable(Text),
      forced: Type.Boolean(),
      outcome: Text,
      status: integer(100, 599),
      duration_ms: Milliseconds,
      request_id: Text,
    }),
  ),
});

const HOLDER = { epoch: integer(1), identity: Text, metadata: Type.Record(Text, Text) };
export const AcquireAnswer = Type.Union([
  strict({ granted: Type.Literal(true), epoch: integer(1), ttl_ms: integer(1) }),
  strict({ granted: Type.Literal(false), holder: nullable(strict(HOLDER)) }),
]);
export const RenewAnswer = strict({ epoch: integer(1), ttl_ms: integer(1), resign_requested: Type.Boolean() });
export const ResignAnswer = strict({});

export const ScopeAnswer = strict({
  scope: Text,
  epoch: integer(0),
  holder: nullable(
    strict({ ...HOLDER, ttl_ms: integer(1), acquired_at_ms: Type.Number(), resign_requested: Type.Boolean() }),
  ),
});
export const ScopesAnswer = strict({ scopes: Type.Array(ScopeAnswer), next: nullable(Text) });
export const HistoryAnswer = strict({
  transitions: Type.Array(
    strict({
      at_ms: Type.Number(),
      epoch: integer(1),
      identity: Text,
      reason: oneOf("acquired", "resigned", "expired", "forced"),
      held_ms: nullable(Milliseconds),
    }),
  ),
});
