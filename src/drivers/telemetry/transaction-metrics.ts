// The metrics of transactions over islands: what a node's own island has of them, and what the node has decided as a coordinator. A node on Postgres
// shows none of them; one that is no coordinator shows the first ones only.

import type { DeciderStats, TxnStats } from "../../ports/transactions.ts";
import { by, labelled, type Sample, type ServerMetric } from "./metric-kit.ts";

export const TRANSACTION_METRICS: readonly ServerMetric[] = [
  ofIsland("tenure_txn_prepared", "gauge", "Transactions that are prepared on this island and not decided.", (s) =>
    alone(s.prepared),
  ),
  ofIsland(
    "tenure_txn_in_doubt",
    "gauge",
    "Transactions that are prepared, or committed and not done everywhere, for longer than their time.",
    (s) => alone(s.inDoubt),
  ),
  ofIsland(
    "tenure_txn_oldest_in_doubt_seconds",
    "gauge",
    "For how long the oldest of those has been in doubt; 0: there is none.",
    (s) => alone(s.oldestInDoubtMs / 1_000),
  ),
  ofIsland("tenure_txn_remembered", "gauge", "Transactions whose state or outcome this island keeps.", (s) =>
    alone(s.kept),
  ),
  ofIsland(
    "tenure_txn_undelivered_jobs",
    "gauge",
    "Jobs of committed transactions that are not yet submitted on this island.",
    (s) => alone(s.undelivered),
  ),
  ofIsland(
    "tenure_txn_decided_total",
    "counter",
    "Transactions that this node has decided as leader of their home island, by outcome.",
    (s) => by("outcome", s.decided),
  ),
  ofIsland(
    "tenure_txn_stale_terms_total",
    "counter",
    "Calls that this node has refused because the term of their coordinator is over.",
    (s) => alone(s.staleTerms),
  ),
  ofDecider("tenure_txn_running", "gauge", "Transactions that this node coordinates at this moment.", (s) =>
    alone(s.running),
  ),
  ofDecider(
    "tenure_txn_coordinated_total",
    "counter",
    "Transactions that this node has coordinated, by outcome.",
    (s) => by("outcome", s.outcomes),
  ),
  ofDecider(
    "tenure_txn_forwarded_total",
    "counter",
    "Transactions that this node has forwarded to the leader of the coordinators.",
    (s) => alone(s.forwarded),
  ),
];

function ofIsland(
  name: string,
  type: ServerMetric["type"],
  help: string,
  read: (stats: TxnStats) => readonly Sample[],
): ServerMetric {
  return labelled(name, type, help, ({ transactions }) => (transactions === null ? [] : read(transactions)));
}

function ofDecider(
  name: string,
  type: ServerMetric["type"],
  help: string,
  read: (stats: DeciderStats) => readonly Sample[],
): ServerMetric {
  return labelled(name, type, help, ({ decider }) => (decider === null ? [] : read(decider)));
}

function alone(value: number): readonly Sample[] {
  return [{ labels: {}, value }];
}
