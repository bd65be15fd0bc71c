import { describe, expect, test } from "vitest";
import { PENDING_PROPOSALS_MAX, PENDING_READS_MAX } from "../core/kit/limits.ts";
import { seededRandom } from "../core/kit/random.ts";
import { n1, n2 } from "./test-storage.ts";
import { Waiters } from "./waiters.ts";

function waiters(life = 1): Waiters {
  return new Waiters(n1, seededRandom(life));
}

/** What a promise has come to; undefined while it waits. */
async function now<T>(promise: Promise<T>): Promise<T | undefined> {
  return Promise.race([promise, Promise.resolve(undefined)]);
}

describe("a proposal", () => {
  test("is committed when the entry of its index and term is applied, and not before, with what came of it", async () => {
    const all = waiters();
    const proposal = all.proposal(5, 2);
    all.applied(4, 2, "result");
    expect(await now(proposal)).toBeUndefined();
    all.applied(5, 2, "result");
    expect(await now(proposal)).toEqual({ outcome: "committed", index: 5, term: 2, result: "result" });
  });

  test("trap 66: is unknown when another entry took its place, or it was passed over", async () => {
    const all = waiters();
    const [replaced, passed, later] = [all.proposal(5, 2), all.proposal(6, 2), all.proposal(9, 2)];
    all.applied(5, 3, "result");
    expect(await now(replaced)).toEqual({ outcome: "unknown" });
    all.applied(7, 3, "result");
    expect(await now(passed)).toEqual({ outcome: "unknown" });
    expect(await now(later)).toBeUndefined();
  });

  test("trap 66: is unknown when leadership is lost, and reads are not concerned", async () => {
    const all = waiters();
    const proposal = all.proposal(5, 2);
    const read = all.read()!;
    all.leadershipLost();
    expect(await now(proposal)).toEqual({ outcome: "unknown" });
    expect(await now(read.answer)).toBeUndefined();
  });

  test("has room until so many wait", () => {
    const all = waiters();
    for (let index = 1; index < PENDING_PROPOSALS_MAX; index++) void all.proposal(index, 1);
    expect(all.hasRoomForProposal).toBe(true);
    void all.proposal(PENDING_PROPOSALS_MAX, 1);
    expect(all.hasRoomForProposal).toBe(false);
    all.applied(1, 1, "result");
    expect(all.hasRoomForProposal).toBe(true);
  });
});

describe("a read", () => {
  test("is answered at once when its index is applied already", async () => {
    const all = waiters();
    const read = all.read()!;
    all.readAnswered({ context: read.context, index: 7 }, 7);
    expect(await now(read.answer)).toBe(7);
  });

  test("waits until its index is reached, and gets its own index", async () => {
    const all = waiters();
    const [early, late] = [all.read()!, all.read()!];
    all.readAnswered({ context: early.context, index: 7 }, 5);
    all.readAnswered({ context: late.context, index: 9 }, 5);
    all.reached(6);
    expect(await now(early.answer)).toBeUndefined();
    all.reached(8);
    expect(await now(early.answer)).toBe(7);
    expect(await now(late.answer)).toBeUndefined();
  });

  test("is null when the core refuses it", async () => {
    const all = waiters();
    const read = all.read()!;
    all.readAnswered({ context: read.context, index: 0 }, 7);
    expect(await now(read.answer)).toBeNull();
  });

  test("can be given up in both of its states, and a late answer is nobody's", async () => {
    const all = waiters();
    const [asked, reaching] = [all.read()!, all.read()!];
    all.readAnswered({ context: reaching.context, index: 9 }, 5);
    all.giveUpRead(asked.context);
    all.giveUpRead(reaching.context);
    all.readAnswered({ context: asked.context, index: 9 }, 9);
    all.reached(9);
    expect(await now(asked.answer)).toBeNull();
    expect(await now(reaching.answer)).toBeNull();
  });

  test("finds room only until so many wait, whatever they wait for", () => {
    const all = waiters();
    for (let i = 1; i < PENDING_READS_MAX; i++) {
      const { context } = all.read()!;
      if (i % 2 === 0) all.readAnswered({ context, index: 9 }, 5);
    }
    const last = all.read()!;
    expect(all.read()).toBeNull();
    all.giveUpRead(last.context);
    expect(all.read()).not.toBeNull();
    expect(all.read()).toBeNull();
    all.reached(9);
    expect(all.read()).not.toBeNull();
  });

  test("of another life has another context, and all contexts can be sent", () => {
    const contexts = [1, 2, 3, 4].map((life) => waiters(life).read()!.context);
    expect(new Set(contexts).size).toBe(4);
    expect(contexts.every((context) => Number.isSafeInteger(context + 2 ** 20))).toBe(true);
  });
});

test("a transfer gets the next result that is told", async () => {
  const all = waiters();
  const transfer = all.transfer();
  const result = { success: true, isUnknown: false, message: "done", oldLeaderId: n1, newLeaderId: n2 };
  expect(await now(transfer)).toBeUndefined();
  all.transferEnded(result);
  expect(await now(transfer)).toEqual(result);
});

describe("closing", () => {
  const stopped = {
    success: false,
    isUnknown: true,
    message: "this node stopped before it heard of an end",
    oldLeaderId: n1,
    newLeaderId: null,
  };

  test("answers everybody, and is safe twice", async () => {
    const all = waiters();
    const proposal = all.proposal(5, 2);
    const [asked, reaching] = [all.read()!, all.read()!];
    all.readAnswered({ context: reaching.context, index: 9 }, 5);
    const transfer = all.transfer();
    all.close();
    all.close();
    expect(await now(proposal)).toEqual({ outcome: "unknown" });
    expect(await now(asked.answer)).toBeNull();
    expect(await now(reaching.answer)).toBeNull();
    expect(await now(transfer)).toEqual(stopped);
  });

  test("answers also who asks later", async () => {
    const all = waiters();
    all.close();
    expect(await now(all.proposal(5, 2))).toEqual({ outcome: "unknown" });
    expect(all.read()).toBeNull();
    expect(await now(all.transfer())).toEqual(stopped);
  });
});
