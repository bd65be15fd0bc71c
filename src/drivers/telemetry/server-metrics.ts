// The metrics of one server, by name: how each is read from what the server has counted. Numbers are read at the scrape and kept
// nowhere else. docs/reference/metrics.md explains each; a test compares both ways.

import { COORDINATOR_METRICS } from "./coordinator-metrics.ts";
import { JOB_METRICS } from "./job-metrics.ts";
import { MESH_METRICS } from "./mesh-metrics.ts";
import { TRANSACTION_METRICS } from "./transaction-metrics.ts";
import { VALUE_METRICS } from "./value-metrics.ts";
import { buckets, by, counter, gauge, histogram, labelled, type Sample, type ServerMetric } from "./metric-kit.ts";

export const SERVER_METRICS: readonly ServerMetric[] = [
  counter(
    "tenure_election_count",
    "Campaigns of this node that asked for votes.",
    (s) => s.server.health.electionsStarted,
  ),
  histogram(
    "tenure_election_duration_ms",
    "From the start of a campaign of this node until it was decided.",
    (s) => s.server.health.electionDurationMs,
  ),
  gauge(
    "tenure_election_success_rate",
    "Share of this node's elections that it won, over five minutes; absent without one.",
    (s) => s.server.health.electionSuccessRate,
  ),
  gauge(
    "tenure_clock_skew_seconds",
    "How far this node's clock is ahead of the one that is believed; absent where none is.",
    ({ server: { health } }) => (health.clockSkewMs === null ? null : health.clockSkewMs / 1_000),
  ),
  counter("tenure_failover_count", "Changes of leader that nobody had asked for.", (s) => s.server.health.failovers),
  labelled("tenure_leader_transfer_count", "counter", "Planned transfers, by result.", ({ server }) => [
    { labels: { result: "succeeded" }, value: server.health.transfers.succeeded },
    { labels: { result: "failed" }, value: server.health.transfers.failed },
  ]),
  counter(
    "tenure_split_brain_detected",
    "Two leaders in one term, or two states at one committed index.",
    (s) => s.server.health.splitBrains,
  ),
  labelled(
    "tenure_current_leader_id",
    "gauge",
    "1 for the leader that this node knows; absent without one.",
    ({ server }) => (server.leaderId === null ? [] : [{ labels: { leader_id: server.leaderId }, value: 1 }]),
  ),
  gauge("tenure_current_term", "The term that this node is in.", (s) => s.server.term),
  labelled("tenure_role", "gauge", "1 for the role that this node has, else 0.", ({ server }) =>
    (["LEADER", "STANDBY", "DRAINING"] as const).map((role) => ({
      labels: { role },
      value: server.role === role ? 1 : 0,
    })),
  ),
  gauge("tenure_commit_index", "The last log entry that is committed, as this node knows.", (s) => s.server.commit),
  gauge("tenure_applied_index", "The last log entry that is applied here.", (s) => s.server.applied),
  labelled("tenure_proposals_total", "counter", "Proposals to this node, by outcome.", ({ server }) =>
    (["committed", "refused", "unknown"] as const).map((outcome) => ({
      labels: { outcome },
      value: server.engine.proposals[outcome],
    })),
  ),
  histogram("tenure_commit_ms", "From a proposal to its application on the leader.", (s) => s.server.engine.commitMs),
  histogram("tenure_fsync_ms", "How long the disk took to make a write durable.", (s) => s.server.engine.fsyncMs),
  counter(
    "tenure_syncs_total",
    "Writes that were made durable; each may hold many entries.",
    (s) => s.server.engine.syncs,
  ),
  counter(
    "tenure_stalls_total",
    "Times that a timer of this node came 100 ms late or more.",
    (s) => s.server.engine.stalls,
  ),
  gauge(
    "tenure_election_strain_ms",
    "By how much this node waits longer than configured before it takes another for lost.",
    (s) => s.server.engine.strainMs,
  ),
  counter(
    "tenure_snapshots_saved_total",
    "Snapshots that this node has written.",
    (s) => s.server.engine.snapshotsSaved,
  ),
  counter(
    "tenure_snapshots_restored_total",
    "Snapshots of another node that this one has taken over.",
    (s) => s.server.engine.snapshotsRestored,
  ),
  gauge(
    "tenure_backup_last_timestamp_seconds",
    "When a snapshot of this node was last stored elsewhere, in seconds since 1970; 0: not since its start.",
    ({ lastBackupAtMs }) => (lastBackupAtMs === null ? null : Math.floor(lastBackupAtMs / 1_000)),
  ),
  histogram("tenure_loop_delay_ms", "How late a timer of the event loop was, sampled.", (s) => s.server.loopDelayMs),
  labelled(
    "tenure_loop_turn_seconds",
    "gauge",
    "How long turns of the event loop took in the last minute, by quantile; 1 is the longest.",
    ({ server: { loopTurns } }) => [
      { labels: { quantile: "0.99" }, value: loopTurns.p99Ms / 1_000 },
      { labels: { quantile: "1" }, value: loopTurns.longestMs / 1_000 },
    ],
  ),
  labelled("tenure_frames_total", "counter", "Frames between nodes, by direction.", ({ server }) => [
    { labels: { direction: "sent" }, value: server.wire.sentFrames },
    { labels: { direction: "received" }, value: server.wire.receivedFrames },
  ]),
  labelled("tenure_frame_bytes_total", "counter", "Bytes between nodes, by direction.", ({ server }) => [
    { labels: { direction: "sent" }, value: server.wire.sentBytes },
    { labels: { direction: "received" }, value: server.wire.receivedBytes },
  ]),
  labelled(
    "tenure_frames_dropped_total",
    "counter",
    "Messages that were not sent or not taken, by where.",
    ({ server }) => [
      { labels: { where: "wire" }, value: server.wire.droppedFrames },
      { labels: { where: "engine" }, value: server.engine.droppedFrames },
    ],
  ),
  counter("tenure_frames_refused_total", "Messages that made no sense.", (s) => s.server.engine.refusedFrames),
  counter("tenure_votes_limited_total", "Vote requests above a peer's rate.", (s) => s.server.engine.limitedVotes),
  gauge("tenure_peer_connections", "Connections to and from other nodes.", (s) => s.server.wire.connections),
  labelled(
    "tenure_peer_connections_refused_total",
    "counter",
    "Connections refused or ended for cause, by reason.",
    ({ server }) => by("reason", server.wire.refused),
  ),
  labelled(
    "tenure_certificate_not_after_seconds",
    "gauge",
    "When a certificate of this node ends, in seconds since 1970, by what it is for; absent without TLS.",
    ({ server, apiCertificateNotAfterMs }) => [
      ...endOf("peer", server.wire.certificateNotAfterMs),
      ...endOf("api", apiCertificateNotAfterMs),
    ],
  ),
  gauge(
    "tenure_disk_free_bytes",
    "Free space of the data directory; absent where unknown.",
    (s) => s.server.disk.freeBytes,
  ),
  gauge("tenure_disk_full", "1 while this node refuses writes for lack of space.", (s) =>
    s.server.disk.isFull ? 1 : 0,
  ),
  labelled("tenure_http_requests_total", "counter", "Requests answered, by route and status.", ({ http }) =>
    http.requests.map(({ route, status, count }) => ({ labels: { route, status: String(status) }, value: count })),
  ),
  labelled("tenure_http_request_duration_ms", "histogram", "How long requests took, by route.", ({ http }) =>
    http.durationMs.flatMap((one) => buckets("tenure_http_request_duration_ms", one.histogram, { route: one.route })),
  ),
  gauge("tenure_http_requests_in_flight", "Requests being answered.", (s) => s.http.inFlight),
  counter(
    "tenure_http_connections_dropped_total",
    "Connections closed unheard, at the limit.",
    (s) => s.http.droppedConnections,
  ),
  gauge("tenure_http_streams", "Streams of events and logs that are open.", (s) => s.http.streams),
  gauge("tenure_http_connections", "Connections of clients that are open.", (s) => s.http.connections),
  labelled("tenure_http_connections_cut_total", "counter", "Connections cut, by why.", ({ http }) =>
    by("why", http.cutConnections),
  ),
  counter("tenure_http_connections_bad_total", "Connections with no proper HTTP.", (s) => s.http.badConnections),
  counter(
    "tenure_log_lines_dropped_total",
    "Log lines lost because their reader stood still.",
    (s) => s.droppedLogLines,
  ),
  ...JOB_METRICS,
  ...VALUE_METRICS,
  ...MESH_METRICS,
  ...COORDINATOR_METRICS,
  ...TRANSACTION_METRICS,
];

function endOf(use: "peer" | "api", notAfterMs: number | null): readonly Sample[] {
  return notAfterMs === null ? [] : [{ labels: { use }, value: Math.floor(notAfterMs / 1_000) }];
}
