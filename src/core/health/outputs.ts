// What goes into and comes out of the health of one node: the times, the reports of other nodes, and what the loop has to
// log or do. An output is given once, when something begins or ends, never again while it lasts.

import type { CoordinatorsSeen } from "./coordinators.ts";
import type { TransactionsSeen } from "./transactions.ts";
import type { MeshSeen } from "./mesh.ts";
import type { AlertView, ElectionView } from "../../ports/cluster.ts";
import type { ErrorCode } from "../kit/errors.ts";
import type { ClockView } from "./clocks.ts";
import type { PeerKey } from "../kit/ids.ts";
import type { ElectionRecord, Role, TransferResult } from "../raft/types.ts";

/** One moment on both clocks of this node: durations are counted on the first, people read the second. */
export interface Moment {
  readonly nowMs: number;
  readonly wallMs: number;
}

/** The hash over everything that is applied up to this index. */
export interface ChainPoint {
  readonly index: number;
  readonly hash: number;
}

/** What a node says of itself, about once a second. Who says it is known from the connection. */
export interface Beacon {
  readonly role: Role;
  readonly term: number;
  /** Whom it follows, or itself; null while it knows nobody. */
  readonly leader: PeerKey | null;
  readonly established: boolean;
  /** The last term that it won because the leader before had asked it to; 0 for none since it started. */
  readonly handedTerm: number;
  readonly applied: number;
  readonly chain: readonly ChainPoint[];
  /** Its wall clock when it said so. */
  readonly wallMs: number;
}

/** Ranges of events, both ends included. */
export interface LackedHistory {
  readonly missing: readonly { readonly first: number; readonly last: number }[];
  /** Of those: no member has them. */
  readonly lost: readonly { readonly first: number; readonly last: number }[];
  /** Members that may have the others, and have not sent them for a while. */
  readonly awaited: readonly string[];
}

/** See core/mesh/gate. */
export interface SigningHeld {
  readonly why: string;
  /** This disk is an older copy: it does not go on by itself. */
  readonly isBehind: boolean;
  /** Since this process was started. */
  readonly heldMs: number;
}

/** A certificate that this node shows: to other nodes, or to clients and other coordinators. */
export interface CertificateEnd {
  readonly use: "peer" | "api";
  /** On the wall clock. */
  readonly notAfterMs: number;
}

/** What the loop looks at before each tick. */
export interface Observation {
  /** Nobody speaks to a node that has not joined yet, or was removed: that is no failure. */
  readonly isMember: boolean;
  readonly leader: PeerKey | null;
  /** As RaftStatus says. */
  readonly leaderContactMs: number;
  readonly disk: "ok" | "low" | "full" | "stalled";
  /** How much of its quota the history of events takes: from 80 % on `alarm`, from 95 % on `refuse`. */
  readonly historyQuota: "ok" | "alarm" | "refuse";
  /** What this node lacks of the history of events; absent or null: nothing. */
  readonly history?: LackedHistory | null | undefined;
  /** The same of receipts of other sites' events. */
  readonly receipts?: LackedHistory | null | undefined;
  /** What the last replay of the mesh's merged state has found; absent or null: nothing. */
  readonly replayProblem?: string | null | undefined;
  /** Why this leader gives nothing of its site's own line to other sites; absent or null: it does, or does not lead. */
  readonly signingHeld?: SigningHeld | null | undefined;
  /** Other sites of the mesh; absent or null: this one takes part in none. */
  readonly mesh?: MeshSeen | null | undefined;
  /** The transaction coordinators; absent or null: this node is none. */
  readonly coordinators?: CoordinatorsSeen | null | undefined;
  /** Transactions over islands; absent or null: this node keeps none. */
  readonly transactions?: TransactionsSeen | null | undefined;
  /** How often the event loop was held up since the start. */
  readonly stalls: number;
  /** What this node's wall clock is worth (clocks.ts). */
  readonly clock: ClockView;
  /** Node ids of whose disk two processes hold a copy. */
  readonly cloned?: readonly string[] | undefined;
  /** In use now; absent: without TLS. */
  readonly certificates?: readonly CertificateEnd[] | undefined;
  /** It was restored paused. */
  readonly isPaused?: boolean | undefined;
  /** Members that answer, and that do not accept who this node is, or are not accepted: node id and why. */
  readonly refused?: readonly { readonly nodeId: string; readonly why: string }[] | undefined;
}

/** `repeated`: how many failed pre-votes in a row this stands for; 1 for every other record. */
export type KeptElection = ElectionRecord & Pick<ElectionView, "repeated">;

export type HealthOutput =
  | { readonly kind: "alert-raised"; readonly alert: AlertView; readonly code: ErrorCode | null }
  | { readonly kind: "alert-cleared"; readonly alert: AlertView; readonly lastedMs: number }
  | { readonly kind: "election"; readonly record: KeptElection; readonly code: ErrorCode | null }
  | { readonly kind: "failover"; readonly from: PeerKey; readonly to: PeerKey; readonly term: number }
  | { readonly kind: "transfer"; readonly result: TransferResult; readonly code: ErrorCode | null }
  /** A peer acts as leader of a term that is over: normal for a moment (trap 22), and it will be told. */
  | {
      readonly kind: "term-stale";
      readonly peer: PeerKey;
      readonly term: number;
      readonly currentTerm: number;
      readonly saidAtWallMs: number;
      readonly code: "ERR_TERM_STALE";
    }
  /** This node acts as leader of a term that is over: it has to ask the others, and will step down at their answer. */
  | {
      readonly kind: "step-down";
      readonly term: number;
      readonly currentTerm: number;
      readonly leader: PeerKey;
      readonly code: "ERR_TERM_STALE";
    };
