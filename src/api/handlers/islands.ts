// What a node knows of the islands, for people and dashboards: whoever may read sees it, so it is bounded, and has nothing that a list of values and of
// scopes does not have.

import { incarnationOf, nodeIdOf } from "../../core/kit/ids.ts";
import type { Coordinators, VoterView } from "../../ports/coordinators.ts";
import type { TxnParticipant, TxnView } from "../../ports/transactions.ts";
import { TXN_LOCKS_SHOWN_MAX, TXNS_SHOWN_MAX } from "../limits.ts";

export type TransactionsShown = Pick<TxnParticipant, "list" | "stats">;

export function islandsShown(coordinators: Coordinators, transactions: TransactionsShown | undefined): object {
  const { self, endpoint } = coordinators;
  const { clusterId, term, roster, isLeaving, backendHash, ...view } = coordinators.view();
  const { leases, voters, quorum } = coordinators.members();
  const { entries, updatedAtMs } = coordinators.registry();
  const identity = { identity: nodeIdOf(self), incarnation: incarnationOf(self), endpoint };
  return {
    self: { ...identity, tc_cluster_id: clusterId, term, roster, leaving: isLeaving, backend_hash: backendHash },
    leader: view.leader && {
      identity: nodeIdOf(view.leader.peer),
      incarnation: incarnationOf(view.leader.peer),
      endpoint: view.leader.endpoint,
      term: view.leader.term,
      expires_at_ms: view.leaderExpiresAtMs,
    },
    acts_in_term: view.actsInTerm,
    waits_for: view.waitsFor,
    left: view.hasLeft,
    members: leases.map((lease) => ({
      identity: lease.identity,
      endpoint: lease.endpoint,
      updated_at_ms: lease.updatedAtMs,
      expires_at_ms: lease.expiresAtMs,
    })),
    voters: voters.map(voterShown),
    quorum,
    roster,
    registry: entries.map((entry) => ({ backend_hash: entry.backendHash, endpoint: entry.endpoint })),
    registry_updated_at_ms: updatedAtMs,
    transactions: transactions === undefined ? null : transactionsShown(transactions),
  };
}

export function voterShown({ peer, endpoint, state }: VoterView): object {
  return { identity: nodeIdOf(peer), incarnation: incarnationOf(peer), endpoint, state };
}

/** Of this island, as this node has applied them. */
function transactionsShown(transactions: TransactionsShown): object {
  const { prepared, inDoubt, oldestInDoubtMs, undelivered } = transactions.stats();
  const page = transactions.list({ inDoubt: true, after: null, limit: TXNS_SHOWN_MAX });
  return {
    prepared,
    in_doubt: inDoubt,
    oldest_in_doubt_ms: oldestInDoubtMs,
    undelivered_jobs: undelivered,
    waiting: page.transactions.map(waiting),
    is_all: page.next === null,
  };
}

function waiting({ header, phase, atMs, locks, waitsFor }: TxnView): object {
  return {
    txn_id: header.id,
    home: header.home,
    phase: phase === "committed" ? "committed" : "prepared",
    at_ms: atMs,
    timeout_ms: header.timeoutMs,
    locks: locks.slice(0, TXN_LOCKS_SHOWN_MAX),
    locks_count: locks.length,
    waits_for: waitsFor,
  };
}
