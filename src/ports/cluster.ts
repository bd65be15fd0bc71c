// The cluster as one node sees it and as an operator steers it: what the API serves and nothing of how. Everything that is
// shown comes from memory; everything that steers works on the leader alone and rejects with NOT_LEADER elsewhere, but for
// `drain` and the snapshots, which are about this node.

export interface Cluster {
  /** From memory; never waits. */
  view(): ClusterView;
  /** The view's part that every answer carries. */
  line(): LineView;
  /** The view's role alone: every mutation asks for it. */
  currentRole(): ClusterView["role"];
  /** Everything committed before this call is applied here when it resolves; false: no leader confirmed it in time. */
  catchUp(timeoutMs: number): Promise<boolean>;
  /** To the best other voter where no target is named. Rejects with TRANSFER_TARGET_INVALID, ERR_LEADER_TRANSFER_FAILED, … */
  transfer(target: string | null, force: boolean): Promise<TransferView>;
  /**
   * Takes this node out: another leads, and this one does not want to until it is undone, or started anew. Resolves when that
   * is so. Refused where nobody else could lead, and then nothing has changed; not with `force`.
   */
  drain(isDraining: boolean, force: boolean): Promise<void>;
  /** A cluster that was restored paused begins to act. Done already: nothing happens. */
  resume(): Promise<void>;
  changeMember(change: MemberChange): Promise<MemberChangeView>;
  /** Saves a snapshot of the applied state on this node now, and resolves when it is durable. */
  saveSnapshot(): Promise<SnapshotView>;
  /** The newest durable snapshot as a file that `tenure cluster snapshot verify` reads; null where there is none. */
  readSnapshot(): Promise<{ readonly view: SnapshotView; readonly bytes: Uint8Array } | null>;
}

export interface ClusterView {
  readonly clusterId: string;
  readonly nodeId: string;
  readonly incarnation: string;
  readonly version: string;
  /** What keeps the log, and so who may lead: a majority of the members' own disks, or a database. */
  readonly backend: "raft" | "postgres";
  /** `LEADER` only when established (design D9) and a quorum was heard from lately. */
  readonly role: "LEADER" | "STANDBY" | "DRAINING";
  readonly term: number;
  readonly leader: { readonly nodeId: string; readonly address: string | null; readonly url: string | null } | null;
  readonly commit: number;
  readonly applied: number;
  readonly firstIndex: number;
  readonly lastIndex: number;
  /** Since this node last knew that it had everything; null where it never did. 0 on a confirmed leader. */
  readonly stalenessMs: number | null;
  readonly isJoint: boolean;
  readonly members: readonly MemberView[];
  /** Newest first, bounded. */
  readonly elections: readonly ElectionView[];
  readonly alerts: readonly AlertView[];
  readonly snapshot: SnapshotView | null;
  readonly disk: DiskView;
  /** The clusters that this one was recovered or restored from, the newest first. */
  readonly ancestors: readonly string[];
  /** Restored, and not resumed yet: it leases no job, fires no schedule and grants no scope. */
  readonly isPaused: boolean;
  /** An operator has taken it out (`drain`): it does not want to lead. */
  readonly isDraining: boolean;
  /** Recovered, has once had everything that was committed when it started, and was not removed since. */
  readonly isReady: boolean;
  readonly notReadyReason: string | null;
}

export interface LineView {
  /** Null: this node has just joined, and does not know them yet. */
  readonly ancestors: readonly string[] | null;
  readonly isPaused: boolean;
}

export interface MemberView {
  readonly nodeId: string;
  readonly incarnation: string;
  /** "node": of a site on a database. There is no vote, and any one can lead. */
  readonly kind: "voter" | "learner" | "leaving" | "joining" | "node";
  readonly isLeader: boolean;
  readonly address: string | null;
  readonly url: string | null;
  /** As this node sees it: its own connection stands. True for itself. */
  readonly isConnected: boolean;
  /** As this node sees it: it answers, and one of the two does not accept who the other says it is. Null: it is not that. */
  readonly refusal: string | null;
  /** What only the leader knows; null elsewhere. */
  readonly progress: {
    readonly match: number;
    readonly next: number;
    readonly lag: number;
    readonly state: "probe" | "replicate" | "snapshot";
    readonly lastContactMs: number;
    readonly healthy: boolean;
  } | null;
}

/** As core/raft writes it down (ElectionRecord); peers are `<node id>@<incarnation>`. */
export interface ElectionView {
  readonly term: number;
  readonly stage: "pre-vote" | "vote";
  readonly reason: "timeout" | "leader-gone" | "transfer" | "requested";
  readonly candidate: string;
  readonly candidates: readonly string[];
  readonly votes: readonly { readonly voter: string; readonly granted: boolean }[];
  /** Wall time. */
  readonly startedAtMs: number;
  readonly durationMs: number;
  /** Failed pre-votes in a row are one record. */
  readonly repeated: number;
  readonly result: "won" | "lost" | "timed-out" | "superseded";
}

export interface AlertView {
  readonly name: AlertName;
  readonly severity: "warning" | "critical";
  readonly message: string;
  readonly sinceWallMs: number;
  /** The node that it is about, where there is one: the one that raised it, or another that it misses. */
  readonly nodeId: string | null;
}

export type AlertName =
  | "follower_unresponsive"
  | "leader_suspect"
  | "leader_unavailable"
  | "election_failed"
  | "multiple_leaders"
  | "state_diverged"
  | "failover_rate_high"
  | "disk_full"
  | "disk_low"
  | "history_quota_near"
  | "history_quota_used"
  | "history_incomplete"
  | "history_lost"
  | "loop_stalled"
  | "leader_unknown"
  | "node_removed"
  | "disk_cloned"
  | "peer_unauthenticated"
  | "certificate_ends"
  | "clock_skewed"
  | "clocks_disagree"
  | "url_shared"
  | "mesh_replay_differs"
  | "mesh_signing_held"
  | "mesh_peer_unreachable"
  | "mesh_peer_lagging"
  | "mesh_clock_skew"
  | "mesh_fork"
  | "tc_no_leader"
  | "tc_voter_missing"
  | "tc_cluster_mismatch"
  | "tc_identity_shared"
  | "txn_in_doubt"
  | "cluster_paused";

export interface SnapshotView {
  readonly index: number;
  readonly term: number;
  readonly bytes: number;
}

export interface DiskView {
  readonly state: "ok" | "low" | "full" | "stalled";
  readonly freeBytes: number | null;
}

export interface TransferView {
  readonly success: boolean;
  readonly message: string;
  readonly oldLeaderId: string;
  readonly newLeaderId: string | null;
}

export type MemberChange =
  /** As a learner; with `promote`, as a voter once it has caught up. */
  | { readonly op: "add"; readonly nodeId: string; readonly promote?: boolean | undefined }
  | { readonly op: "promote"; readonly nodeId: string }
  /** `force`: though events of the history may be lost with the disk that leaves. */
  | { readonly op: "replace" | "remove"; readonly nodeId: string; readonly force?: boolean | undefined };

export interface MemberChangeView {
  readonly op: MemberChange["op"];
  readonly nodeId: string;
  readonly message: string;
  readonly members: readonly MemberView[];
}
