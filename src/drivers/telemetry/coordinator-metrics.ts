// The metrics of a transaction coordinator. A node that is none shows none of them.

import type { CoordinatorServerStats } from "../../ports/server-stats.ts";
import { by, labelled, type Sample, type ServerMetric } from "./metric-kit.ts";

export const COORDINATOR_METRICS: readonly ServerMetric[] = [
  one("tenure_tc_leads", "gauge", "1 while this node leads the transaction coordinators, else 0.", ({ leads }) =>
    leads ? 1 : 0,
  ),
  one("tenure_tc_term", "gauge", "The highest term of the coordinators that this node knows.", ({ term }) => term),
  one(
    "tenure_tc_lease_remaining_seconds",
    "gauge",
    "How long the leader's lease lasts at this node, unless it is renewed; 0: nobody leads.",
    ({ leaseRemainingMs }) => leaseRemainingMs / 1_000,
  ),
  ofCoordinators(
    "tenure_tc_voters",
    "gauge",
    "Voters, by how each answered the leader last; only the leader knows.",
    ({ voters }) => by("state", voters),
  ),
  one("tenure_tc_quorum", "gauge", "How many of the voters a leader needs; 0: no roster.", ({ quorum }) => quorum),
  one("tenure_tc_members", "gauge", "Members that are listed: that were heard lately.", ({ members }) => members),
  one("tenure_tc_registry_entries", "gauge", "Addresses of islands in the registry.", ({ registry }) => registry),
  one(
    "tenure_tc_mismatched_nodes",
    "gauge",
    "Nodes of another cluster of coordinators that this one has met lately.",
    ({ mismatched }) => mismatched,
  ),
  one(
    "tenure_tc_shared_identities",
    "gauge",
    "Node ids under which two processes answer, or that have forgotten a grant.",
    ({ shared }) => shared,
  ),
  one(
    "tenure_tc_elections_won_total",
    "counter",
    "Elections of the coordinators that this node has won.",
    ({ electionsWon }) => electionsWon,
  ),
  ofCoordinators("tenure_tc_over_total", "counter", "Leaderships of this node that have ended, by why.", ({ over }) =>
    by("reason", over),
  ),
  ofCoordinators(
    "tenure_tc_refused_total",
    "counter",
    "Requests for leases that this node's voter has refused, by why.",
    ({ refused }) => by("reason", refused),
  ),
];

function one(
  name: string,
  type: ServerMetric["type"],
  help: string,
  of: (stats: CoordinatorServerStats) => number,
): ServerMetric {
  return ofCoordinators(name, type, help, (stats) => [{ labels: {}, value: of(stats) }]);
}

function ofCoordinators(
  name: string,
  type: ServerMetric["type"],
  help: string,
  read: (stats: CoordinatorServerStats) => readonly Sample[],
): ServerMetric {
  return labelled(name, type, help, ({ coordinators }) => (coordinators === null ? [] : read(coordinators)));
}
