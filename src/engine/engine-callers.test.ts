import { describe, expect, test } from "vitest";
import { ENTRY_BYTES_MAX, PENDING_PROPOSALS_MAX, PENDING_READS_MAX } from "../core/kit/limits.ts";
import type { EngineOptions } from "./engine-options.ts";
import { HeldDisk, n1, n2, n3, Stage, type Actor } from "./test-engine.ts";
import { bytesOf } from "./test-storage.ts";

const drain = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

interface Three {
  readonly stage: Stage;
  readonly leader: Actor;
  readonly follower: Actor;
  readonly third: Actor;
}

async function three(options: Partial<EngineOptions> = {}): Promise<Three> {
  const stage = new Stage([n1, n2, n3], drain);
  const leader = await stage.start(n1, options);
  const follower = await stage.start(n2, options);
  const third = await stage.start(n3, options);
  await stage.lead(leader);
  return { stage, leader, follower, third };
}

/** Collects what a promise comes to, so that a test can see that it has not yet. */
function watch<T>(promise: Promise<T>): T[] {
  const seen: T[] = [];
  void promise.then((value) => seen.push(value));
  return seen;
}

describe("a proposal", () => {
  test("of several entries is committed as a whole, and names its last one", async () => {
    const { stage, leader, follower } = await three();
    const outcome = watch(leader.engine.propose(["a", "b", "c"].map(bytesOf)));
    await stage.settle();
    expect(outcome).toEqual([{ outcome: "committed", index: 5, term: 2 }]);
    expect(leader.machine.applied).toEqual(["a", "b", "c"]);
    expect(follower.machine.applied).toEqual(["a", "b", "c"]);
  });

  test("is refused with a code, and then nothing was written", async () => {
    const { stage, leader, follower } = await three({ limits: { uncommittedBytesMax: 10 } });
    const big = new Uint8Array(ENTRY_BYTES_MAX + 1);
    expect(await follower.engine.propose([bytesOf("x")])).toMatchObject({ outcome: "refused", code: "NOT_LEADER" });
    expect(await leader.engine.propose([big])).toMatchObject({ outcome: "refused", code: "ENTRY_TOO_LARGE" });
    expect(await leader.engine.propose([])).toMatchObject({ outcome: "refused", code: "ENTRY_TOO_LARGE" });
    const first = watch(leader.engine.propose([bytesOf("0123456789")]));
    expect(await leader.engine.propose([bytesOf("x")])).toMatchObject({
      outcome: "refused",
      code: "UNCOMMITTED_LIMIT",
    });
    await stage.settle();
    expect(first).toMatchObject([{ outcome: "committed" }]);
    expect(leader.machine.applied).toEqual(["0123456789"]);
  });

  test("trap 28: is refused when too many wait, though they are empty and count no bytes", async () => {
    const { stage, leader } = await three();
    const waiting = Array.from({ length: PENDING_PROPOSALS_MAX }, () => leader.engine.propose([new Uint8Array(0)]));
    expect(await Promise.race([leader.engine.propose([bytesOf("x")]), ...waiting])).toMatchObject({
      outcome: "refused",
      code: "UNCOMMITTED_LIMIT",
    });
    await leader.engine.stop();
    expect(new Set((await Promise.all(waiting)).map(({ outcome }) => outcome))).toEqual(new Set(["unknown"]));
    expect(stage.clock.pending).toBe(2);
  });

  test("trap 66: of a leader that is deposed is unknown, whether the next leader has the entry or not", async () => {
    const { stage, leader, follower } = await three();
    // The first reaches the follower, the answer does not come back; the second reaches nobody.
    const kept = watch(leader.engine.propose([bytesOf("kept")]));
    await stage.drain();
    const underWay = stage.underWay.splice(0);
    for (const { to, from, bytes } of underWay) if (to === n2) await stage.deliver(to, from, bytes);
    stage.underWay.length = 0;
    stage.cut.add(n1);
    const lost = watch(leader.engine.propose([bytesOf("lost")]));
    await stage.settle();
    expect([kept, lost]).toEqual([[], []]);

    await stage.advance(1_000);
    // Only the follower that has the entry can win.
    expect(follower.engine.status().role).toBe("leader");
    expect(follower.machine.applied).toEqual(["kept"]);
    expect(kept).toEqual([{ outcome: "unknown" }]);
    expect(lost).toEqual([{ outcome: "unknown" }]);

    stage.cut.clear();
    await stage.advance(100);
    expect(leader.engine.status()).toMatchObject({ role: "follower", leader: n2 });
    expect(leader.machine.applied).toEqual(["kept"]);
  });

  test("that was committed and applied in the turn in which leadership ends is committed", async () => {
    const { stage, leader, follower } = await three();
    const outcome = watch(leader.engine.propose([bytesOf("x")]));
    await stage.drain();
    const answers: { from: typeof n1; bytes: Uint8Array }[] = [];
    for (const { to, from, bytes } of stage.underWay.splice(0)) await stage.deliver(to, from, bytes);
    for (const { from, bytes } of stage.underWay.splice(0)) answers.push({ from, bytes });
    expect(outcome).toEqual([]);
    for (const { from, bytes } of answers) void stage.deliver(n1, from, bytes);
    await stage.say({
      type: "MsgHeartbeat",
      from: follower.engine.peer,
      to: n1,
      term: 9,
      commit: 0,
      announced: 0,
      echo: 0,
      round: 1,
    });
    expect(leader.engine.status()).toMatchObject({ role: "follower", term: 9 });
    expect(outcome).toEqual([{ outcome: "committed", index: 3, term: 2 }]);
  });

  test("of a change of membership is told like any other", async () => {
    const { stage, leader } = await three();
    const done = watch(leader.engine.changeMembership({ operations: [{ op: "remove", peer: n3 }] }));
    await stage.settle();
    expect(done).toMatchObject([{ outcome: "committed", index: 3 }]);
    expect(leader.engine.status().configuration.voters).toEqual([n1, n2]);
    const again = await leader.engine.changeMembership({ operations: [{ op: "remove", peer: n3 }] });
    expect(again).toMatchObject({ outcome: "refused", code: "CONF_CHANGE_INVALID" });
  });
});

describe("a linearizable read", () => {
  test("is answered on the leader and on a follower, once what it must see is applied there", async () => {
    const { stage, leader, follower } = await three();
    const write = watch(leader.engine.propose([bytesOf("x")]));
    await stage.settle();
    expect(write).toMatchObject([{ outcome: "committed" }]);
    const reads = [watch(leader.engine.readIndex(50)), watch(follower.engine.readIndex(50))];
    await stage.drain();
    expect(reads).toEqual([[], []]);
    await stage.settle();
    expect(reads).toEqual([[3], [3]]);
    expect(follower.machine.applied).toEqual(["x"]);
    // The time-outs are gone: only the three loops have a timer.
    expect(stage.clock.pending).toBe(3);
  });

  test("waits on a follower whose disk is behind, and then sees the write", async () => {
    const { stage, leader, follower } = await three();
    follower.disk.hold("wal-fdatasync");
    void leader.engine.propose([bytesOf("x")]);
    await stage.settle();
    const read = watch(follower.engine.readIndex(50));
    await stage.settle();
    expect(read).toEqual([]);
    follower.disk.release("wal-fdatasync");
    await stage.settle();
    expect(read).toEqual([3]);
    expect(follower.machine.applied).toEqual(["x"]);
  });

  test("times out with null where no answer comes, and where its index is not reached", async () => {
    const { stage, leader, follower, third } = await three();
    follower.disk.hold("wal-fdatasync");
    void leader.engine.propose([bytesOf("x")]);
    await stage.settle();
    const known = watch(follower.engine.readIndex(30));
    await stage.settle();
    stage.cut.add(n3);
    const unheard = watch(third.engine.readIndex(30));
    await stage.advance(29);
    expect([known, unheard]).toEqual([[], []]);
    await stage.advance(1);
    expect([known, unheard]).toEqual([[null], [null]]);
  });

  test("is null where no leader is known, and leaves no timer", async () => {
    const stage = new Stage([n1, n2, n3], drain);
    const { engine } = await stage.start(n1);
    expect(await engine.readIndex(50)).toBeNull();
    expect(stage.clock.pending).toBe(1);
  });

  test("trap 20: is not answered by what was meant for a read of the former life", async () => {
    const { stage, leader, follower } = await three();
    void follower.engine.readIndex(50);
    await stage.drain();
    while (!stage.underWay.some(({ message }) => message.type === "MsgReadIndexResp")) {
      const { to, from, bytes } = stage.underWay.shift()!;
      await stage.deliver(to, from, bytes);
    }
    const late = stage.underWay.find(({ message }) => message.type === "MsgReadIndexResp")!;
    await follower.engine.stop();
    const write = watch(leader.engine.propose([bytesOf("x")]));
    await stage.settle();
    expect(write).toMatchObject([{ outcome: "committed", index: 3 }]);

    const again = await stage.start(n2, {}, new HeldDisk(follower.disk.inner));
    stage.cut.add(n3);
    await stage.advance(50);
    const read = watch(again.engine.readIndex(500));
    await stage.drain();
    await stage.deliver(n2, late.from, late.bytes);
    expect(read).toEqual([]);
    await stage.settle();
    expect(read).toEqual([3]);
    expect(again.machine.applied).toEqual(["x"]);
  });

  test("trap 28: is null at once when too many wait", async () => {
    const { stage, follower } = await three();
    stage.cut.add(n2);
    const waiting = Array.from({ length: PENDING_READS_MAX }, () => follower.engine.readIndex(50));
    const one = watch(follower.engine.readIndex(50));
    await stage.drain();
    expect(one).toEqual([null]);
    await stage.advance(50);
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([null]));
  });
});

describe("a transfer", () => {
  test("tells who leads now", async () => {
    const { stage, leader, follower } = await three();
    const result = watch(leader.engine.transfer(n2));
    await stage.settle();
    expect(result).toMatchObject([{ success: true, oldLeaderId: n1, newLeaderId: n2 }]);
    expect(follower.engine.status().role).toBe("leader");
  });

  test("that can't begin says why and who leads, here and on a follower", async () => {
    const { leader, follower } = await three();
    expect(await leader.engine.transfer(n1)).toMatchObject({ success: false, newLeaderId: n1 });
    const refused = await follower.engine.transfer(n3);
    expect(refused).toMatchObject({ success: false, message: "the leader is n1@a1", newLeaderId: n1 });
  });

  test("whose target is silent ends with a result, and the leader leads on", async () => {
    const { stage, leader } = await three();
    stage.cut.add(n2);
    const result = watch(leader.engine.transfer(n2));
    await stage.advance(299);
    expect(result).toEqual([]);
    await stage.advance(2);
    expect(result).toMatchObject([{ success: false }]);
    const write = watch(leader.engine.propose([bytesOf("x")]));
    await stage.settle();
    expect(write).toMatchObject([{ outcome: "committed" }]);
  });
});
