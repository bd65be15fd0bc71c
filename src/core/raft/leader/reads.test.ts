// Pending reads against a naive list in which each read remembers the round that may release it, and a leader
// under a storm of reads.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { PeerKey } from "../../kit/ids.ts";
import { PENDING_READS_MAX } from "../../kit/limits.ts";
import { Reads } from "./reads.ts";
import { TestCluster } from "../test-cluster.ts";
import { appResp, heartbeatResp, peersNamed } from "../test-messages.ts";

const SEED = 20;
const [A, B, C] = peersNamed(3) as [PeerKey, PeerKey, PeerKey];

interface NaiveRead {
  readonly context: number;
  index: number | null;
  /** The first round that started after it may release it; null until one does. */
  round: number | null;
}

describe("against the naive list", () => {
  const command = fc.record({
    do: fc.constantFrom("add", "add", "before-term", "term", "round", "confirm", "drop" as const),
    n: fc.nat(4),
  });

  test("a read is released by the first round that starts after it, in the order of asking, and only once", () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 80 }), (commands) => {
        const reads = new Reads();
        let naive: NaiveRead[] = [];
        let round = 0;
        let context = 0;
        let commit = 10;
        for (const one of commands) {
          commit += one.n;
          switch (one.do) {
            case "add":
              reads.add({ context: ++context, from: null }, commit);
              naive.push({ context, index: commit, round: null });
              break;
            case "before-term":
              reads.addBeforeTerm({ context: ++context, from: B });
              naive.push({ context, index: null, round: null });
              break;
            case "term":
              reads.termCommitted(commit);
              // What waited for the term is registered now, after what was registered before.
              naive = [
                ...naive.filter(({ index }) => index !== null),
                ...naive.filter(({ index }) => index === null).map((read) => ({ ...read, index: commit })),
              ];
              break;
            case "round":
              reads.roundStarted(++round);
              for (const read of naive) if (read.index !== null) read.round ??= round;
              break;
            case "confirm": {
              const confirmed = Math.max(0, round - one.n);
              const due = naive.filter((read) => read.round !== null && read.round <= confirmed);
              naive = naive.filter((read) => !due.includes(read));
              const released = reads.confirmed(confirmed).map((read) => [read.context, read.index]);
              expect(released).toEqual(due.map((read) => [read.context, read.index]));
              break;
            }
            case "drop": {
              const waiting = (read: NaiveRead): number => (read.index === null ? 0 : 1);
              const dropped = [...naive].sort((a, b) => waiting(a) - waiting(b)).map((read) => read.context);
              expect(reads.drop().map((read) => read.context)).toEqual(dropped);
              naive = [];
            }
          }
          expect(reads.size).toBe(naive.length);
          expect(reads.needsRound).toBe(naive.some((read) => read.index !== null && read.round === null));
        }
      }),
      { seed: SEED, numRuns: 200 },
    );
  });

  test("the number of waiting reads is bounded, and one more is refused", () => {
    const cluster = new TestCluster({ voters: [A, B, C], running: [A] });
    cluster.electWith(A, B);
    const { raft } = cluster.node(A);
    for (let context = 0; context < PENDING_READS_MAX; context++) {
      expect(raft.step(0, { kind: "read-index", context }).ok).toBe(true);
    }
    expect(raft.step(0, { kind: "read-index", context: -1 })).toMatchObject({ ok: false, code: "READS_LIMIT" });
  });
});

describe("a storm of reads on a slow network", () => {
  /** Five reads in a millisecond, each in a step of its own; every heartbeat is answered, 100 ms later. */
  function storm(durationMs: number): { cluster: TestCluster; asked: number } {
    const cluster = new TestCluster({ voters: [A, B, C], running: [A] });
    const node = cluster.electWith(A, B);
    cluster.receive(appResp([B, A, 2], { index: 2 }));
    let asked = 0;
    let answers: { readonly dueMs: number; readonly round: number }[] = [];
    while (cluster.nowMs < durationMs) {
      cluster.step(A, { kind: "read-index", context: ++asked });
      cluster.advance(0.2);
      for (const { to, round } of node.sentOf("MsgHeartbeat"))
        if (to === B) answers.push({ dueMs: cluster.nowMs + 100, round });
      node.sent = [];
      const due = answers.filter(({ dueMs }) => dueMs <= cluster.nowMs);
      answers = answers.filter(({ dueMs }) => dueMs > cluster.nowMs);
      for (const { round } of due) cluster.receive(heartbeatResp([B, A, 2], { round }));
    }
    return { cluster, asked };
  }

  test("a leader whose followers answer every heartbeat stays in office and answers its reads", () => {
    const { cluster, asked } = storm(700);
    expect(cluster.status(A).role).toBe("leader");
    expect(cluster.status(A).quorumContactMs).toBeGreaterThan(450);
    const answered = cluster.node(A).reads.filter(({ index }) => index > 0).length;
    expect(answered, `of ${asked}`).toBeGreaterThan(asked / 2);
  });
});
