// Counts of this node's elections. An election is a campaign that asked for votes: pre-votes that came to nothing changed
// nothing anywhere.
//
// - An election of a term has succeeded where somebody won it: also one that this node lost to another. It has failed
//   where votes were split, or nobody answered.
// - The duration is what users waited for: from the first pre-vote without a leader to the moment at which this node,
//   elected, may act. So campaigns that failed in between are part of it.

import { Histogram } from "../kit/histogram.ts";
import type { ElectionRecord, Role } from "../raft/types.ts";
import { ELECTIONS_WINDOW_MS, WINDOW_ELECTIONS_MAX } from "./limits.ts";

export class ElectionStats {
  readonly durationMs = new Histogram();
  started = 0;
  won = 0;
  readonly #recent: { readonly endedMs: number; readonly term: number; succeeded: boolean }[] = [];
  #campaignSinceMs: number | null = null;

  roleChanged(role: Role, term: number, hasLeader: boolean): void {
    if (role === "candidate") this.started++;
    if (!hasLeader) return;
    for (const election of this.#recent) if (election.term === term) election.succeeded = true;
    // The target of a forced transfer campaigns while its leader still leads.
    if (role === "follower") this.#campaignSinceMs = null;
  }

  ended(nowMs: number, record: ElectionRecord): void {
    this.#campaignSinceMs ??= record.startedAtMs;
    if (record.stage === "pre-vote") return;
    const succeeded = record.result === "won";
    if (succeeded) this.won++;
    this.#recent.push({ endedMs: nowMs, term: record.term, succeeded });
    if (this.#recent.length > WINDOW_ELECTIONS_MAX) this.#recent.shift();
  }

  established(nowMs: number): void {
    if (this.#campaignSinceMs !== null) this.durationMs.record(nowMs - this.#campaignSinceMs);
    this.#campaignSinceMs = null;
  }

  /** 0 to 1, over the last five minutes; null where there was no election. */
  successRate(nowMs: number): number | null {
    while (this.#recent.length > 0 && this.#recent[0]!.endedMs <= nowMs - ELECTIONS_WINDOW_MS) this.#recent.shift();
    if (this.#recent.length === 0) return null;
    return this.#recent.filter(({ succeeded }) => succeeded).length / this.#recent.length;
  }
}
