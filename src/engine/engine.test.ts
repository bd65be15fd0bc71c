import { describe, expect, test } from "vitest";
import { LOOP_STALL_MS, WRITE_QUEUE_MAX } from "../core/kit/limits.ts";
import type { Message } from "../core/raft/index.ts";
import type { ProposeOutcome } from "../ports/consensus.ts";
import { ManualClock } from "../loops/test-clock.ts";
import { HeldDisk, n1, n2, n3, Stage, type Actor } from "./test-engine.ts";
import { bytesOf, entry } from "./test-storage.ts";

const drain = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function single(): Promise<{ stage: Stage; actor: Actor }> {
  const stage = new Stage([n1], drain);
  const actor = await stage.start(n1);
  await stage.lead(actor);
  expect(actor.engine.status().established).toBe(true);
  return { stage, actor };
}

async function three(): Promise<{ stage: Stage; actors: [Actor, Actor, Actor] }> {
  const stage = new Stage([n1, n2, n3], drain);
  const actors: [Actor, Actor, Actor] = [await stage.start(n1), await stage.start(n2), await stage.start(n3)];
  await stage.lead(actors[0]);
  expect(actors[0].engine.status().established).toBe(true);
  return { stage, actors };
}

/** One engine among peers that are no engines. */
async function alone(options: Parameters<Stage["start"]>[1] = {}): Promise<{ stage: Stage; actor: Actor }> {
  const stage = new Stage([n1, n2, n3], drain);
  return { stage, actor: await stage.start(n1, options) };
}

const types = (messages: readonly Message[]): string[] => messages.map(({ type }) => type);
const voteRequest: Message = {
  type: "MsgVote",
  from: n2,
  to: n1,
  term: 5,
  index: 9,
  logTerm: 4,
  transfer: false,
  priority: 0,
};
const append = (index: number, commit = 1): Message => ({
  type: "MsgApp",
  from: n2,
  to: n1,
  term: 5,
  index: index - 1,
  logTerm: index === 2 ? 1 : 5,
  entries: [entry(index, 5)],
  commit,
  round: 1,
});

describe("group commit", () => {
  test("what is proposed while a sync runs is one more write and one more sync, however much it is", async () => {
    const { stage, actor } = await single();
    const { disk, engine } = actor;
    const [appends, syncs] = [disk.count("wal-append"), disk.count("wal-fdatasync")];
    const before = { ...engine.counts };
    disk.hold("wal-fdatasync");
    const outcomes: Promise<ProposeOutcome>[] = [];
    for (let i = 0; i < 20; i++) {
      outcomes.push(engine.propose([bytesOf(`${i}`)]));
      await stage.drain();
    }
    expect(disk.waiting("wal-fdatasync")).toBe(1);
    expect(disk.count("wal-append")).toBe(appends + 1);
    disk.release("wal-fdatasync");
    expect((await Promise.all(outcomes)).map(({ outcome }) => outcome)).toEqual(Array(20).fill("committed"));
    expect(disk.count("wal-append")).toBe(appends + 2);
    expect(disk.count("wal-fdatasync")).toBe(syncs + 2);
    expect(engine.counts.syncs).toBe(before.syncs + 2);
    expect(engine.counts.persisted).toBe(before.persisted + 20);
  });

  test("what is proposed in one turn is one Ready", async () => {
    const { actor } = await single();
    const before = actor.engine.counts.persisted;
    await Promise.all(["a", "b", "c"].map((text) => actor.engine.propose([bytesOf(text)])));
    expect(actor.engine.counts.persisted).toBe(before + 1);
    expect(actor.machine.applied).toEqual(["a", "b", "c"]);
  });

  test("what is proposed in the instant in which the writer ends is written, too", async () => {
    const stage = new Stage([n1], drain);
    const outcomes: ProposeOutcome[] = [];
    const actor: Actor = await stage.start(n1, {
      onEvent: (event) => {
        if (event.kind !== "established") return;
        void actor.engine.propose([bytesOf("first")]).then((outcome) => outcomes.push(outcome));
      },
    });
    await stage.lead(actor);
    expect(outcomes).toEqual([{ outcome: "committed", index: 3, term: 2 }]);
  });
});

describe("order", () => {
  test("trap 2: a vote leaves only after the sync that it depends on", async () => {
    const { stage, actor } = await alone();
    actor.disk.hold("wal-fdatasync");
    await stage.say(voteRequest);
    expect(actor.engine.status().vote).toBe(n2);
    expect(actor.disk.waiting("wal-fdatasync")).toBe(1);
    expect(types(stage.sentBy(n1))).toEqual([]);
    actor.disk.release("wal-fdatasync");
    await stage.drain();
    expect(types(stage.sentBy(n1))).toEqual(["MsgVoteResp"]);
  });

  test("trap 2: an append is acknowledged only after its sync, and applied only then", async () => {
    const { stage, actor } = await alone();
    actor.disk.hold("wal-append");
    await stage.say(append(2, 2));
    expect(types(stage.sentBy(n1))).toEqual([]);
    actor.disk.hold("wal-fdatasync");
    actor.disk.release("wal-append");
    await stage.drain();
    expect(types(stage.sentBy(n1))).toEqual([]);
    expect(actor.machine.applied).toEqual([]);
    actor.disk.release("wal-fdatasync");
    await stage.drain();
    expect(stage.sentBy(n1)).toMatchObject([{ type: "MsgAppResp", index: 2, reject: false }]);
    expect(actor.machine.applied).toEqual(["e2"]);
  });

  test("an answer that waits for nothing new still waits for the writes before it", async () => {
    const { stage, actor } = await alone();
    actor.disk.hold("wal-fdatasync");
    await stage.say(append(2));
    await stage.say(append(2));
    expect(types(stage.sentBy(n1))).toEqual([]);
    actor.disk.release("wal-fdatasync");
    await stage.drain();
    expect(types(stage.sentBy(n1))).toEqual(["MsgAppResp", "MsgAppResp"]);
  });

  test("a leader replicates while its own disk writes, and commits with the copies of others", async () => {
    const { stage, actors } = await three();
    const [leader] = actors;
    leader.disk.hold("wal-fdatasync");
    const sent = stage.sent.length;
    const outcome = leader.engine.propose([bytesOf("x")]);
    await stage.drain();
    expect(types(stage.sent.slice(sent).map(({ message }) => message))).toEqual(["MsgApp", "MsgApp"]);
    await stage.settle();
    expect(leader.engine.status().commit).toBe(3);
    expect(leader.machine.applied).toEqual([]);
    leader.disk.release("wal-fdatasync");
    expect(await outcome).toEqual({ outcome: "committed", index: 3, term: 2 });
    expect(leader.machine.applied).toEqual(["x"]);
  });

  test("trap 25: a leader counts its own copy only after its own sync, also when it is alone", async () => {
    const { stage, actor } = await single();
    actor.disk.hold("wal-fdatasync");
    const outcome = actor.engine.propose([bytesOf("x")]);
    await stage.settle();
    expect(actor.engine.status().commit).toBe(2);
    actor.disk.release("wal-fdatasync");
    expect((await outcome).outcome).toBe("committed");
  });
});

describe("the writes that wait", () => {
  test("trap 28: are bounded behind a disk that hangs; afterwards the node goes on", async () => {
    const { stage, actor } = await alone();
    actor.disk.hold("wal-fdatasync");
    await stage.say(append(2));
    // Each answer waits for the sync, in a write of its own: one turn of the loop for each.
    await stage.sayOften(append(2), WRITE_QUEUE_MAX);
    expect(actor.engine.counts.droppedFrames).toBe(0);
    for (let i = 0; i < 10; i++) await stage.say(append(3));
    expect(actor.engine.counts.droppedFrames).toBe(10);
    expect(actor.engine.status().lastIndex).toBe(2);
    actor.disk.release("wal-fdatasync");
    await stage.drain();
    expect(stage.sentBy(n1).length).toBe(WRITE_QUEUE_MAX + 1);
    await stage.say(append(3));
    expect(stage.sentBy(n1).at(-1)).toMatchObject({ type: "MsgAppResp", index: 3, reject: false });
  });
});

describe("the timer", () => {
  test("trap 29: that fires late by a stall's length counts one, and one that is nearly as late does not", async () => {
    for (const [lateMs, stalls] of [
      [LOOP_STALL_MS - 1, 0],
      [LOOP_STALL_MS, 1],
    ] as const) {
      const clock = new ManualClock();
      const { actor } = await alone({ clock });
      clock.nowMs = clock.nextMs + lateMs;
      clock.fireNext();
      expect(actor.engine.counts.stalls, `${lateMs} ms`).toBe(stalls);
      await drain();
      expect(clock.nextMs).toBeGreaterThan(clock.nowMs);
    }
  });

  test("is not armed again by every heartbeat", async () => {
    const clock = new ManualClock();
    // Nearly the same timeout at each draw, so that each heartbeat moves the deadline away and none moves it closer.
    const election = { electionTimeoutMinMs: 200, electionTimeoutMaxMs: 201 };
    const { stage, actor } = await alone({ clock, election });
    const before = clock.timersSet;
    for (let i = 0; i < 200; i++) {
      clock.nowMs += 5;
      while (clock.fireNext()) await drain();
      await stage.say({
        type: "MsgHeartbeat",
        from: n2,
        to: n1,
        term: 5,
        commit: 1,
        announced: 1,
        echo: 0,
        round: i + 1,
      });
    }
    expect(actor.engine.status()).toMatchObject({ role: "follower", leader: n2, term: 5 });
    expect(types(stage.sentBy(n1)).filter((type) => type !== "MsgHeartbeatResp")).toEqual([]);
    // A second has five timeouts in it: each fires once, finds that it came too early, and is set again.
    expect(clock.timersSet - before).toBeGreaterThanOrEqual(4);
    expect(clock.timersSet - before).toBeLessThanOrEqual(6);
    expect(clock.pending).toBe(1);
  });

  test("still fires when heartbeats end: a campaign begins", async () => {
    const { stage, actor } = await alone();
    await stage.say({ type: "MsgHeartbeat", from: n2, to: n1, term: 5, commit: 1, announced: 1, echo: 0, round: 1 });
    await stage.advance(301);
    expect(actor.engine.status().role).toBe("pre-candidate");
    expect(types(stage.sentBy(n1))).toContain("MsgPreVote");
  });
});

describe("a restart", () => {
  test("applies again what was committed, and keeps term, vote and log", async () => {
    const { actor } = await single();
    await actor.engine.propose([bytesOf("a"), bytesOf("b")]);
    await actor.engine.propose([bytesOf("c")]);
    const before = actor.engine.status();
    await actor.engine.stop();
    const stage = new Stage([n1], drain);
    const again = await stage.start(n1, {}, new HeldDisk(actor.disk.inner));
    expect(again.engine.recovery).toBe("intact");
    expect(again.engine.status()).toMatchObject({ term: before.term, vote: n1, lastIndex: before.lastIndex });
    await stage.lead(again);
    expect(again.machine.applied).toEqual(["a", "b", "c"]);
  });
});
