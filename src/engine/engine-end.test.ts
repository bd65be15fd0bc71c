import { describe, expect, test } from "vitest";
import { TenureError } from "../core/kit/errors.ts";
import { seededRandom } from "../core/kit/random.ts";
import type { WireHandlers } from "../ports/peers/wire.ts";
import { ManualClock } from "../loops/test-clock.ts";
import { HeldDisk, ListMachine, n1, n2, n3, Stage, type Actor } from "./test-engine.ts";
import { bytesOf } from "./test-storage.ts";

const drain = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function three(clock = new ManualClock()): Promise<{ stage: Stage; leader: Actor; follower: Actor }> {
  const stage = new Stage([n1, n2, n3], drain);
  const leader = await stage.start(n1, { clock });
  const follower = await stage.start(n2);
  await stage.start(n3);
  await stage.lead(leader);
  expect(leader.engine.status().established).toBe(true);
  return { stage, leader, follower };
}

function watch<T>(promise: Promise<T>): T[] {
  const seen: T[] = [];
  void promise.then((value) => seen.push(value));
  return seen;
}

describe("a disk that fails", () => {
  test.each([
    ["wal-fdatasync", "EIO: i/o error", "FSYNC_FAILED"],
    ["wal-append", "ENOSPC: no space left on device", null],
  ])("in %s ends the engine: nothing is sent any more, who waits gets no definite answer", async (label, why, code) => {
    const clock = new ManualClock();
    const { stage, leader } = await three(clock);
    leader.disk.inner.failNext(label, new Error(why));
    const outcome = watch(leader.engine.propose([bytesOf("x")]));
    const read = watch(leader.engine.readIndex(1_000));
    const transfer = watch(leader.engine.transfer(n2));
    await stage.drain();

    expect(leader.fatal).toHaveLength(1);
    expect(String(leader.fatal[0])).toContain(why);
    expect(TenureError.is(leader.fatal[0]) ? leader.fatal[0].code : null).toBe(code);
    expect(outcome).toEqual([{ outcome: "unknown" }]);
    expect(read).toEqual([null]);
    expect(transfer).toMatchObject([{ success: false }]);
    await expectSilence(stage, leader, clock);
  });

  test.each(["wal-fdatasync", "wal-append"])(
    "trap 66: in %s leaves a proposal unknown, and the others may well commit it",
    async (label) => {
      const { stage, leader, follower } = await three();
      leader.disk.inner.failNext(label, new Error("EIO"));
      const outcome = watch(leader.engine.propose([bytesOf("x")]));
      await stage.settle();
      expect(outcome).toEqual([{ outcome: "unknown" }]);
      await stage.advance(1_000);
      expect(follower.machine.applied).toEqual(["x"]);
    },
  );

  test.each(["vanish", "keep", "process"] as const)(
    "trap 23: can be started on again, when what was not synced is handled as %s",
    async (mode) => {
      const { stage, leader, follower } = await three();
      const first = watch(leader.engine.propose([bytesOf("first")]));
      await stage.settle();
      expect(first).toMatchObject([{ outcome: "committed" }]);
      leader.disk.inner.failNext("wal-fdatasync", new Error("EIO"));
      void leader.engine.propose([bytesOf("second")]);
      await stage.settle();
      expect(leader.fatal).toHaveLength(1);
      leader.disk.inner.restart(mode, seededRandom(1));
      const again = await stage.start(n1, {}, new HeldDisk(leader.disk.inner));
      expect(again.engine.peer).toBe(n1);
      expect(again.engine.recovery).not.toBe("damaged-set-aside");
      await stage.advance(1_000);
      expect(follower.engine.status().leader).not.toBeNull();
      expect(again.machine.applied).toEqual(["first", "second"]);
    },
  );

  test("while it saves a snapshot beside the log ends the engine, too", async () => {
    const stage = new Stage([n1], drain);
    const actor = await stage.start(n1, { snapshots: { afterEntries: 3 } });
    await stage.lead(actor);
    actor.disk.inner.failNext("snapshot-fdatasync", new Error("EIO"));
    await actor.engine.propose(["a", "b", "c"].map(bytesOf));
    await stage.drain();
    expect(actor.fatal).toMatchObject([{ code: "FSYNC_FAILED" }]);
    expect(actor.engine.counts.snapshotsSaved).toBe(0);
  });
});

/** Neither messages nor time make it say anything; callers are refused. */
async function expectSilence(stage: Stage, { engine, disk, events }: Actor, clock: ManualClock): Promise<void> {
  const [sent, calls, told] = [stage.sentBy(engine.peer).length, disk.inner.calls.length, events.length];
  expect(clock.pending).toBe(0);
  await stage.say({ type: "MsgHeartbeat", from: n2, to: n1, term: 20, commit: 1, announced: 1, echo: 0, round: 1 });
  clock.nowMs += 10_000;
  clock.fireNext();
  expect(await engine.propose([bytesOf("y")])).toMatchObject({ outcome: "refused", code: "NOT_LEADER" });
  expect(await engine.readIndex(50)).toBeNull();
  expect(await engine.transfer(null)).toMatchObject({ success: false });
  expect(engine.campaign().ok).toBe(false);
  await stage.drain();
  expect(stage.sentBy(engine.peer).length).toBe(sent);
  expect(disk.inner.calls.filter((call) => !call.startsWith("close")).length).toBeLessThanOrEqual(calls);
  expect(events.length).toBe(told);
  expect(clock.pending).toBe(0);
}

describe("our own mistakes", () => {
  test("a state machine that throws ends the engine, once", async () => {
    const stage = new Stage([n1], drain);
    const stateMachine = new ListMachine();
    stateMachine.apply = () => {
      throw new Error("no such command");
    };
    const actor = await stage.start(n1, { stateMachine });
    await stage.lead(actor);
    const outcome = await actor.engine.propose([bytesOf("x")]);
    expect(outcome).toEqual({ outcome: "unknown" });
    expect(actor.fatal.map(String)).toEqual(["Error: no such command"]);
    expect(stage.wiresStopped).toBe(1);
  });

  test("a start that fails behind the disk closes what it opened", async () => {
    const stage = new Stage([n1], drain);
    const disk = new HeldDisk();
    const connect = (): never => {
      throw new Error("address in use");
    };
    await expect(stage.start(n1, { connect }, disk)).rejects.toThrow("address in use");
    expect(disk.inner.calls.at(-1)).toBe("close wal-0000000001");
  });
});

describe("stopping", () => {
  test("settles everybody, sends nothing more, and is safe twice", async () => {
    const clock = new ManualClock();
    const { stage, leader } = await three(clock);
    stage.cut.add(n2).add(n3);
    const outcome = watch(leader.engine.propose([bytesOf("x")]));
    const read = watch(leader.engine.readIndex(1_000));
    const transfer = watch(leader.engine.transfer(n2));
    await stage.settle();
    expect([outcome, read, transfer]).toEqual([[], [], []]);
    await Promise.all([leader.engine.stop(), leader.engine.stop()]);
    await leader.engine.stop();
    expect(outcome).toEqual([{ outcome: "unknown" }]);
    expect(read).toEqual([null]);
    expect(transfer).toMatchObject([{ success: false, message: "this node stopped before it heard of an end" }]);
    expect(stage.wiresStopped).toBe(1);
    expect(leader.fatal).toEqual([]);
    expect(leader.disk.inner.calls.filter((call) => call === "close wal-0000000001")).toHaveLength(1);
    await expectSilence(stage, leader, clock);
  });

  test("waits for the write under way, whose messages then do not leave", async () => {
    const stage = new Stage([n1, n2, n3], drain);
    const actor = await stage.start(n1);
    actor.disk.hold("wal-fdatasync");
    await stage.say({
      type: "MsgVote",
      from: n2,
      to: n1,
      term: 5,
      index: 9,
      logTerm: 4,
      transfer: false,
      priority: 0,
    });
    const stopped = watch(actor.engine.stop().then(() => "stopped"));
    await stage.drain();
    expect(stopped).toEqual([]);
    actor.disk.release("wal-fdatasync");
    await stage.drain();
    expect(stopped).toEqual(["stopped"]);
    expect(stage.sentBy(n1)).toEqual([]);
    const again = await stage.start(n1, {}, new HeldDisk(actor.disk.inner));
    expect(again.engine.recovery).toBe("intact");
    expect(again.engine.status()).toMatchObject({ term: 5, vote: n2 });
  });

  test("waits for a snapshot that is being saved", async () => {
    const stage = new Stage([n1], drain);
    const actor = await stage.start(n1, { snapshots: { afterEntries: 3 } });
    await stage.lead(actor);
    actor.disk.hold("snapshot-rename");
    await actor.engine.propose(["a", "b", "c"].map(bytesOf));
    await stage.drain();
    expect(actor.disk.waiting("snapshot-rename")).toBe(1);
    const stopped = watch(actor.engine.stop().then(() => "stopped"));
    await stage.drain();
    expect(stopped).toEqual([]);
    actor.disk.release("snapshot-rename");
    await stage.drain();
    expect(stopped).toEqual(["stopped"]);
    const again = await stage.start(n1, {}, new HeldDisk(actor.disk.inner));
    expect(again.engine.recovery).toBe("intact");
    expect(again.machine.applied).toEqual(["a", "b", "c"]);
  });

  test("by who is told of an event, or applies an entry, is an end in the middle of a turn", async () => {
    for (const where of ["event", "apply"]) {
      const stage = new Stage([n1], drain);
      const clock = new ManualClock();
      const told: string[] = [];
      const stop = (): void => void actor.engine.stop();
      const stateMachine = new ListMachine();
      if (where === "apply") stateMachine.apply = stop;
      const actor: Actor = await stage.start(n1, {
        clock,
        stateMachine,
        onEvent: (event) => {
          told.push(event.kind);
          if (where === "event" && event.kind === "role" && event.role === "leader") stop();
        },
      });
      await stage.lead(actor);
      const before = told.length;
      const outcome = await actor.engine.propose([bytesOf("x")]);
      expect(outcome.outcome, where).toBe(where === "event" ? "refused" : "unknown");
      await stage.drain();
      expect(told.length, where).toBe(before);
      expect(clock.pending, where).toBe(0);
      expect(actor.fatal).toEqual([]);
    }
  });

  test("is deaf: what a wire still delivers is neither heard nor counted", async () => {
    const stage = new Stage([n1, n2, n3], drain);
    let handlers!: WireHandlers;
    const wire = {
      start: (given: WireHandlers) => void (handlers = given),
      send: () => undefined,
      stop: () => undefined,
    };
    const { engine } = await stage.start(n1, { connect: () => wire });
    handlers.message(n2, bytesOf("garbage"));
    expect(engine.counts.refusedFrames).toBe(1);
    const before = engine.status();
    await engine.stop();
    handlers.message(n2, bytesOf("garbage"));
    handlers.peerSeen(n2);
    handlers.peerGone(n2);
    expect(engine.counts.refusedFrames).toBe(1);
    expect(engine.status()).toEqual(before);
  });

  test("while entries are applied, a batch at a time, leaves the next batch alone", async () => {
    const stage = new Stage([n1], drain);
    const stateMachine = new ListMachine();
    const actor: Actor = await stage.start(n1, { stateMachine, limits: { applyBytesMax: 1 } });
    const applied: number[] = [];
    stateMachine.apply = ({ index }) => {
      applied.push(index);
      void actor.engine.stop();
    };
    await stage.lead(actor);
    expect(await actor.engine.propose(["a", "b"].map(bytesOf))).toEqual({ outcome: "unknown" });
    expect(applied).toEqual([3]);
  });

  test("while much is left to apply leaves no timer behind", async () => {
    const { actor, clock, applied } = await withMuchToApply();
    expect(applied().length).toBeLessThan(MANY);
    await actor.engine.stop();
    expect(clock.pending).toBe(0);
  });
});

const MANY = 100;

/** A hundred entries of ten kilobytes are committed at once. */
async function withMuchToApply(): Promise<{ actor: Actor; clock: ManualClock; applied: () => readonly number[] }> {
  const stage = new Stage([n1], drain);
  const clock = new ManualClock();
  const stateMachine = new ListMachine();
  const actor = await stage.start(n1, { clock, stateMachine });
  await stage.lead(actor);
  const applied: number[] = [];
  stateMachine.apply = ({ index }) => void applied.push(index);
  void actor.engine.propose(Array.from({ length: MANY }, () => new Uint8Array(10_000)));
  await drain();
  return { actor, clock, applied: () => applied };
}

describe("D10: what is committed", () => {
  test("is applied in many turns where it is much, and timers come in between", async () => {
    const { actor, clock, applied } = await withMuchToApply();
    const between: number[] = [];
    for (let turn = 0; applied().length < MANY && turn < 50; turn++) {
      between.push(applied().length);
      expect(clock.fireNext()).toBe(true);
      await drain();
    }
    expect(applied().length).toBe(MANY);
    expect(new Set(applied()).size).toBe(MANY);
    expect(between.length).toBeGreaterThanOrEqual(3);
    await actor.engine.stop();
  });
});
