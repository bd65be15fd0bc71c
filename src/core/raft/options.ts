// What a Raft node is made from, its bounds, and what it shows of itself.

import type { PeerKey } from "../kit/ids.ts";
import {
  APPEND_BYTES_MAX,
  APPLY_BYTES_MAX,
  COMPACTION_HOLD_ENTRIES_MAX,
  COMPACTION_KEPT_BYTES_MAX,
  INFLIGHT_BYTES_MAX,
  INFLIGHT_MESSAGES_MAX,
  PRIORITY_INTERVAL_MS,
  PRIORITY_STABLE_MS,
  UNCOMMITTED_BYTES_MAX,
} from "../kit/limits.ts";
import type { Random } from "../kit/random.ts";
import type { ElectionConfig } from "./config.ts";
import type { Raft } from "./raft.ts";
import type { TraceName } from "./trace.ts";
import type { TransferPhase } from "./transfer.ts";
import type { ConfChange, Configuration, Entry, HardState, Message, Role, SnapshotMeta } from "./types.ts";

export interface RaftOptions {
  readonly peer: PeerKey;
  readonly election: ElectionConfig;
  readonly random: Random;
  readonly nowMs: number;
  /** What recovery found on disk. */
  readonly hardState: HardState;
  readonly snapshot: SnapshotMeta | null;
  readonly entries: readonly Entry[];
  readonly limits?: Partial<RaftLimits> | undefined;
  /** Node ids that may lead a node which has joined nothing yet: those that its operator listed. Absent: whoever is introduced. */
  readonly sponsors?: readonly string[] | undefined;
  /** Node ids that an operator calls members although this node's log does not know them (decision 24). */
  readonly trusted?: readonly string[] | undefined;
  /**
   * A lost disk may hold the only copy of something that consensus knows nothing of: a leader swaps only those that whoever
   * knows has cleared. Absent: every silent one.
   */
  readonly swapsNeedClearance?: boolean | undefined;
  /** Notified of every transition, in etcd's words; costs nothing when absent. */
  readonly trace?: ((raft: Raft, ...told: Parameters<Trace>) => void) | undefined;
}

export type Trace = (name: TraceName, message: Message | null, change: ConfChange | null) => void;

export const RAFT_LIMITS = {
  appendBytesMax: APPEND_BYTES_MAX,
  inflightMessagesMax: INFLIGHT_MESSAGES_MAX,
  inflightBytesMax: INFLIGHT_BYTES_MAX,
  uncommittedBytesMax: UNCOMMITTED_BYTES_MAX,
  applyBytesMax: APPLY_BYTES_MAX,
  /** How long a follower that has everything may wait to hear that it is committed: the next append mostly says it first. */
  commitNoticeMs: 0,
  /** Entries that are kept for a healthy follower that still needs them, past those that are always kept. */
  compactionHoldEntriesMax: COMPACTION_HOLD_ENTRIES_MAX,
  compactionKeptBytesMax: COMPACTION_KEPT_BYTES_MAX,
  priorityStableMs: PRIORITY_STABLE_MS,
  priorityIntervalMs: PRIORITY_INTERVAL_MS,
};

export type RaftLimits = { readonly [Name in keyof typeof RAFT_LIMITS]: number };

export interface RaftStatus {
  readonly peer: PeerKey;
  readonly role: Role;
  readonly term: number;
  readonly vote: PeerKey | null;
  readonly leader: PeerKey | null;
  readonly commit: number;
  readonly applied: number;
  readonly firstIndex: number;
  readonly lastIndex: number;
  readonly lastTerm: number;
  /** The latest in the log, under which this node acts. */
  readonly configuration: Configuration;
  readonly committedConfiguration: Configuration;
  /** Design D9: the leader's own no-op is applied. */
  readonly established: boolean;
  /** The leader may answer reads alone until then; 0 without a lease. On the clock of the steps. */
  readonly leaseUntilMs: number;
  /** A majority is known to have been in contact no longer ago than this; 0 unless leader. */
  readonly quorumContactMs: number;
  /** How far a transfer that started here has come. */
  readonly transfer: TransferPhase | null;
  /** When the present leader was last heard; 0 where there is none, or it is this node. On the clock of the steps. */
  readonly leaderContactMs: number;
  /** What is applied here is all that was committed at this moment, as the leader announced it; 0 where that was never so. */
  readonly freshAsOfMs: number;
  readonly willing: boolean;
  /** Our oldest write has been under way for so long that the disk must be taken for hung (trap 30). */
  readonly isDiskStalled: boolean;
  /** By how much this node waits longer than configured, because answers came late recently. */
  readonly strainMs: number;
}
