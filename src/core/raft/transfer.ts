// A transfer of leadership (Raft thesis §3.10, design D7).
//
//   catching-up ──▶ handing-over ──▶ awaiting ──▶ (result)
//        │                │
//        └── timeout ─────┴── one election timeout, target removed, refused ──▶ the leader resumes
//
// catching-up: writes go on. handing-over: writes are refused and the target is asked to campaign, for at
// most one election timeout. awaiting: this node has stepped down and waits to hear who leads.
// A transfer belongs to one term and blocks writes only in that term (trap 17: one that outlived its
// term refused writes for ever).

import { TRANSFER_LAG_ENTRIES_MAX } from "../kit/limits.ts";
import type { PeerKey } from "../kit/ids.ts";

export type TransferPhase = "catching-up" | "handing-over" | "awaiting";

export class Transfer {
  readonly target: PeerKey;
  readonly term: number;
  readonly force: boolean;
  /** Its number among those of this term whose target was asked to campaign. */
  readonly attempt: number;
  phase: TransferPhase = "catching-up";
  deadlineMs: number;
  timeoutNowSent = false;

  constructor(target: PeerKey, term: number, force: boolean, attempt: number, deadlineMs: number) {
    this.target = target;
    this.term = term;
    this.force = force;
    this.attempt = attempt;
    this.deadlineMs = deadlineMs;
  }

  blocksWrites(term: number): boolean {
    return this.phase === "handing-over" && this.term === term;
  }

  /** The target is close enough that the rest fits into one election timeout without writes. */
  mayHandOver(targetMatch: number, lastIndex: number): boolean {
    return this.phase === "catching-up" && (this.force || targetMatch + TRANSFER_LAG_ENTRIES_MAX >= lastIndex);
  }

  mayTimeoutNow(targetMatch: number, lastIndex: number): boolean {
    return this.phase === "handing-over" && !this.timeoutNowSent && (this.force || targetMatch === lastIndex);
  }
}
