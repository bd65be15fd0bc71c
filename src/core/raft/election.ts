// One campaign as its candidate saw it, and the record that is kept of it. A campaign has two stages:
// the pre-vote, which changes nothing anywhere, and the vote. Each stage leaves a record.

import type { PeerKey } from "../kit/ids.ts";
import { voteResult } from "./membership/quorum.ts";
import type { Configuration, ElectionRecord } from "./types.ts";

export type CampaignReason = ElectionRecord["reason"];
export type CampaignStage = ElectionRecord["stage"];

export class Campaign {
  readonly term: number;
  readonly stage: CampaignStage;
  readonly reason: CampaignReason;
  readonly startedAtMs: number;
  readonly #candidate: PeerKey;
  readonly #rivals = new Set<PeerKey>();
  readonly #votes = new Map<PeerKey, boolean>();

  constructor(candidate: PeerKey, term: number, stage: CampaignStage, reason: CampaignReason, nowMs: number) {
    this.#candidate = candidate;
    this.term = term;
    this.stage = stage;
    this.reason = reason;
    this.startedAtMs = nowMs;
  }

  /** For a forced transfer (design D7): it follows its leader while it asks. */
  get asksForTransfer(): boolean {
    return this.stage === "pre-vote" && this.reason === "transfer";
  }

  /** The first answer of a voter counts: it can't take it back within one term. */
  count(voter: PeerKey, granted: boolean): void {
    if (!this.#votes.has(voter)) this.#votes.set(voter, granted);
  }

  sawRival(candidate: PeerKey): void {
    this.#rivals.add(candidate);
  }

  /** Only voters of the present configuration count, each once (trap 8). */
  result(configuration: Configuration): "won" | "lost" | "pending" {
    return voteResult(configuration, (peer) => this.#votes.get(peer));
  }

  record(result: ElectionRecord["result"], nowMs: number): ElectionRecord {
    return {
      term: this.term,
      stage: this.stage,
      reason: this.reason,
      candidate: this.#candidate,
      candidates: [this.#candidate, ...this.#rivals].sort(),
      votes: [...this.#votes]
        .map(([voter, granted]) => ({ voter, granted }))
        .sort((a, b) => (a.voter < b.voter ? -1 : 1)),
      startedAtMs: this.startedAtMs,
      durationMs: nowMs - this.startedAtMs,
      result,
    };
  }
}
