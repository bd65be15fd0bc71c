// Views of a made-up cluster for the tests of what is printed.

import type { ClusterView, MemberView, NodeAnswer } from "../../client/index.ts";

export function memberOf(nodeId: string, changes: Partial<MemberView> = {}): MemberView {
  return {
    nodeId,
    incarnation: `${nodeId.slice(1)}abcdef0123456`,
    kind: "voter",
    isLeader: nodeId === "n1",
    address: `127.0.0.1:720${nodeId.slice(1)}`,
    url: `http://127.0.0.1:710${nodeId.slice(1)}`,
    isConnected: true,
    progress: { match: 40, next: 41, lag: 0, state: "replicate", lastContactMs: 12, healthy: true },
    ...changes,
  };
}

export function viewOf(nodeId: string, changes: Partial<ClusterView> = {}): ClusterView {
  const members = ["n1", "n2", "n3"].map((id) => memberOf(id, nodeId === "n1" ? {} : { progress: null }));
  return {
    clusterId: "c-1",
    nodeId,
    incarnation: memberOf(nodeId).incarnation,
    version: "0.1.0",
    backend: "raft",
    role: nodeId === "n1" ? "LEADER" : "STANDBY",
    term: 7,
    leader: { nodeId: "n1", address: "127.0.0.1:7201", url: "http://127.0.0.1:7101" },
    commit: 40,
    applied: 40,
    firstIndex: 1,
    lastIndex: 40,
    stalenessMs: nodeId === "n1" ? 0 : 15,
    isJoint: false,
    members,
    elections: [],
    alerts: [],
    snapshot: null,
    disk: { state: "ok", freeBytes: 5 * 1024 ** 3 },
    isDraining: false,
    isReady: true,
    notReadyReason: null,
    ...changes,
  };
}

export function answers(...views: readonly (ClusterView | string)[]): NodeAnswer[] {
  return views.map((view, at) => {
    const url = `http://127.0.0.1:710${at + 1}`;
    return typeof view === "string" ? { url, view: null, why: view, code: null } : { url, view, why: null, code: null };
  });
}
