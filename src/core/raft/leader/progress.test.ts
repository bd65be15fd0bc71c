import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvariantError } from "../../kit/assert.ts";
import { Progress } from "./progress.ts";

const SEED = 6;
const LIMITS = { messagesMax: 3, bytesMax: 100 };

function probing(next: number, match = 0): Progress {
  const progress = new Progress({ next, nowMs: 0, inflightLimits: LIMITS });
  if (match > 0) progress.ackTo(match);
  return progress;
}

function replicating(match: number, sent = 0): Progress {
  const progress = probing(1, match);
  progress.becomeReplicate();
  if (sent > 0) progress.sentEntries(sent, 1, match + sent);
  return progress;
}

describe("any sequence of answers and transitions", () => {
  test("trap 7: match never falls, it is the highest acknowledged index, and next stays above it", () => {
    const act = fc.record({
      kind: fc.constantFrom("probe", "replicate", "snapshot", "failed", "send", "ack", "reject", "resume"),
      a: fc.nat({ max: 30 }),
      b: fc.nat({ max: 30 }),
    });
    const states = new Map<string, number>();
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.array(act, { maxLength: 60, size: "max" }), (first, acts) => {
        const progress = probing(first);
        let highest = 0;
        for (const { kind, a, b } of acts) {
          if (kind === "probe") progress.becomeProbe();
          else if (kind === "replicate") progress.becomeReplicate();
          else if (kind === "snapshot") progress.becomeSnapshot(Math.max(a, highest));
          else if (kind === "failed" && progress.state === "snapshot") progress.snapshotFailed();
          else if (kind === "send" && !progress.isPaused()) {
            const count = progress.inflights.isFull ? 0 : a % 4;
            progress.sentEntries(count, b, progress.next - 1 + count);
          } else if (kind === "ack") {
            expect(progress.ackTo(a)).toBe(a > highest);
            highest = Math.max(highest, a);
          } else if (kind === "reject") progress.maybeDecrementNext(a, b);
          else if (kind === "resume") progress.resume();

          expect(progress.match).toBe(highest);
          expect(progress.next).toBeGreaterThan(highest);
          if (progress.state !== "snapshot") expect(progress.pendingSnapshot).toBe(0);
          else expect(progress.next).toBeGreaterThan(progress.pendingSnapshot);
          if (progress.state !== "replicate") expect(progress.inflights.count).toBe(0);
          states.set(progress.state, (states.get(progress.state) ?? 0) + 1);
        }
      }),
      { seed: SEED, numRuns: 300 },
    );
    for (const state of ["probe", "replicate", "snapshot"]) expect(states.get(state)).toBeGreaterThan(1000);
  });

  test("a stale rejection changes nothing at all", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.nat({ max: 20 }), fc.nat({ max: 20 }), (match, back, hint) => {
        for (const progress of [probing(30, match), replicating(match, 2)]) {
          const before = [progress.state, progress.next, progress.probeSent, progress.inflights.count];
          expect(progress.maybeDecrementNext(Math.max(0, match - back), hint)).toBe(false);
          expect([progress.state, progress.next, progress.probeSent, progress.inflights.count]).toEqual(before);
        }
      }),
      { seed: SEED },
    );
  });

  test("probing finds the last common entry of any two logs, and never skips it", () => {
    const climbs = fc.array(fc.nat({ max: 2 }), { maxLength: 8, size: "max" });
    fc.assert(
      fc.property(climbs, climbs, climbs, (shared, onlyOurs, onlyTheirs) => {
        // After the shared entries the terms differ (even ours, odd theirs): a term has one leader, so two
        // logs that agree at an index agree before it.
        const ours = [...termsFrom(0, shared), ...termsFrom(20, onlyOurs)];
        const theirs = [...termsFrom(0, shared), ...termsFrom(21, onlyTheirs)];
        const accepted = (index: number): boolean =>
          index === 0 || (index <= theirs.length && theirs[index - 1] === ours[index - 1]);

        const progress = probing(ours.length + 1);
        while (!accepted(progress.next - 1)) {
          const rejected = progress.next - 1;
          progress.sentEntries(0, 0, rejected);
          expect(progress.maybeDecrementNext(rejected, Math.min(theirs.length, rejected))).toBe(true);
          expect(progress.next - 1).toBeLessThan(rejected);
        }
        expect(progress.next - 1).toBe(shared.length);
      }),
      { seed: SEED, numRuns: 500 },
    );
  });

  function termsFrom(base: number, climbs: readonly number[]): number[] {
    let term = base;
    return climbs.map((climb) => (term += 2 * climb));
  }
});

describe("probe", () => {
  test("sends one append with entries, then waits for its answer or a heartbeat's", () => {
    const progress = probing(5);
    progress.sentEntries(2, 10, 6);
    expect([progress.isPaused(), progress.next]).toEqual([true, 5]);
    progress.resume();
    expect(progress.isPaused()).toBe(false);
    progress.sentEntries(2, 10, 6);
    expect(progress.ackTo(6)).toBe(true);
    expect([progress.isPaused(), progress.match, progress.next]).toEqual([false, 6, 7]);
  });

  test("an empty append does not pause it", () => {
    const progress = probing(5);
    progress.sentEntries(0, 0, 4);
    expect(progress.isPaused()).toBe(false);
  });

  // next, rejected, hint → accepted, next: the cases of etcd's TestProgressMaybeDecr that can occur.
  test.each([
    [10, 5, 5, false, 10],
    [10, 9, 9, true, 9],
    [2, 1, 1, true, 1],
    [10, 9, 2, true, 3],
    [10, 9, 0, true, 1],
    [10, 9, 100, true, 9],
  ])("next %i, rejected at %i with hint %i: %s, next %i", (next, rejected, hint, taken, after) => {
    const progress = probing(next);
    progress.sentEntries(1, 1, next);
    expect(progress.maybeDecrementNext(rejected, hint)).toBe(taken);
    expect([progress.next, progress.isPaused()]).toEqual([after, !taken]);
  });

  test("the hint never leads below what is matched", () => {
    const progress = probing(1, 5);
    progress.sentEntries(0, 0, 5);
    progress.becomeSnapshot(9);
    progress.becomeProbe();
    expect(progress.maybeDecrementNext(9, 2)).toBe(true);
    expect(progress.next).toBe(6);
  });
});

describe("replicate", () => {
  test("runs ahead of the answers until the inflights are full, by count", () => {
    const progress = replicating(10);
    for (let sent = 1; sent <= 3; sent++) {
      expect(progress.isPaused()).toBe(false);
      progress.sentEntries(1, 1, 10 + sent);
    }
    expect([progress.next, progress.isPaused(), progress.inflights.isFull]).toEqual([14, true, true]);
    progress.ackTo(12);
    expect([progress.isPaused(), progress.inflights.count]).toEqual([false, 1]);
  });

  test("trap 28: and by bytes", () => {
    const progress = replicating(10);
    progress.sentEntries(1, 99, 11);
    expect(progress.isPaused()).toBe(false);
    progress.sentEntries(1, 1, 12);
    expect(progress.isPaused()).toBe(true);
  });

  test("full inflights that were all lost: a heartbeat's answer lets one empty append out, its rejection recovers", () => {
    const progress = replicating(10);
    progress.sentEntries(1, 100, 11);
    progress.resume();
    expect([progress.isPaused(), progress.inflights.isFull]).toEqual([false, true]);
    progress.sentEntries(0, 0, 11);
    expect(progress.isPaused()).toBe(true);
    expect(progress.maybeDecrementNext(11, 10)).toBe(true);
    expect([progress.state, progress.next, progress.inflights.count]).toEqual(["probe", 11, 0]);
    expect(progress.isPaused()).toBe(false);
  });

  test("trap 7: a rejection of what was acknowledged since is stale", () => {
    const progress = replicating(5, 4);
    expect([progress.maybeDecrementNext(5, 5), progress.maybeDecrementNext(4, 4)]).toEqual([false, false]);
    expect([progress.state, progress.next]).toEqual(["replicate", 10]);
  });

  test("a fresh rejection goes back to probing from what is matched", () => {
    const progress = replicating(5, 4);
    expect(progress.maybeDecrementNext(9, 9)).toBe(true);
    expect([progress.state, progress.next]).toEqual(["probe", 6]);
  });

  test("entries that do not follow next, or do not fit, are our own mistake", () => {
    expect(() => replicating(5).sentEntries(1, 1, 9)).toThrow(InvariantError);
    const full = replicating(5);
    full.sentEntries(1, 100, 6);
    expect(() => full.sentEntries(1, 1, 7)).toThrow(InvariantError);
  });
});

describe("snapshot", () => {
  test("pauses until the peer has it; answers move match; heartbeats do not unpause it", () => {
    const progress = probing(5);
    progress.becomeSnapshot(20);
    progress.resume();
    expect([progress.isPaused(), progress.next, progress.pendingSnapshot]).toEqual([true, 21, 20]);
    expect(progress.ackTo(20)).toBe(true);
    progress.becomeReplicate();
    expect([progress.next, progress.isPaused(), progress.pendingSnapshot]).toEqual([21, false, 0]);
  });

  test("delivered: probes after it; failed: probes from what is matched, once a heartbeat is answered", () => {
    const delivered = probing(5);
    delivered.becomeSnapshot(20);
    delivered.becomeProbe();
    expect([delivered.next, delivered.isPaused()]).toEqual([21, false]);
    const failed = probing(1, 3);
    failed.becomeSnapshot(20);
    failed.snapshotFailed();
    expect([failed.state, failed.next, failed.isPaused()]).toEqual(["probe", 4, true]);
  });

  test("rejections of what was sent before it are ignored", () => {
    const progress = probing(21);
    progress.becomeSnapshot(20);
    expect(progress.maybeDecrementNext(20, 3)).toBe(false);
    expect(progress.next).toBe(21);
  });

  test("sending entries while it is pending, or one older than the match, is our own mistake", () => {
    const progress = probing(5);
    progress.becomeSnapshot(20);
    expect(() => progress.sentEntries(1, 1, 21)).toThrow(InvariantError);
    expect(() => probing(1, 9).becomeSnapshot(8)).toThrow(InvariantError);
  });
});
