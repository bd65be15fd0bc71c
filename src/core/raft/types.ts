// The vocabulary of the Raft core: what goes into a step and what comes out.
// Message names and meanings are those of etcd-io/raft, so that its published scenarios can be replayed.

import type { ErrorCode } from "../kit/errors.ts";
import type { PeerKey } from "../kit/ids.ts";
import type { ElectionView } from "../../ports/cluster.ts";

// ---- the log ---------------------------------------------------------------------------------------

export type EntryType = "EntryNormal" | "EntryConfChange";

/** A normal entry without data is the no-op with which a leader opens its term. */
export interface Entry {
  readonly term: number;
  readonly index: number;
  readonly type: EntryType;
  readonly data: Uint8Array;
}

/** Must be durable before any message that depends on it leaves. `commit` may lag: it is only a hint after a restart. */
export interface HardState {
  readonly term: number;
  readonly vote: PeerKey | null;
  readonly commit: number;
}

/** What the core knows of a snapshot; its contents travel next to it and are the engine's business. */
export interface SnapshotMeta {
  readonly index: number;
  readonly term: number;
  readonly configuration: Configuration;
}

// ---- membership ------------------------------------------------------------------------------------

/** All lists are sorted and without repetition. Joint while `votersOutgoing` is not empty. */
export interface Configuration {
  readonly voters: readonly PeerKey[];
  readonly votersOutgoing: readonly PeerKey[];
  readonly learners: readonly PeerKey[];
  /** Voters of the outgoing half that become learners when the joint configuration is left. */
  readonly learnersNext: readonly PeerKey[];
  /** The leader leaves this joint configuration by itself once it is committed. */
  readonly autoLeave: boolean;
  /** Disks that were members once and were removed, oldest first, at most REMOVED_MAX; absent where there are none. */
  readonly removed?: readonly PeerKey[] | undefined;
}

export type ConfChangeOperation = {
  readonly op: "add-voter" | "add-learner" | "remove";
  readonly peer: PeerKey;
};

/** No operations means: leave the joint configuration. More than one change of voters goes through a joint one. */
export interface ConfChange {
  readonly operations: readonly ConfChangeOperation[];
}

// ---- messages --------------------------------------------------------------------------------------

interface Addressed {
  readonly from: PeerKey;
  readonly to: PeerKey;
  readonly term: number;
}

/** `round` numbers the leader's heartbeat rounds; answers carry it back (read index, lease, check-quorum). */
export type MsgApp = Addressed & {
  readonly type: "MsgApp";
  /** The entry before the first one sent: index and term. */
  readonly index: number;
  readonly logTerm: number;
  readonly entries: readonly Entry[];
  readonly commit: number;
  readonly round: number;
};
export type MsgAppResp = Addressed & {
  readonly type: "MsgAppResp";
  /** Accepted: the last index now known to match. Rejected: the index that was refused. */
  readonly index: number;
  readonly reject: boolean;
  /** On rejection, where the follower's log may agree: the hint's index and the term it has there. */
  readonly rejectHint: number;
  readonly logTerm: number;
  readonly round: number;
};
export type MsgHeartbeat = Addressed & {
  readonly type: "MsgHeartbeat";
  /** Never past what this follower is known to hold: a heartbeat verifies no entry. */
  readonly commit: number;
  /** How far the leader itself has committed, 0 before it has in its own term: only says how stale the follower is. */
  readonly announced: number;
  /** The last round that this follower is known to have answered: what is announced was so after that answer left. */
  readonly echo: number;
  readonly round: number;
};
export type MsgHeartbeatResp = Addressed & {
  readonly type: "MsgHeartbeatResp";
  readonly round: number;
  readonly priority: number;
  /** Whether this node may lead: one that is drained does not want to. */
  readonly willing: boolean;
  /** Its disk hangs: it can neither vote nor hold a copy (trap 30). */
  readonly stalled: boolean;
};
export type MsgSnap = Addressed & {
  readonly type: "MsgSnap";
  readonly snapshot: SnapshotMeta;
  readonly round: number;
};
/** `transfer` marks a campaign that the leader itself asked for: stickiness does not apply. */
export type MsgVote = Addressed & {
  readonly type: "MsgVote" | "MsgPreVote";
  readonly index: number;
  readonly logTerm: number;
  readonly transfer: boolean;
  readonly priority: number;
};
export type MsgVoteResp = Addressed & {
  readonly type: "MsgVoteResp" | "MsgPreVoteResp";
  readonly reject: boolean;
};
/**
 * `force`: the target asks for pre-votes first, and nothing changes if it is refused (design D7).
 * `attempt`: which of the leader's transfers in this term this is, so that an answer that comes late can't end another.
 */
export type MsgTimeoutNow = Addressed & {
  readonly type: "MsgTimeoutNow";
  readonly force: boolean;
  readonly attempt: number;
};
/** The target of a forced transfer tells the leader that it was refused. */
export type MsgTransferRefused = Addressed & { readonly type: "MsgTransferRefused"; readonly attempt: number };
export type MsgReadIndex = Addressed & {
  readonly type: "MsgReadIndex";
  readonly context: number;
};
export type MsgReadIndexResp = Addressed & {
  readonly type: "MsgReadIndexResp";
  readonly context: number;
  /** 0: the leader can't serve it; ask again. */
  readonly index: number;
};
/** Who are the members now? Asked by a node that somebody leads, or asks for a vote, whom it does not know (decision 24). */
export type MsgAskMembers = Addressed & { readonly type: "MsgAskMembers" };
/**
 * A configuration of the sender, the committed one or a later one in force: its members, and the index of the entry that
 * brought it. It raises no term.
 */
export type MsgMembers = Addressed & {
  readonly type: "MsgMembers";
  readonly index: number;
  readonly committed: boolean;
  readonly members: readonly PeerKey[];
};

export type Message =
  | MsgApp
  | MsgAppResp
  | MsgHeartbeat
  | MsgHeartbeatResp
  | MsgSnap
  | MsgVote
  | MsgVoteResp
  | MsgTimeoutNow
  | MsgTransferRefused
  | MsgReadIndex
  | MsgReadIndexResp
  | MsgAskMembers
  | MsgMembers;
export type MessageType = Message["type"];

// ---- inputs ----------------------------------------------------------------------------------------

export type Input =
  | { readonly kind: "message"; readonly message: Message }
  /** Time has passed; deadlines that are due are acted upon. Missed ones are merged (trap 29). */
  | { readonly kind: "time" }
  | { readonly kind: "propose"; readonly data: readonly Uint8Array[] }
  | { readonly kind: "conf-change"; readonly change: ConfChange }
  /** Swap a voter's lost disk for the new one that was seen under the same node id (design D5). */
  | { readonly kind: "replace"; readonly nodeId: string }
  | { readonly kind: "clear-disks"; readonly cleared: ClearedDisks }
  | { readonly kind: "read-index"; readonly context: number }
  | { readonly kind: "transfer"; readonly target: PeerKey | null; readonly force: boolean }
  /** etcd's MsgHup: campaign now, through the pre-vote. */
  | { readonly kind: "campaign" }
  /**
   * Whether this node wants to lead. One that does not still votes and replicates, obeys a transfer that names it, leads
   * where nobody else was elected for a while, and hands over to somebody willing as soon as it can.
   */
  | { readonly kind: "willing"; readonly willing: boolean }
  /** A leader begins a new term, as if leadership were handed to itself: whatever was done with the old one is over. */
  | { readonly kind: "reelect" }
  /** Gives leadership up, though nobody may be there to follow: somebody leads in a higher term, or should. */
  | { readonly kind: "step-down" }
  /** etcd's MsgStorageAppendResp: every persist request up to `sequence` is durable. */
  | { readonly kind: "persisted"; readonly sequence: number }
  /** etcd's MsgStorageApplyResp. */
  | { readonly kind: "applied"; readonly index: number }
  /** A snapshot of this node is durable; the log below it (less `keepEntries`) may go. */
  | { readonly kind: "compact"; readonly index: number; readonly keepEntries: number }
  | { readonly kind: "peer-seen"; readonly peer: PeerKey }
  | { readonly kind: "peer-gone"; readonly peer: PeerKey }
  /** The node of this id refused us in the handshake, because this very disk was removed from the cluster. */
  | { readonly kind: "removed"; readonly by: string }
  /** etcd's MsgUnreachable: a message to this peer could not be sent. */
  | { readonly kind: "unreachable"; readonly peer: PeerKey }
  /** etcd's MsgSnapStatus: the snapshot's contents could not be delivered. */
  | { readonly kind: "snapshot-failed"; readonly peer: PeerKey };

/** The disks that this leader may swap by itself, where that needs clearance: all of them, each time. */
export interface ClearedDisks {
  readonly peers: readonly PeerKey[];
  /** Whom it was judged with; it ends with the next change, which may take away what another disk was cleared by. */
  readonly configuration: Configuration;
}

export type StepResult =
  | { readonly ok: true; readonly index: number; readonly term: number }
  | { readonly ok: false; readonly code: ErrorCode; readonly message: string };

// ---- outputs ---------------------------------------------------------------------------------------

export type Role = "follower" | "pre-candidate" | "candidate" | "leader";

/**
 * etcd's MsgStorageAppend. The engine makes it durable in this order: snapshot, hard state, entries
 * (the term before any entry of that term, trap 2). An entry whose index is not above the last one
 * replaces it and all that follow. Then it sends `afterSync`, then reports `persisted(sequence)`.
 */
export interface PersistRequest {
  readonly sequence: number;
  /** The log was replaced by this snapshot: load its contents before applying what the same Ready commits. */
  readonly snapshot: SnapshotMeta | null;
  readonly hardState: HardState | null;
  readonly entries: readonly Entry[];
  /** False when only the commit index moved, or the request is a mere barrier after earlier ones. */
  readonly mustSync: boolean;
  /** Messages that depend on this request and on all before it. */
  readonly afterSync: readonly Message[];
}

export interface ReadState {
  readonly context: number;
  /** Serve the read once this index is applied; 0: refused, ask again. */
  readonly index: number;
}

export interface TransferResult {
  readonly success: boolean;
  readonly message: string;
  readonly oldLeaderId: PeerKey;
  readonly newLeaderId: PeerKey | null;
  /** It failed as far as this node knows, but the target was asked to campaign and may yet win (trap 66). */
  readonly isUnknown: boolean;
}

export interface ElectionRecord extends Omit<ElectionView, "repeated"> {
  readonly candidate: PeerKey;
  /** Everybody seen asking for votes in this term, this node included. */
  readonly candidates: readonly PeerKey[];
  /** The answers that reached the candidate. */
  readonly votes: readonly { readonly voter: PeerKey; readonly granted: boolean }[];
}

export type RaftEvent =
  | { readonly kind: "role"; readonly role: Role; readonly term: number; readonly leader: PeerKey | null }
  /** Design D9: this leader's own no-op is applied; only now may it act. */
  | { readonly kind: "established"; readonly term: number; readonly index: number }
  | { readonly kind: "election"; readonly record: ElectionRecord }
  | { readonly kind: "transfer"; readonly result: TransferResult }
  | { readonly kind: "configuration"; readonly configuration: Configuration; readonly index: number }
  | { readonly kind: "leader-suspect"; readonly leader: PeerKey | null; readonly silentMs: number }
  /** Nobody leads us; this peer does or wants to, and no member that we know vouches for it: it may be one that we missed. */
  | { readonly kind: "stranger-leads"; readonly peer: PeerKey; readonly term: number }
  /** A member says that this disk was removed: we do not campaign, for as long as that is repeated. */
  | { readonly kind: "removed"; readonly by: string }
  | { readonly kind: "follower-unresponsive"; readonly peer: PeerKey }
  | { readonly kind: "follower-recovered"; readonly peer: PeerKey };

/**
 * What must be done. The ordering contract: `messages` may leave at once, because none of them depends
 * on anything that is not durable yet; everything else that leaves is in `persist.afterSync`.
 * `committed` may be applied at once: a committed entry is durable on a majority.
 */
export interface Ready {
  readonly messages: readonly Message[];
  readonly persist: PersistRequest | null;
  readonly committed: readonly Entry[];
  readonly readStates: readonly ReadState[];
  readonly events: readonly RaftEvent[];
  /** When `time` must be stepped next, on the clock that the steps carry; Infinity when nothing is due. */
  readonly deadlineMs: number;
}

/** What was refused without changing anything, counted by reason. */
export type RefusalReason = "not-for-us" | "unknown-peer" | "wild-term" | "not-a-member" | "removed" | "impossible";
