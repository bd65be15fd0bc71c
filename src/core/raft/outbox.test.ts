// The contract of the outbox: no message leaves before what it depends on is durable.

import { describe, expect, test } from "vitest";
import type { PeerKey } from "../kit/ids.ts";
import { RaftLog } from "./log.ts";
import { Outbox } from "./outbox.ts";
import { appResp, entriesOf, heartbeat, peersNamed, preVote, vote, voteResp } from "./test-messages.ts";

const [A, B] = peersNamed(2) as [PeerKey, PeerKey];
const BEAT = heartbeat([A, B, 1]);
const ANSWER = appResp([A, B, 1]);

function fresh(): { outbox: Outbox; log: RaftLog } {
  return { outbox: new Outbox({ term: 1, vote: null, commit: 0 }), log: new RaftLog(null, []) };
}

describe("what may leave when", () => {
  test("with nothing to write and nothing under way, everything leaves at once, promises last", () => {
    const { outbox, log } = fresh();
    for (const message of [ANSWER, BEAT]) outbox.send(message);
    expect(outbox.takePersist(log, 1, null, 0)).toBe(null);
    expect(outbox.takeMessages()).toEqual([BEAT, ANSWER]);
    expect(outbox.takeMessages(), "each leaves once").toEqual([]);
  });

  test.each([vote([A, B, 2]), voteResp([A, B, 2]), appResp([A, B, 2])])(
    "$type waits for the write it comes with",
    (message) => {
      const { outbox, log } = fresh();
      outbox.send(message);
      expect(outbox.takePersist(log, 2, A, 0)).toMatchObject({
        sequence: 1,
        hardState: { term: 2, vote: A },
        mustSync: true,
        afterSync: [message],
      });
      expect(outbox.takeMessages()).toEqual([]);
    },
  );

  test("a pre-vote promises nothing and leaves while a write is under way", () => {
    const { outbox, log } = fresh();
    outbox.send(preVote([A, B, 3]));
    expect(outbox.takePersist(log, 2, A, 0)?.afterSync).toEqual([]);
    expect(outbox.takeMessages().length).toBe(1);
  });

  test("a promise without data of its own still waits for every write before it", () => {
    const { outbox, log } = fresh();
    log.append(entriesOf([1], 1));
    expect(outbox.takePersist(log, 1, null, 0)).toMatchObject({ sequence: 1, mustSync: true });
    outbox.send(ANSWER);
    const barrier = outbox.takePersist(log, 1, null, 0);
    expect(barrier).toMatchObject({ sequence: 2, hardState: null, entries: [], mustSync: false, afterSync: [ANSWER] });
    outbox.persisted(2);
    outbox.send(ANSWER);
    expect(outbox.takePersist(log, 1, null, 0)).toBe(null);
    expect(outbox.takeMessages()).toEqual([ANSWER]);
  });

  test("a commit index that moved is no reason to write", () => {
    const { outbox, log } = fresh();
    log.append(entriesOf([1], 1));
    outbox.takePersist(log, 1, null, 0);
    outbox.persisted(1);
    log.commitTo(1);
    expect(outbox.takePersist(log, 1, null, 0)).toBe(null);
  });
});

describe("durability", () => {
  test("a term and a vote are durable when their write is, not when a later one was handed out", () => {
    const { outbox, log } = fresh();
    outbox.takePersist(log, 2, A, 0);
    outbox.takePersist(log, 3, B, 0);
    outbox.persisted(1);
    expect([outbox.isDurable(2, A), outbox.isDurable(3, B)]).toEqual([true, false]);
    outbox.persisted(2);
    expect(outbox.isDurable(3, B)).toBe(true);
  });

  test("the oldest write under way says since when the disk has been busy", () => {
    const { outbox, log } = fresh();
    expect(outbox.writingSinceMs).toBe(Infinity);
    outbox.takePersist(log, 2, A, 10);
    outbox.takePersist(log, 3, B, 20);
    expect(outbox.writingSinceMs).toBe(10);
    outbox.persisted(1);
    expect(outbox.writingSinceMs).toBe(20);
  });

  test("nobody can report a write that was never handed out", () => {
    expect(() => fresh().outbox.persisted(1)).toThrow("only what was handed out becomes durable");
  });
});
