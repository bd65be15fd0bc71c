// What the servers answer, as the SDK shows it: docs/reference describes each field. The wire's spelling is the contract's.

export interface LeaderView {
  readonly leaderId: string;
  readonly term: number;
  /** Where requests for the leader go; null where it is at no address that this client may use. */
  readonly url: string | null;
  readonly leaderUrl: string | null;
  readonly leaderAddress: string | null;
}

export interface ClusterView {
  readonly clusterId: string;
  readonly nodeId: string;
  readonly incarnation: string;
  readonly version: string;
  /** What keeps the log: the nodes themselves, or a database. */
  readonly backend: "raft" | "postgres";
  readonly role: "LEADER" | "STANDBY" | "DRAINING";
  readonly term: number;
  readonly leader: { readonly nodeId: string; readonly address: string | null; readonly url: string | null } | null;
  readonly commit: number;
  readonly applied: number;
  readonly firstIndex: number;
  readonly lastIndex: number;
  readonly stalenessMs: number | null;
  readonly isJoint: boolean;
  readonly members: readonly MemberView[];
  /** Newest first. */
  readonly elections: readonly ElectionView[];
  readonly alerts: readonly AlertView[];
  readonly snapshot: SnapshotView | null;
  readonly disk: { readonly state: "ok" | "low" | "full" | "stalled"; readonly freeBytes: number | null };
  /** The clusters that it was recovered or restored from, the newest first. Older servers do not say. */
  readonly ancestors?: readonly string[] | undefined;
  /** Restored, and not resumed yet: it leases no job, fires no schedule and grants no scope. */
  readonly isPaused?: boolean | undefined;
  /** An operator has taken it out: it does not want to lead. Older servers do not say. */
  readonly isDraining?: boolean | undefined;
  readonly isReady: boolean;
  readonly notReadyReason: string | null;
}

export interface ResumeView {
  readonly clusterId: string;
  readonly isPaused: boolean;
}

export interface NodeDrainView {
  readonly nodeId: string;
  readonly isDraining: boolean;
  readonly role: ClusterView["role"];
  readonly leaderId: string | null;
  readonly leaderEpoch: number | null;
}

export interface MemberView {
  readonly nodeId: string;
  readonly incarnation: string;
  /** "node": of a site on a database, where nobody votes. */
  readonly kind: "voter" | "learner" | "leaving" | "joining" | "node";
  readonly isLeader: boolean;
  readonly address: string | null;
  readonly url: string | null;
  readonly isConnected: boolean;
  /** It answers that node, and one of the two does not accept who the other is: why. Older servers do not say. */
  readonly refusal?: string | null | undefined;
  /** What only the leader knows. */
  readonly progress: {
    readonly match: number;
    readonly next: number;
    readonly lag: number;
    readonly state: "probe" | "replicate" | "snapshot";
    readonly lastContactMs: number;
    readonly healthy: boolean;
  } | null;
}

export interface ElectionView {
  readonly term: number;
  readonly stage: "pre-vote" | "vote";
  readonly reason: "timeout" | "leader-gone" | "transfer" | "requested";
  /** `<node id>@<incarnation>`, as all of them. */
  readonly candidate: string;
  readonly candidates: readonly string[];
  readonly votes: readonly { readonly voter: string; readonly granted: boolean }[];
  /** Wall time. */
  readonly startedAtMs: number;
  readonly durationMs: number;
  /** Failed pre-votes in a row are one record. */
  readonly repeated?: number | undefined;
  readonly result: "won" | "lost" | "timed-out" | "superseded";
}

export interface AlertView {
  readonly name: string;
  readonly severity: "warning" | "critical";
  readonly message: string;
  readonly sinceWallMs: number;
  readonly nodeId: string | null;
}

export interface SnapshotView {
  readonly index: number;
  readonly term: number;
  readonly bytes: number;
}

export interface SavedSnapshotView extends SnapshotView {
  /** Of the node that saved it. Older servers do not say. */
  readonly role?: ClusterView["role"] | undefined;
}

export interface StoredSnapshotView {
  readonly index: number;
  /** Wall time of the node. */
  readonly atMs: number;
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

export interface ScopeHolderView {
  readonly epoch: number;
  readonly identity: string;
  readonly metadata: Readonly<Record<string, string>>;
}

export type ScopeGrant =
  | { readonly granted: true; readonly epoch: number; readonly ttlMs: number }
  | { readonly granted: false; readonly holder: ScopeHolderView | null };

export interface ScopeRenewal {
  readonly epoch: number;
  readonly ttlMs: number;
  readonly resignRequested: boolean;
}

export interface ScopeView {
  readonly scope: string;
  /** The last that was granted. */
  readonly epoch: number;
  readonly holder:
    | (ScopeHolderView & { readonly ttlMs: number; readonly acquiredAtMs: number; readonly resignRequested: boolean })
    | null;
}

export interface ScopeTransitionView {
  readonly atMs: number;
  readonly epoch: number;
  readonly identity: string;
  readonly reason: "acquired" | "resigned" | "expired" | "forced";
  readonly heldMs: number | null;
}

/** What one node has written down of the calls that steer: newest first. */
export interface AuditView {
  readonly records: readonly {
    readonly atMs: number;
    readonly nodeId: string;
    readonly who: string;
    readonly how: "key" | "certificate" | "anonymous";
    readonly role: "viewer" | "submitter" | "agent" | "client" | "backup" | "operator" | null;
    readonly address: string;
    readonly operation: string;
    readonly target: string | null;
    readonly forced: boolean;
    readonly outcome: string;
    readonly status: number;
    readonly durationMs: number;
    readonly requestId: string;
  }[];
}
