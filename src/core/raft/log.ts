// The log of one node, in memory from the last compaction on, and what is known of its durability.
//
//   offset < … ≤ applied ≤ applying ≤ min(commit, stable)      stable ≤ handed ≤ lastIndex
//
// offset: the entry just below the first one kept. stable: durable here. handed: given out to be written.
// A write that was handed out speaks for its entries only as long as they were not replaced: a
// truncation lowers what every pending write may confirm, so a late completion can never call a
// replaced entry durable, even if the very same (term, index) was replaced twice (trap 26).

import { assert } from "../kit/assert.ts";
import { ENTRY_OVERHEAD_BYTES } from "../kit/limits.ts";
import type { Entry, SnapshotMeta } from "./types.ts";

interface PendingWrite {
  readonly sequence: number;
  confirms: number;
}

export class RaftLog {
  #offset: number;
  #offsetTerm: number;
  #entries: Entry[];
  /** Indexes of configuration changes above the commit index, ascending. */
  #confIndexes: number[] = [];
  #commit: number;
  #stable: number;
  #handed: number;
  #applying: number;
  #applied: number;
  #applyingBytes = 0;
  #uncommittedBytes = 0;
  #pending: PendingWrite[] = [];

  /** `entries` are durable and follow `snapshot`; the state machine starts from the snapshot. */
  constructor(snapshot: SnapshotMeta | null, entries: readonly Entry[]) {
    this.#offset = snapshot === null ? 0 : snapshot.index;
    this.#offsetTerm = snapshot === null ? 0 : snapshot.term;
    this.#entries = [];
    this.#commit = this.#offset;
    this.#applying = this.#offset;
    this.#applied = this.#offset;
    this.#stable = this.#offset;
    this.#handed = this.#offset;
    this.append(entries);
    this.#stable = this.lastIndex;
    this.#handed = this.lastIndex;
  }

  get firstIndex(): number {
    return this.#offset + 1;
  }

  get lastIndex(): number {
    return this.#offset + this.#entries.length;
  }

  get lastTerm(): number {
    return this.#entries.length === 0 ? this.#offsetTerm : this.#entries[this.#entries.length - 1]!.term;
  }

  get commit(): number {
    return this.#commit;
  }

  get applied(): number {
    return this.#applied;
  }

  get stable(): number {
    return this.#stable;
  }

  get uncommittedBytes(): number {
    return this.#uncommittedBytes;
  }

  /** A configuration change is in the log and not committed yet. */
  get hasPendingConfChange(): boolean {
    return this.#confIndexes.length > 0;
  }

  /** Uncommitted configuration changes after `index`. */
  confChangesAfter(index: number): readonly Entry[] {
    return this.#confIndexes.filter((at) => at > index).map((at) => this.entryAt(at)!);
  }

  /** Undefined where the entry was compacted away or does not exist. */
  termAt(index: number): number | undefined {
    if (index === this.#offset) return this.#offsetTerm;
    return this.#entries[index - this.#offset - 1]?.term;
  }

  entryAt(index: number): Entry | undefined {
    return this.#entries[index - this.#offset - 1];
  }

  /** How many of the entries up to this one, the last of them first, fit into so many bytes; at most `max`. */
  entriesWithin(index: number, bytesMax: number, max: number): number {
    let bytes = 0;
    for (let count = 0; count < max; count++) {
      const entry = this.entryAt(index - count);
      if (entry === undefined || (bytes += weightOf(entry)) > bytesMax) return count;
    }
    return max;
  }

  matches(index: number, term: number): boolean {
    return this.termAt(index) === term;
  }

  /** Raft §5.4.1: later last term, or the same last term and at least as long (trap 4). */
  isUpToDate(lastIndex: number, lastTerm: number): boolean {
    return lastTerm > this.lastTerm || (lastTerm === this.lastTerm && lastIndex >= this.lastIndex);
  }

  /** Appends after the last entry. */
  append(entries: readonly Entry[]): void {
    for (const entry of entries) {
      assert(
        entry.index === this.lastIndex + 1,
        "entries are contiguous",
        () => `${entry.index} after ${this.lastIndex}`,
      );
      assert(entry.term >= this.lastTerm, "terms never fall along the log");
      this.#entries.push(entry);
      this.#uncommittedBytes += weightOf(entry);
      if (entry.type === "EntryConfChange") this.#confIndexes.push(entry.index);
    }
  }

  /**
   * A follower's append (§5.3). Null: the entry before the first one does not match. Otherwise the last
   * index that this very message verified, which is as far as its commit index may be believed (trap 6).
   */
  tryAppend(prevIndex: number, prevTerm: number, entries: readonly Entry[]): number | null {
    if (!this.matches(prevIndex, prevTerm)) return null;
    const conflict = entries.findIndex((entry) => !this.matches(entry.index, entry.term));
    if (conflict >= 0) {
      const first = entries[conflict]!.index;
      if (first <= this.lastIndex) this.#truncateFrom(first);
      this.append(entries.slice(conflict));
    }
    return prevIndex + entries.length;
  }

  /**
   * The largest index ≤ `index` whose term is ≤ `term`: where two logs may still agree. Both sides use
   * it, so that a conflict is passed over one term, not one entry, at a time.
   */
  findConflictByTerm(index: number, term: number): number {
    let at = Math.min(index, this.lastIndex);
    while (at > this.#offset && this.termAt(at)! > term) at--;
    return at;
  }

  /** From `from` on, at least one entry, then as many as fit. */
  slice(from: number, bytesMax: number, entriesMax: number): readonly Entry[] {
    const start = from - this.#offset - 1;
    assert(start >= 0, "a slice starts above the compacted part");
    let end = start;
    let bytes = 0;
    while (end < this.#entries.length && end - start < entriesMax) {
      bytes += this.#entries[end]!.data.length;
      if (end > start && bytes > bytesMax) break;
      end++;
    }
    return this.#entries.slice(start, end);
  }

  /** Advances the commit index; returns the configuration changes that this commits, in order. */
  commitTo(index: number): readonly Entry[] {
    if (index <= this.#commit) return [];
    assert(index <= this.lastIndex, "only entries in the log are committed", () => `${index} > ${this.lastIndex}`);
    for (let at = this.#commit + 1; at <= index; at++) this.#uncommittedBytes -= weightOf(this.entryAt(at)!);
    this.#commit = index;
    const changes: Entry[] = [];
    while (this.#confIndexes.length > 0 && this.#confIndexes[0]! <= index) {
      changes.push(this.entryAt(this.#confIndexes.shift()!)!);
    }
    return changes;
  }

  /**
   * Committed entries that may be applied now. Only entries that are durable here are applied, so that a
   * durable state machine is never ahead of its log. Unfinished ones are bounded by bytes.
   */
  takeCommitted(bytesMax: number): readonly Entry[] {
    const until = Math.min(this.#commit, this.#stable);
    const taken: Entry[] = [];
    while (this.#applying < until) {
      const entry = this.entryAt(this.#applying + 1)!;
      if (this.#applyingBytes > 0 && this.#applyingBytes + entry.data.length > bytesMax) break;
      this.#applyingBytes += entry.data.length;
      this.#applying++;
      taken.push(entry);
    }
    return taken;
  }

  appliedTo(index: number): void {
    assert(index <= this.#applying, "only entries that were given out are applied");
    for (let at = this.#applied + 1; at <= index; at++) this.#applyingBytes -= this.entryAt(at)?.data.length ?? 0;
    this.#applied = Math.max(this.#applied, index);
    if (this.#applied === this.#applying) this.#applyingBytes = 0;
  }

  /** Entries that nobody was asked to write yet; they count as handed out from now on. */
  takeUnstable(): readonly Entry[] {
    const from = this.#handed;
    this.#handed = this.lastIndex;
    return this.#entries.slice(from - this.#offset);
  }

  /** A write was given out that, once durable, makes everything up to `confirms` durable. */
  writeIssued(sequence: number, confirms: number): void {
    this.#pending.push({ sequence, confirms });
  }

  writesDone(sequence: number): void {
    while (this.#pending.length > 0 && this.#pending[0]!.sequence <= sequence) {
      this.#stable = Math.max(this.#stable, this.#pending.shift()!.confirms);
    }
  }

  /** The whole log is replaced by a snapshot of committed state that is not durable here yet. */
  restore(snapshot: SnapshotMeta): void {
    assert(snapshot.index > this.#commit, "a snapshot is never older than the commit index");
    this.#offset = snapshot.index;
    this.#offsetTerm = snapshot.term;
    this.#entries = [];
    this.#confIndexes = [];
    this.#uncommittedBytes = 0;
    this.#applyingBytes = 0;
    this.#commit = snapshot.index;
    this.#applying = snapshot.index;
    this.#applied = snapshot.index;
    this.#handed = snapshot.index;
    this.#stable = 0;
    for (const write of this.#pending) write.confirms = 0;
  }

  /** Forgets entries up to `index`, which a durable snapshot covers. */
  compact(index: number): void {
    if (index <= this.#offset) return;
    assert(index <= this.#applied, "only applied entries are compacted");
    const term = this.termAt(index)!;
    this.#entries = this.#entries.slice(index - this.#offset);
    this.#offset = index;
    this.#offsetTerm = term;
  }

  #truncateFrom(index: number): void {
    assert(
      index > this.#commit,
      "committed entries never change",
      () => `truncate from ${index}, commit ${this.#commit}`,
    );
    const kept = index - 1;
    for (let at = index; at <= this.lastIndex; at++) this.#uncommittedBytes -= weightOf(this.entryAt(at)!);
    this.#entries.length = kept - this.#offset;
    while (this.#confIndexes.length > 0 && this.#confIndexes[this.#confIndexes.length - 1]! > kept)
      this.#confIndexes.pop();
    this.#stable = Math.min(this.#stable, kept);
    this.#handed = Math.min(this.#handed, kept);
    for (const write of this.#pending) write.confirms = Math.min(write.confirms, kept);
  }
}

/** What an entry counts for while it waits: one without data is not free, or empty ones would have no bound (trap 28). */
function weightOf(entry: Entry): number {
  return entry.data.length + ENTRY_OVERHEAD_BYTES;
}
