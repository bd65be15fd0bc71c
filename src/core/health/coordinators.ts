// Alerts about transaction coordinators. They say what an operator may have to do; the island's own work goes on in any case. `tc_no_leader` is
// raised by each node that knows of no leader, `tc_voter_missing` by the leader alone, the other two by whoever sees it.

import type { PeerKey } from "../kit/ids.ts";
import { nodeIdOf } from "../kit/ids.ts";
import type { AlertBoard } from "./alert-board.ts";
import { TC_NAMED_MAX, TC_NO_LEADER_AFTER_MS, TC_VOTER_MISSING_AFTER_MS } from "./limits.ts";
import type { HealthOutput, Moment } from "./outputs.ts";

/** What a node's coordinator sees. */
export interface CoordinatorsSeen {
  /** For how long it has known of no leader; null: it knows of one, or it left. */
  readonly leaderlessMs: number | null;
  /** Seeds without whose answer no cluster is founded. */
  readonly waitsFor: readonly string[];
  /** Voters that do not answer, and for how long; the leader alone knows. */
  readonly silent: readonly { readonly peer: PeerKey; readonly endpoint: string; readonly silentMs: number }[];
  /** Nodes that are in another cluster of coordinators. */
  readonly mismatched: readonly { readonly peer: PeerKey; readonly clusterId: string }[];
  /** Node ids of which two disks, or two endpoints, are alive at once. */
  readonly shared: readonly string[];
  /** Voters that do not know any more what they granted to this leader. */
  readonly forgetful: readonly PeerKey[];
}

const ALERT_NAMES = ["tc_no_leader", "tc_voter_missing", "tc_cluster_mismatch", "tc_identity_shared"] as const;

type CoordinatorAlertName = (typeof ALERT_NAMES)[number];

interface CoordinatorAlert {
  readonly name: CoordinatorAlertName;
  readonly message: string;
}

/** `seen`: null of a node that is no coordinator. */
export function judgeCoordinators(
  board: AlertBoard,
  at: Moment,
  self: PeerKey,
  seen: CoordinatorsSeen | null,
): HealthOutput[] {
  const due = new Map((seen === null ? [] : coordinatorAlerts(seen)).map(({ name, message }) => [name, message]));
  return ALERT_NAMES.flatMap((name) => board.set(at, name, nodeIdOf(self), due.has(name), () => due.get(name) ?? ""));
}

export function coordinatorAlerts(seen: CoordinatorsSeen): readonly CoordinatorAlert[] {
  const { leaderlessMs, waitsFor, mismatched } = seen;
  const missing = seen.silent.filter(({ silentMs }) => silentMs > TC_VOTER_MISSING_AFTER_MS);
  const forgetful = seen.forgetful.map((peer) => nodeIdOf(peer));
  const shared = [...new Set([...seen.shared, ...forgetful])].sort();
  const alerts: CoordinatorAlert[] = [];
  const raise = (name: CoordinatorAlertName, message: string): void => void alerts.push({ name, message });
  if (leaderlessMs !== null && leaderlessMs > TC_NO_LEADER_AFTER_MS) {
    const why =
      waitsFor.length > 0
        ? `no cluster is founded before ${named(waitsFor, (one) => one)} has answered (\`tenure tc found --force\` where that is gone for good)`
        : "no voter has the answers of a majority of the voters";
    raise(
      "tc_no_leader",
      `no transaction coordinator has led for ${seconds(leaderlessMs)}: ${why}. Transactions wait; this island's own work goes on`,
    );
  }
  if (missing.length > 0) {
    const voters = named(missing, ({ peer, endpoint, silentMs }) => `${peer} at ${endpoint} for ${seconds(silentMs)}`);
    raise(
      "tc_voter_missing",
      `voters of the transaction coordinators do not answer: ${voters}. A silent voter still counts for the quorum. Start it; what to do where it is gone for good: docs/runbooks/tc-coordinators.md`,
    );
  }
  if (mismatched.length > 0) {
    const others = named(mismatched, ({ peer, clusterId }) => `${peer} (cluster ${clusterId})`);
    raise(
      "tc_cluster_mismatch",
      `not in the same cluster of transaction coordinators as this node: ${others}. The two never merge: give up the smaller one, on each of its nodes (\`tenure tc discard\`)`,
    );
  }
  if (shared.length > 0) {
    raise(
      "tc_identity_shared",
      `${named(shared, (one) => one)}: two processes answer under one identity, or a disk was put back to an older copy. Stop the copy for good; where the disk is the older one, \`tenure tc discard\` there`,
    );
  }
  return alerts;
}

function named<T>(all: readonly T[], text: (one: T) => string): string {
  const shown = all.slice(0, TC_NAMED_MAX).map(text).join(", ");
  return all.length > TC_NAMED_MAX ? `${shown} and ${all.length - TC_NAMED_MAX} more` : shown;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`;
}
