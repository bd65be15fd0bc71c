// The alerts that are up. An alert is a name and, where it is about one, a node; each is raised once and cleared once.
// Split brain is never cleared: its cause lies in what was written, and only a person can judge that, who then
// restarts the node.

import type { AlertName, AlertView } from "../../ports/cluster.ts";
import type { ErrorCode } from "../kit/errors.ts";
import { ALERTS_MAX } from "./limits.ts";
import type { HealthOutput, Moment } from "./outputs.ts";

const KINDS: Readonly<
  Record<AlertName, { readonly severity: AlertView["severity"]; readonly code: ErrorCode | null }>
> = {
  follower_unresponsive: { severity: "warning", code: null },
  leader_suspect: { severity: "warning", code: null },
  leader_unavailable: { severity: "critical", code: "ERR_NO_LEADER" },
  election_failed: { severity: "warning", code: "ERR_ELECTION_FAILED" },
  multiple_leaders: { severity: "critical", code: "ERR_SPLIT_BRAIN" },
  state_diverged: { severity: "critical", code: "ERR_SPLIT_BRAIN" },
  failover_rate_high: { severity: "warning", code: null },
  disk_full: { severity: "critical", code: "DISK_FULL" },
  disk_low: { severity: "warning", code: null },
  history_quota_near: { severity: "warning", code: null },
  history_quota_used: { severity: "critical", code: "QUOTA_EXCEEDED" },
  history_incomplete: { severity: "warning", code: null },
  // The cluster works on, and it may last for ever: it must not hide what can be repaired.
  history_lost: { severity: "warning", code: "EVENTS_LOST" },
  loop_stalled: { severity: "warning", code: null },
  leader_unknown: { severity: "critical", code: null },
  node_removed: { severity: "critical", code: null },
  disk_cloned: { severity: "critical", code: null },
  peer_unauthenticated: { severity: "warning", code: null },
  certificate_ends: { severity: "warning", code: null },
  clock_skewed: { severity: "warning", code: null },
  clocks_disagree: { severity: "warning", code: null },
  // Only sites on a database raise it, and by themselves (controller/cluster/site-cluster.ts).
  url_shared: { severity: "warning", code: null },
  mesh_replay_differs: { severity: "warning", code: null },
  mesh_signing_held: { severity: "warning", code: null },
  mesh_peer_unreachable: { severity: "warning", code: null },
  mesh_peer_lagging: { severity: "warning", code: null },
  mesh_clock_skew: { severity: "warning", code: null },
  mesh_fork: { severity: "critical", code: null },
  // The island's own work goes on without a leader of the coordinators, and without a voter.
  tc_no_leader: { severity: "warning", code: null },
  tc_voter_missing: { severity: "warning", code: null },
  tc_cluster_mismatch: { severity: "warning", code: null },
  tc_identity_shared: { severity: "critical", code: null },
  txn_in_doubt: { severity: "warning", code: null },
  cluster_paused: { severity: "warning", code: "CLUSTER_PAUSED" },
};

export class AlertBoard {
  readonly #up = new Map<string, { alert: AlertView; readonly sinceMs: number }>();

  /** The message is brought up to date where it is up already; since when stays. */
  raise(at: Moment, name: AlertName, message: string, nodeId: string | null = null): HealthOutput[] {
    const key = keyOf(name, nodeId);
    const up = this.#up.get(key);
    if (up !== undefined) {
      up.alert = { ...up.alert, message };
      return [];
    }
    if (this.#up.size >= ALERTS_MAX) return [];
    const { severity, code } = KINDS[name];
    const alert: AlertView = { name, severity, message, sinceWallMs: at.wallMs, nodeId };
    this.#up.set(key, { alert, sinceMs: at.nowMs });
    return [{ kind: "alert-raised", alert, code }];
  }

  clear(at: Moment, name: AlertName, nodeId: string | null = null): HealthOutput[] {
    const key = keyOf(name, nodeId);
    const up = this.#up.get(key);
    if (up === undefined) return [];
    this.#up.delete(key);
    return [{ kind: "alert-cleared", alert: up.alert, lastedMs: at.nowMs - up.sinceMs }];
  }

  /** Those of this name whose node does not pass. */
  clearUnless(at: Moment, name: AlertName, keeps: (nodeId: string | null) => boolean): HealthOutput[] {
    const over = this.alerts.filter((alert) => alert.name === name && !keeps(alert.nodeId));
    return over.flatMap(({ nodeId }) => this.clear(at, name, nodeId));
  }

  /** Raised while it is so, cleared when it is not. */
  set(at: Moment, name: AlertName, nodeId: string | null, isSo: boolean, message: () => string): HealthOutput[] {
    return isSo ? this.raise(at, name, message(), nodeId) : this.clear(at, name, nodeId);
  }

  /** The gravest first, then in the order in which they came up. */
  get alerts(): readonly AlertView[] {
    const all = [...this.#up.values()].map(({ alert }) => alert);
    return [...all.filter(isCritical), ...all.filter((alert) => !isCritical(alert))];
  }
}

function isCritical(alert: AlertView): boolean {
  return alert.severity === "critical";
}

function keyOf(name: AlertName, nodeId: string | null): string {
  return `${name} ${nodeId ?? ""}`;
}
