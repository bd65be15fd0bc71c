// Folds a log's records, in the order in which they were written, into what the node knew.
//
// Invariants, each of which is damage where it does not hold, because no writer of ours breaks it:
// - indexes have no gap, and the first entry kept joins the snapshot;
// - terms never fall along the log, and no entry is of a later term than the hard state before it;
// - the hard state's term never falls.

import type { Entry, HardState, SnapshotMeta } from "../raft/types.ts";
import type { WalRecord } from "./segment.ts";

export class Replay {
  readonly #snapshotIndex: number;
  readonly #snapshotTerm: number;
  #hardState: HardState = { term: 0, vote: null, commit: 0 };
  /** Contiguous. May start below the snapshot, where an old segment is kept for what is at its end. */
  #entries: Entry[] = [];

  constructor(snapshot: SnapshotMeta | null) {
    this.#snapshotIndex = snapshot === null ? 0 : snapshot.index;
    this.#snapshotTerm = snapshot === null ? 0 : snapshot.term;
  }

  /** Each of these returns what is wrong, or null. */
  add(record: WalRecord): string | null {
    if (record.type === "batch") return null;
    return record.type === "hard-state" ? this.addHardState(record.hardState) : this.#addEntry(record);
  }

  addHardState(hardState: HardState): string | null {
    if (hardState.term < this.#hardState.term) return `term ${hardState.term} after ${this.#hardState.term}`;
    this.#hardState = hardState;
    return null;
  }

  #addEntry(entry: Entry): string | null {
    if (entry.term > this.#hardState.term) return `an entry of term ${entry.term} in term ${this.#hardState.term}`;
    const first = this.#entries[0]?.index ?? entry.index;
    const next = this.#entries.length === 0 ? this.#snapshotIndex + 1 : first + this.#entries.length;
    if (entry.index > next) return `entry ${entry.index} where ${next} is the next one`;
    // Truncation is implied. Below the first one kept, it reaches into a segment that was removed.
    if (entry.index < next) this.#entries.length = Math.max(0, entry.index - first);
    const before = this.#entries[this.#entries.length - 1];
    if (before !== undefined && entry.term < before.term)
      return `an entry of term ${entry.term} after one of ${before.term}`;
    this.#entries.push(entry);
    return null;
  }

  /** The entries after the snapshot, or what is wrong with them. */
  entries(): readonly Entry[] | string {
    const first = this.#entries[0]?.index ?? this.#snapshotIndex + 1;
    const kept = this.#entries.slice(Math.max(0, this.#snapshotIndex + 1 - first));
    const covered = this.#entries[this.#snapshotIndex - first];
    if (covered !== undefined && covered.term !== this.#snapshotTerm) {
      return `entry ${covered.index} of term ${covered.term} under a snapshot of term ${this.#snapshotTerm}`;
    }
    const joint = kept[0];
    if (joint !== undefined && joint.index !== this.#snapshotIndex + 1)
      return `entry ${joint.index} does not join the snapshot`;
    if (joint !== undefined && joint.term < this.#snapshotTerm)
      return `an entry of term ${joint.term} after a snapshot of term ${this.#snapshotTerm}`;
    if (this.#snapshotTerm > this.#hardState.term)
      return `a snapshot of term ${this.#snapshotTerm} in term ${this.#hardState.term}`;
    return kept;
  }

  /**
   * What is committed is at least what the snapshot covers, and at most what is here. A commit index speaks only
   * of entries that stand before it (docs/decisions/0006-commit-on-disk.md), so the upper bound is a mere guard.
   */
  hardState(lastIndex: number): HardState {
    const { term, vote, commit } = this.#hardState;
    return { term, vote, commit: Math.min(Math.max(commit, this.#snapshotIndex), lastIndex) };
  }
}
