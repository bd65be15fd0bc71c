// Any history of persists, snapshots, crashes and restarts, against a dumb oracle: the list of all states
// that the log went through, one for each record, and a mark at the last one that was acknowledged. What a
// restart finds must be one of the states from that mark on.

import fc from "fast-check";
import { expect, test } from "vitest";
import { assertNever } from "../core/kit/assert.ts";
import type { PeerKey } from "../core/kit/ids.ts";
import { seededRandom, type Random } from "../core/kit/random.ts";
import type { Entry, HardState, PersistRequest, SnapshotMeta } from "../core/raft/types.ts";
import { CRASH_MODES, TestDisk, type CrashMode } from "./test-disk.ts";
import { bytesOf, entry, n1, n2, open, request, snapshotAt } from "./test-storage.ts";
import type { Opened, Storage } from "./storage.ts";

interface State {
  readonly hardState: HardState;
  readonly snapshot: { readonly meta: SnapshotMeta; readonly data: Uint8Array } | null;
  readonly entries: readonly Entry[];
}

class Oracle {
  trail: State[];
  #acknowledged = 0;

  constructor(state: State) {
    this.trail = [state];
  }

  get now(): State {
    return this.trail.at(-1)!;
  }

  acknowledge(): void {
    this.#acknowledged = this.trail.length - 1;
  }

  expectOneOf(opened: Opened): void {
    const allowed = this.trail.slice(this.#acknowledged).map(printed);
    expect(allowed).toContain(printed(opened));
  }

  write({ hardState, snapshot, entries }: PersistRequest, data: Uint8Array | null): void {
    if (snapshot !== null) {
      const commit = Math.max(snapshot.index, (hardState ?? this.now.hardState).commit);
      const found = { ...(hardState ?? this.now.hardState), commit };
      this.trail.push({ hardState: found, snapshot: { meta: snapshot, data: data! }, entries: [] });
    } else if (hardState !== null) {
      this.trail.push({ ...this.now, hardState });
    }
    for (const added of entries) {
      const before = this.now.entries.filter((kept) => kept.index < added.index);
      this.trail.push({ ...this.now, entries: [...before, added] });
    }
  }

  mark(meta: SnapshotMeta, data: Uint8Array): void {
    const entries = this.now.entries.filter((kept) => kept.index > meta.index);
    this.trail.push({ ...this.now, snapshot: { meta, data }, entries });
  }
}

function lastIndexOf({ entries, snapshot }: State): number {
  return entries.at(-1)?.index ?? snapshot?.meta.index ?? 0;
}

function printed(state: State): string {
  const { hardState, snapshot, entries } = state;
  const commit = Math.min(Math.max(hardState.commit, snapshot?.meta.index ?? 0), lastIndexOf(state));
  const log = entries.map(({ index, term, data }) => `${index}.${term}.${new TextDecoder().decode(data)}`);
  const base = snapshot === null ? "-" : `${snapshot.meta.index}.${snapshot.meta.term}.${snapshot.data.join()}`;
  return `${hardState.term} ${hardState.vote} ${commit} [${base}] ${log.join(" ")}`;
}

const KINDS = ["append", "append", "append", "replace", "vote", "commit", "install"] as const;

/** A request that an honest core could make in this state; `label` makes its data different from all others. */
function draw(kind: (typeof KINDS)[number], state: State, random: Random, label: string): PersistRequest {
  const last = lastIndexOf(state);
  const { term, commit, vote } = state.hardState;
  const later = { term: term + 1, vote: random.pick<PeerKey | null>([n1, n2, null]), commit };
  const run = (from: number, ofTerm: number): Entry[] =>
    Array.from({ length: 1 + random.below(3) }, (_, i) =>
      entry(from + i, ofTerm, `${label}${"x".repeat(random.below(40))}`),
    );
  switch (kind) {
    case "append": {
      const entries = run(last + 1, Math.max(term, 1));
      const committed = commit + random.below(entries.at(-1)!.index - commit + 1);
      const hardState = term === 0 ? later : { term, vote, commit: committed };
      return request({ entries, hardState: random.chance(0.5) || term === 0 ? hardState : null });
    }
    case "replace":
      if (last === commit) return draw("append", state, random, label);
      return request({ entries: run(commit + 1 + random.below(last - commit), term + 1), hardState: later });
    case "vote":
      return request({ hardState: later });
    case "commit":
      return request({ hardState: { term, vote, commit: commit + random.below(last - commit + 1) }, mustSync: false });
    case "install": {
      const snapshot = snapshotAt(commit + 1 + random.below(6), Math.max(term, 1));
      return request({
        snapshot,
        hardState: term === 0 ? later : null,
        entries: random.chance(0.3) ? run(snapshot.index + 1, term + (term === 0 ? 1 : 0)) : [],
      });
    }
    default:
      return assertNever(kind, "draw");
  }
}

async function live(storage: Storage, oracle: Oracle, random: Random, life: number): Promise<void> {
  for (let step = 0; step < 12; step++) {
    const label = `${life}-${step}`;
    const { snapshot, hardState } = oracle.now;
    const covered = snapshot?.meta.index ?? 0;
    if (random.chance(0.15) && hardState.commit > covered) {
      const index = covered + 1 + random.below(hardState.commit - covered);
      const term = oracle.now.entries.find((kept) => kept.index === index)!.term;
      oracle.mark(snapshotAt(index, term), bytesOf(label));
      await storage.saveSnapshot(snapshotAt(index, term), bytesOf(label), index - random.below(4));
    } else {
      const group: PersistRequest[] = [];
      let data: Uint8Array | null = null;
      for (let size = 1 + random.below(3); size > 0; size--) {
        const kind = random.pick(KINDS);
        if (kind === "install" && data !== null) continue;
        const drawn = draw(kind, oracle.now, random, `${label}-${size}`);
        if (drawn.snapshot !== null) data = bytesOf(label);
        oracle.write(drawn, data);
        group.push(drawn);
      }
      await storage.persist(group, data);
      if (!group.some(({ mustSync }) => mustSync)) continue;
    }
    oracle.acknowledge();
  }
}

/** Crashes at `call` of its life, and perhaps again while it starts. */
interface Life {
  readonly call: number;
  readonly mode: CrashMode;
  readonly startCall: number;
  readonly startMode: CrashMode;
}

const anyMode = fc.constantFrom(...CRASH_MODES);
const anyLife: fc.Arbitrary<Life> = fc.record({
  call: fc.integer({ min: 1, max: 70 }),
  mode: anyMode,
  startCall: fc.integer({ min: 1, max: 24 }),
  startMode: anyMode,
});

test("after any history and any crash, everything acknowledged is there and nothing that was never written", async () => {
  const seen = { crashes: 0, cuts: 0, installs: 0 };
  const property = fc.asyncProperty(
    fc.array(anyLife, { minLength: 1, maxLength: 4 }),
    fc.nat(),
    async (lives, seed) => {
      const disk = new TestDisk();
      const random = seededRandom(seed);
      const options = {
        segmentBytesMax: 250 + random.below(800),
        ...(random.chance(0.5) ? {} : { bootstrap: null }),
        reserveBytes: random.pick([0, 60, 400]),
      };
      let opened = await open(disk, options);
      const { peer } = opened;
      for (const [number, { call, mode, startCall, startMode }] of lives.entries()) {
        const oracle = new Oracle(opened);
        disk.crashAt(call);
        await live(opened.storage, oracle, random, number).catch((error: unknown) => {
          if (!disk.isDead) throw error;
          seen.crashes++;
        });
        disk.restart(mode, random);
        disk.crashAt(startCall);
        await open(disk, options).catch((error: unknown) => {
          if (!disk.isDead) throw error;
        });
        disk.restart(startMode, random);
        opened = await open(disk, options);
        if (opened.recovery === "torn-tail-cut") seen.cuts++;
        if (opened.snapshot !== null && opened.snapshot.meta.index > 1) seen.installs++;
        expect(opened.damage).toBeNull();
        expect(opened.peer).toBe(peer);
        oracle.expectOneOf(opened);
      }
    },
  );
  await fc.assert(property, { seed: 20, numRuns: 400 });
  // A run in which nothing happened proves nothing (trap 33).
  expect(seen.crashes).toBeGreaterThan(300);
  expect(seen.cuts).toBeGreaterThan(50);
  expect(seen.installs).toBeGreaterThan(50);
});
