import { describe, expect, test } from "vitest";
import type { EngineOptions } from "./engine-options.ts";
import { HeldDisk, ListMachine, n1, n2, n3, Stage, type Actor } from "./test-engine.ts";
import { bytesOf } from "./test-storage.ts";

const drain = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const snapshots = { afterEntries: 5, keepEntries: 1 };

async function single(options: Partial<EngineOptions> = {}): Promise<{ stage: Stage; actor: Actor }> {
  const stage = new Stage([n1], drain);
  const actor = await stage.start(n1, { snapshots, ...options });
  await stage.lead(actor);
  return { stage, actor };
}

async function write(stage: Stage, actor: Actor, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    const outcome = actor.engine.propose([bytesOf(text)]);
    await stage.settle();
    expect(await outcome).toMatchObject({ outcome: "committed" });
  }
}

const numbered = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => `w${from + i}`);

describe("an own snapshot", () => {
  test("is saved beside the writer: writes go on while its file is being synced", async () => {
    const { stage, actor } = await single();
    const { disk, engine, machine } = actor;
    disk.hold("snapshot-fdatasync");
    await write(stage, actor, ...numbered(1, 4));
    expect(disk.waiting("snapshot-fdatasync")).toBe(1);
    await write(stage, actor, ...numbered(5, 30));
    expect(machine.applied).toEqual(numbered(1, 30));
    expect(engine.counts.snapshotsSaved).toBe(0);
    expect(engine.status().firstIndex).toBe(2);
    // One at a time, although another was due by now.
    expect(machine.snapshots).toBe(1);
    disk.release("snapshot-fdatasync");
    await stage.drain();
    expect(engine.counts.snapshotsSaved).toBe(1);
    expect(engine.status().firstIndex).toBe(6);
    expect(disk.inner.names()).toContain("snapshot-6-2");

    await engine.stop();
    const again = await stage.start(n1, {}, new HeldDisk(disk.inner));
    expect(again.engine.recovery).toBe("intact");
    await stage.lead(again);
    expect(again.machine.applied).toEqual(numbered(1, 30));
  });

  test("is of the moment in which it was taken, however long it takes to serialise", async () => {
    const stateMachine = new ListMachine();
    let finish = (): void => undefined;
    stateMachine.snapshot = () => {
      const state = JSON.stringify(stateMachine.applied);
      return new Promise((resolve) => {
        finish = () => resolve(bytesOf(state));
      });
    };
    const { stage, actor } = await single({ stateMachine });
    await write(stage, actor, ...numbered(1, 10));
    expect(actor.engine.counts.snapshotsSaved).toBe(0);
    finish();
    await stage.drain();
    expect(actor.engine.counts.snapshotsSaved).toBe(1);
    await actor.engine.stop();
    const again = await stage.start(n1, {}, new HeldDisk(actor.disk.inner));
    await stage.lead(again);
    expect(again.machine.applied).toEqual(numbered(1, 10));
  });

  test("that an operator asks for while one is under way holds the state of its own index, whatever is applied meanwhile", async () => {
    const { stage, actor } = await single({ snapshots: { afterEntries: 1_000, keepEntries: 1 } });
    actor.disk.hold("snapshot-fdatasync");
    await write(stage, actor, ...numbered(1, 3));
    const first = actor.engine.saveSnapshot();
    await write(stage, actor, ...numbered(4, 5));
    const second = actor.engine.saveSnapshot();
    await write(stage, actor, ...numbered(6, 9));
    actor.disk.release("snapshot-fdatasync");
    await stage.drain();
    await Promise.all([first, second]);
    expect(actor.engine.snapshot?.index, "it covers what was applied when it was asked for").toBeGreaterThanOrEqual(7);
    await actor.engine.stop();
    const again = await stage.start(n1, {}, new HeldDisk(actor.disk.inner));
    await stage.lead(again);
    expect(again.machine.applied).toEqual(numbered(1, 9));
  });

  test("that can't be taken ends the engine", async () => {
    const stateMachine = new ListMachine();
    stateMachine.snapshot = () => Promise.reject(new Error("out of memory"));
    const { stage, actor } = await single({ stateMachine });
    void actor.engine.propose(numbered(1, 5).map(bytesOf));
    await stage.settle();
    expect(actor.fatal.map(String)).toEqual(["Error: out of memory"]);
  });

  test("is taken again and again, by entries and by bytes, and old files go", async () => {
    const { stage, actor } = await single({ snapshots: { afterEntries: 1_000, afterBytes: 20, keepEntries: 1 } });
    await write(stage, actor, ...numbered(10, 39));
    await stage.drain();
    expect(actor.engine.counts.snapshotsSaved).toBeGreaterThanOrEqual(3);
    expect(actor.disk.inner.names().filter((name) => name.startsWith("snapshot-"))).toHaveLength(1);
  });
});

describe("a follower far behind", () => {
  async function behind(): Promise<{ stage: Stage; leader: Actor; late: Actor }> {
    const stage = new Stage([n1, n2, n3], drain);
    const leader = await stage.start(n1, { snapshots });
    await stage.start(n2, { snapshots });
    const late = await stage.start(n3, { snapshots });
    await stage.lead(leader);
    await write(stage, leader, ...numbered(1, 3));
    stage.cut.add(n3);
    await write(stage, leader, ...numbered(4, 20));
    await stage.drain();
    expect(leader.engine.status().firstIndex).toBeGreaterThan(late.engine.status().lastIndex + 1);
    return { stage, leader, late };
  }

  test("is restored from the leader's snapshot, follows, and has it all after a restart", async () => {
    const { stage, leader, late } = await behind();
    expect(late.machine.applied).toEqual(numbered(1, 3));
    stage.cut.clear();
    await stage.advance(200);
    expect(late.engine.counts.snapshotsRestored).toBe(1);
    expect(late.machine.applied).toEqual(numbered(1, 20));
    await write(stage, leader, ...numbered(21, 22));
    expect(late.machine.applied).toEqual(numbered(1, 22));
    expect(late.fatal).toEqual([]);

    await late.engine.stop();
    const again = await stage.start(n3, { snapshots }, new HeldDisk(late.disk.inner));
    expect(again.engine.recovery).toBe("intact");
    await stage.advance(200);
    expect(again.machine.applied).toEqual(numbered(1, 22));
  });

  test("acknowledges the snapshot only when it is durable; a crash before that goes back to the old log", async () => {
    const { stage, late } = await behind();
    stage.cut.clear();
    late.disk.hold("snapshot-fdatasync");
    const before = late.engine.status();
    await stage.advance(200);
    expect(late.machine.applied.length).toBeGreaterThan(3);
    const acknowledged = stage
      .sentBy(n3)
      .flatMap((message) => (message.type === "MsgAppResp" && !message.reject ? [message.index] : []));
    expect(Math.max(...acknowledged)).toBe(before.lastIndex);

    const crashed = new HeldDisk(late.disk.inner.clone());
    stage.cut.add(n1).add(n2);
    const again = await stage.start(n3, { snapshots }, crashed);
    expect(again.engine.recovery).toBe("intact");
    expect(again.engine.status()).toMatchObject({ lastIndex: before.lastIndex, term: before.term });
    stage.cut.clear();
    await stage.advance(2_500);
    expect(again.machine.applied).toEqual(numbered(1, 20));
  });

  test("that saves its own snapshot meanwhile keeps the leader's, and ours gives way", async () => {
    const stage = new Stage([n1, n2, n3], drain);
    const leader = await stage.start(n1, { snapshots });
    await stage.start(n2, { snapshots });
    const late = await stage.start(n3, { snapshots });
    late.disk.hold("snapshot-fdatasync");
    await stage.lead(leader);
    await write(stage, leader, ...numbered(1, 5));
    expect(late.disk.waiting("snapshot-fdatasync")).toBe(1);
    stage.cut.add(n3);
    await write(stage, leader, ...numbered(6, 30));
    stage.cut.clear();
    await stage.advance(200);
    expect(late.disk.waiting("snapshot-fdatasync")).toBe(2);
    expect(late.engine.counts.snapshotsRestored).toBe(1);
    late.disk.release("snapshot-fdatasync");
    await stage.advance(200);
    expect(late.engine.counts.snapshotsSaved).toBe(0);
    expect(late.machine.applied).toEqual(numbered(1, 30));
    expect(late.fatal).toEqual([]);
    await late.engine.stop();
    const again = await stage.start(n3, { snapshots }, new HeldDisk(late.disk.inner));
    expect(again.engine.recovery).toBe("intact");
    expect(late.disk.inner.names().filter((name) => name.startsWith("snapshot-"))).toHaveLength(1);
    await stage.advance(200);
    expect(again.machine.applied).toEqual(numbered(1, 30));
  });
});
