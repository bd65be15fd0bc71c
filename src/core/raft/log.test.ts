// The log against a naive one: an array that is copied, and a disk on which every write is replayed. What the log
// calls stable must be on that disk at whatever moment the process dies.

import { ENTRY_OVERHEAD_BYTES } from "../kit/limits.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvariantError } from "../kit/assert.ts";
import { RaftLog } from "./log.ts";
import { configurationOf } from "./membership/membership.ts";
import { entriesOf } from "./test-messages.ts";
import type { Entry, SnapshotMeta } from "./types.ts";

const SEED = 26;
const CONFIGURATION = configurationOf([]);

interface Disk {
  readonly offset: number;
  readonly entries: readonly Entry[];
}

interface Write {
  readonly sequence: number;
  readonly snapshot: SnapshotMeta | null;
  readonly entries: readonly Entry[];
}

/** As expect(…).toBe, at a price that a loop over thousands of states can pay. */
function same(actual: unknown, expected: unknown, what: string): void {
  if (!Object.is(actual, expected)) expect(actual, what).toBe(expected);
}

function sameEntries(actual: readonly Entry[], expected: readonly Entry[], what: string): void {
  same(actual.length, expected.length, `how many: ${what}`);
  actual.forEach((entry, i) => same(entry, expected[i], what));
}

function atMost(actual: number, bound: number, what: string): void {
  if (actual > bound) expect(actual, what).toBeLessThanOrEqual(bound);
}

function written(disk: Disk, { snapshot, entries }: Write): Disk {
  const base = snapshot === null ? disk : { offset: snapshot.index, entries: [] };
  const first = entries[0]?.index ?? Infinity;
  return { offset: base.offset, entries: [...base.entries.filter(({ index }) => index < first), ...entries] };
}

/** Everything the log does, done the slow way. */
class NaiveLog {
  all: Entry[] = [];
  offset = 0;
  offsetTerm = 0;
  commit = 0;
  applying = 0;
  applied = 0;
  disk: Disk = { offset: 0, entries: [] };
  writes: Write[] = [];
  restored: SnapshotMeta | null = null;

  get lastIndex(): number {
    return this.offset + this.all.length;
  }

  termAt(index: number): number | undefined {
    return index === this.offset ? this.offsetTerm : this.all.find((entry) => entry.index === index)?.term;
  }

  tryAppend(prevIndex: number, prevTerm: number, entries: readonly Entry[]): number | null {
    if (this.termAt(prevIndex) !== prevTerm) return null;
    for (const entry of entries) {
      if (this.termAt(entry.index) === entry.term) continue;
      this.all = [...this.all.filter(({ index }) => index < entry.index), entry];
    }
    return prevIndex + entries.length;
  }

  /** The longest prefix of the log that is on disk now and after each of the writes that are still under way. */
  durable(): number {
    let reach = this.lastIndex;
    let disk = this.disk;
    for (const write of [null, ...this.writes]) {
      if (write !== null) disk = written(disk, write);
      const onDisk = disk;
      const missing = this.all.find(({ index, term, data }) => {
        const other = onDisk.entries.find((entry) => entry.index === index);
        return index > onDisk.offset && (other?.term !== term || other.data !== data);
      });
      reach = Math.min(reach, missing === undefined ? this.lastIndex : missing.index - 1);
      if (disk.offset < this.offset && this.restored !== null && disk.offset < this.restored.index) reach = 0;
    }
    return reach;
  }
}

type Command =
  | {
      readonly do: "append" | "lead-on" | "commit" | "apply" | "write" | "finish" | "compact" | "restore";
      readonly n: number;
    }
  | { readonly do: "follow"; readonly n: number; readonly keep: number; readonly terms: readonly number[] };

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom("append", "lead-on", "commit", "apply", "write", "write", "finish", "compact" as const),
      n: fc.nat(6),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restore" as const), n: fc.nat(6) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("follow" as const),
      n: fc.nat(6),
      keep: fc.nat(3),
      terms: fc.array(fc.nat(2), { maxLength: 4 }),
    }),
  },
);

class Pair {
  readonly log = new RaftLog(null, []);
  readonly naive = new NaiveLog();
  #term = 1;
  #sequence = 0;
  #made = 0;

  run(one: Command): void {
    switch (one.do) {
      case "append":
        return this.#append(one.n);
      case "lead-on":
        this.#term += one.n;
        return;
      case "commit":
        return this.#commit(this.naive.commit + one.n);
      case "apply":
        return this.#apply(one.n);
      case "write":
        return this.#write();
      case "finish":
        return this.#finish(one.n);
      case "compact":
        return this.#compact(one.n);
      case "restore":
        return this.#restore(this.naive.commit + 1 + one.n);
      case "follow":
        return this.#follow(one);
    }
  }

  #entry(term: number, index: number): Entry {
    const type = ++this.#made % 5 === 0 ? "EntryConfChange" : "EntryNormal";
    return { term, index, type, data: new Uint8Array(this.#made % 4) };
  }

  #append(count: number): void {
    const { naive } = this;
    this.#term = Math.max(this.#term, naive.termAt(naive.lastIndex)!);
    const entries = Array.from({ length: count }, (_, i) => this.#entry(this.#term, naive.lastIndex + 1 + i));
    this.log.append(entries);
    naive.all = [...naive.all, ...entries];
  }

  /** An append as a leader sends it: it agrees with ours for `keep` entries and then goes its own way. */
  #follow({ n, keep, terms }: Extract<Command, { do: "follow" }>): void {
    const { naive } = this;
    const prevIndex = Math.min(naive.commit + n, naive.lastIndex + 1);
    const kept = naive.all.filter(({ index }) => index > prevIndex && index <= prevIndex + keep);
    let term = kept.at(-1)?.term ?? naive.termAt(prevIndex) ?? this.#term;
    const own = terms.map((step, i) => this.#entry((term += step), prevIndex + kept.length + 1 + i));
    const prevTerm = naive.termAt(prevIndex) ?? this.#term;
    const entries = [...kept, ...own];
    const verified = this.log.tryAppend(prevIndex, prevTerm, entries);
    same(verified, naive.tryAppend(prevIndex, prevTerm, entries), "what the append verified");
  }

  #commit(wanted: number): void {
    const { naive } = this;
    const index = Math.min(wanted, naive.lastIndex);
    const changes = naive.all.filter((entry) => entry.index > naive.commit && entry.index <= index);
    const committed = this.log.commitTo(index);
    sameEntries(
      committed,
      changes.filter(({ type }) => type === "EntryConfChange"),
      "committed changes",
    );
    naive.commit = Math.max(naive.commit, index);
  }

  #apply(bytesMax: number): void {
    const { naive } = this;
    const taken = this.log.takeCommitted(bytesMax);
    const start = naive.applying - naive.offset;
    sameEntries(taken, naive.all.slice(start, start + taken.length), "given out to be applied");
    naive.applying += taken.length;
    const allowed = Math.max(naive.applied, Math.min(naive.commit, naive.durable()));
    atMost(naive.applying, allowed, "applied is what is committed and durable");
    const bytes = taken.reduce((sum, { data }) => sum + data.length, 0);
    atMost(bytes - (taken.find(({ data }) => data.length > 0)?.data.length ?? 0), bytesMax, "bytes given out");
    this.log.appliedTo(naive.applying);
    naive.applied = naive.applying;
  }

  #write(): void {
    const { naive } = this;
    const entries = this.log.takeUnstable();
    const snapshot = naive.writes.some((write) => write.snapshot === naive.restored) ? null : naive.restored;
    const pending = snapshot !== null && naive.disk.offset < snapshot.index ? snapshot : null;
    if (entries.length === 0 && pending === null) return;
    const sequence = ++this.#sequence;
    if (pending !== null) this.log.writeIssued(sequence, pending.index);
    if (entries.length > 0) this.log.writeIssued(sequence, naive.lastIndex);
    naive.writes.push({ sequence, snapshot: pending, entries });
    const final = naive.writes.reduce(written, naive.disk);
    const kept = final.entries.filter(({ index }) => index > naive.offset);
    sameEntries(kept, naive.all, "once everything handed out is written, the disk holds the log");
  }

  #finish(count: number): void {
    const done = this.naive.writes.splice(0, count);
    this.naive.disk = done.reduce(written, this.naive.disk);
    const last = done.at(-1);
    if (last !== undefined) this.log.writesDone(last.sequence);
  }

  #compact(back: number): void {
    const { naive } = this;
    const index = naive.applied - back;
    if (index <= naive.offset) return;
    naive.offsetTerm = naive.termAt(index)!;
    naive.all = naive.all.filter((entry) => entry.index > index);
    naive.offset = index;
    this.log.compact(index);
  }

  #restore(index: number): void {
    const { naive } = this;
    const term = Math.max(this.#term, naive.termAt(naive.lastIndex)!) + 1;
    const snapshot = { index, term, configuration: CONFIGURATION };
    this.#term = term;
    this.log.restore(snapshot);
    Object.assign(naive, { all: [], offset: index, offsetTerm: term, commit: index, applying: index, applied: index });
    naive.restored = snapshot;
  }

  check(): void {
    const { log, naive } = this;
    same(log.firstIndex, naive.offset + 1, "first index");
    same(log.lastIndex, naive.lastIndex, "last index");
    same(log.lastTerm, naive.termAt(naive.lastIndex), "last term");
    same(log.commit, naive.commit, "commit");
    same(log.applied, naive.applied, "applied");
    same(log.termAt(naive.offset), naive.offsetTerm, "term of what was compacted last");
    for (const entry of naive.all) same(log.entryAt(entry.index), entry, `entry ${entry.index}`);
    same(log.entryAt(naive.lastIndex + 1), undefined, "nothing behind the last entry");
    const uncommitted = naive.all.filter(({ index }) => index > naive.commit);
    same(
      log.uncommittedBytes,
      uncommitted.reduce((sum, { data }) => sum + data.length + ENTRY_OVERHEAD_BYTES, 0),
      "uncommitted bytes",
    );
    same(
      log.hasPendingConfChange,
      uncommitted.some(({ type }) => type === "EntryConfChange"),
      "a change is pending",
    );
    const durable = naive.durable();
    atMost(log.stable, Math.max(durable, naive.applied), "nothing is called durable that a crash could take");
    if (naive.writes.length === 0) atMost(durable, log.stable, "all that was written is known to be");
    for (const term of [1, this.#term - 1, this.#term]) {
      const below = naive.all.findLast((entry) => entry.term <= term)?.index ?? naive.offset;
      same(log.findConflictByTerm(naive.lastIndex, term), below, `the last index of term ≤ ${term}`);
    }
  }
}

describe("against the naive log", () => {
  test("any order of appends, conflicts, commits, writes, late completions, compactions and snapshots", () => {
    const reached = { replaced: 0, restored: 0, late: 0, applied: 0 };
    fc.assert(
      fc.property(fc.array(command, { minLength: 20, maxLength: 60 }), (commands) => {
        const pair = new Pair();
        for (const one of commands) {
          const before = pair.naive.lastIndex;
          const pending = pair.naive.writes.length;
          pair.run(one);
          pair.check();
          if (one.do === "restore") reached.restored++;
          if (one.do === "follow" && pair.naive.lastIndex < before) reached.replaced++;
          if (one.do === "follow" && pair.naive.lastIndex < before && pending > 0) reached.late++;
          if (one.do === "apply") reached.applied += pair.naive.applied;
        }
        while (pair.naive.writes.length > 0) pair.run({ do: "finish", n: 1 });
        pair.run({ do: "write", n: 0 });
        pair.run({ do: "finish", n: 9 });
        expect(pair.log.stable, "when all is written, all is stable").toBe(pair.log.lastIndex);
      }),
      { seed: SEED, numRuns: 300 },
    );
    for (const [state, count] of Object.entries(reached)) expect(count, `${state} was reached`).toBeGreaterThan(50);
  });

  test("a slice holds at least one entry, then as many as fit by bytes and by count", () => {
    const sizes = fc.array(fc.nat(5), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(
        sizes,
        fc.nat(11),
        fc.nat(12),
        fc.integer({ min: 1, max: 6 }),
        (lengths, start, bytesMax, countMax) => {
          const entries = lengths.map((length, i) => ({ ...entriesOf([1], 1 + i)[0]!, data: new Uint8Array(length) }));
          const log = new RaftLog(null, entries);
          const from = 1 + (start % lengths.length);
          const expected: Entry[] = [];
          for (const entry of entries.slice(from - 1)) {
            const bytes = [...expected, entry].reduce((sum, { data }) => sum + data.length, 0);
            if (expected.length === countMax || (expected.length > 0 && bytes > bytesMax)) break;
            expected.push(entry);
          }
          expect(log.slice(from, bytesMax, countMax)).toEqual(expected);
        },
      ),
      { seed: SEED, numRuns: 500 },
    );
  });

  test("up to date: a later last term, or the same and at least as long", () => {
    const log = new RaftLog(null, entriesOf([1, 3, 3], 1));
    for (const [index, term, expected] of [
      [3, 3, true],
      [2, 3, false],
      [4, 3, true],
      [9, 2, false],
      [1, 4, true],
    ] as const) {
      expect(log.isUpToDate(index, term), `(${index}, ${term})`).toBe(expected);
    }
  });
});

describe("our own mistakes end the process", () => {
  const log = (): RaftLog => {
    const one = new RaftLog(null, entriesOf([1, 2, 2], 1));
    one.commitTo(2);
    return one;
  };

  test.each([
    ["truncating a committed entry", () => log().tryAppend(1, 1, entriesOf([3], 2)), "committed entries never change"],
    ["a gap", () => log().append(entriesOf([2], 9)), "entries are contiguous"],
    ["a falling term", () => log().append(entriesOf([1], 4)), "terms never fall along the log"],
    ["committing what is not there", () => log().commitTo(4), "only entries in the log are committed"],
    ["applying what was not given out", () => log().appliedTo(1), "only entries that were given out are applied"],
    ["compacting what is not applied", () => log().compact(2), "only applied entries are compacted"],
    [
      "a snapshot behind the commit index",
      () => log().restore({ index: 2, term: 2, configuration: CONFIGURATION }),
      "a snapshot is never older",
    ],
  ])("%s", (_, mistake, invariant) => {
    expect(mistake).toThrow(InvariantError);
    expect(mistake).toThrow(invariant);
  });
});
