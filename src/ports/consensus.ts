// One node's part in a Raft group, in three ports: who writes takes Proposals, who leads or follows takes Lead, who changes the
// membership takes Members. The engine implements all of them, and whoever takes one needs no engine to be tested.

import type { ErrorCode } from "../core/kit/errors.ts";
import type { PeerKey } from "../core/kit/ids.ts";
import type { RaftStatus } from "../core/raft/options.ts";
import type { ClearedDisks, ConfChange, RaftEvent, StepResult, TransferResult } from "../core/raft/types.ts";

export interface Proposals {
  /**
   * Appends the data as consecutive entries, in the same turn: what Lead's `status` returned just before still holds. Settles
   * when the last one is applied here, or when its fate is known, or will not be known here.
   */
  propose(data: readonly Uint8Array[]): Promise<ProposeOutcome>;
}

export interface Lead {
  readonly peer: PeerKey;
  status(): RaftStatus;
  /** Called with every event, after it has happened. Returns the way to stop it. */
  subscribe(listener: (event: RaftEvent) => void): () => void;
  /** Resolves once everything committed before this call is applied here; null: not now, ask again. */
  readIndex(timeoutMs: number): Promise<number | null>;
  transfer(target: PeerKey | null, force?: boolean): Promise<TransferResult>;
  /**
   * Whether this node wants to lead. One that does not votes and replicates, is no target of a transfer that names none,
   * campaigns only where nobody else was elected for a while, and hands over to a healthy node that is willing.
   */
  setWilling(willing: boolean): void;
  /** Campaigns now, where no leader is heard. */
  campaign(): StepResult;
  /** A leader begins a new term, as if leadership were handed to itself: whatever was done with the old one is over. */
  reelect(): StepResult;
  /** Gives leadership up at once, though nobody may be there to follow. */
  stepDown(): void;
}

export interface Members {
  changeMembership(change: ConfChange): Promise<ProposeOutcome>;
  /** Swaps the disk of a voter for the one last seen under its node id, though the old one may still answer. */
  replace(nodeId: string): StepResult;
  /** Silent disks that a leader may swap by itself, where that needs clearance; only while this node leads. */
  clearDisks(cleared: ClearedDisks): void;
  /** What a leader knows of one member; null where this node does not lead, or it is no member. */
  followerOf(peer: PeerKey): FollowerView | null;
  /** The members that this one's log names, from what a leader knows of it; at best those of the oldest entries kept here. */
  membersKnownTo(peer: PeerKey): readonly PeerKey[];
}

export interface FollowerView {
  readonly match: number;
  readonly next: number;
  readonly state: "probe" | "replicate" | "snapshot";
  readonly lastContactMs: number;
  readonly unhealthy: boolean;
  readonly willing: boolean;
}

export type ProposeOutcome =
  /** `result`: what the state machine's `apply` returned for the last entry. */
  | { readonly outcome: "committed"; readonly index: number; readonly term: number; readonly result: unknown }
  /** Nothing was written. It is safe to try again. */
  | { readonly outcome: "refused"; readonly code: ErrorCode; readonly message: string }
  | { readonly outcome: "unknown" };
