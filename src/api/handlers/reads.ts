// Reads work on every node, and say how fresh they are. `?consistency=linearizable` waits until everything committed before
// is applied here; `?max_stale_ms=` refuses where this node can't show that it is fresh enough.

import type { ClusterView } from "../../ports/cluster.ts";
import type { Service } from "./handler.ts";
import { leadershipOf, noLeader, Refusal } from "../refusal.ts";

export interface Consistency {
  readonly consistency?: "local" | "linearizable" | undefined;
  readonly max_stale_ms?: number | undefined;
}

/** Before a read, and after one that waited. Throws TOO_STALE or ERR_NO_LEADER. */
export async function beFresh({ cluster, limits }: Service, wanted: Consistency): Promise<void> {
  if (wanted.consistency === "linearizable" && !(await cluster.catchUp(limits.catchUpTimeoutMs))) {
    throw noLeader(cluster.view());
  }
  const { max_stale_ms: maxMs } = wanted;
  if (maxMs === undefined) return;
  const { stalenessMs, nodeId, leader } = cluster.view();
  if (stalenessMs !== null && stalenessMs <= maxMs) return;
  const known = stalenessMs === null ? "may be of any age" : `may be ${Math.ceil(stalenessMs)} ms old`;
  throw new Refusal(
    "TOO_STALE",
    `What node ${nodeId} knows ${known}, and max_stale_ms is ${maxMs}. ${leader === null ? "Nobody is known to lead: allow more, or wait" : "Ask the leader, or allow more"}.`,
    { staleness_ms: stalenessMs, node_id: nodeId },
  );
}

/** Design D17: a leader that is quiet (no new leases) is DRAINING too; it leads all the same, and names itself. */
export function shownRole({ role }: ClusterView, isQuiet: boolean): ClusterView["role"] {
  return role === "LEADER" && isQuiet ? "DRAINING" : role;
}

/** Absent where unknown: a header has no null. */
export function freshnessHeaders(view: ClusterView, isQuiet: boolean): Record<string, string> {
  const { leaderId, leaderEpoch } = leadershipOf(view);
  return {
    "x-tenure-node": view.nodeId,
    "x-tenure-role": shownRole(view, isQuiet),
    ...(leaderId === null ? {} : { "x-tenure-leader-id": leaderId }),
    ...(leaderEpoch === null ? {} : { "x-tenure-leader-epoch": String(leaderEpoch) }),
    "x-tenure-applied": String(view.applied),
    ...(view.stalenessMs === null ? {} : { "x-tenure-staleness-ms": String(Math.ceil(view.stalenessMs)) }),
  };
}
