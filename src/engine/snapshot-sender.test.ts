import { expect, test } from "vitest";
import type { PeerKey } from "../core/kit/ids.ts";
import type { MsgSnap } from "../core/raft/index.ts";
import { openEnvelope } from "./envelope.ts";
import { SnapshotSender } from "./snapshot-sender.ts";
import { type SnapshotContents, Snapshots } from "./snapshots.ts";
import { Slices } from "./storage-slices.ts";
import { ManualClock } from "../loops/test-clock.ts";
import { n1, n2, n3 } from "./test-engine.ts";
import { digest, snapshotAt } from "./test-storage.ts";

const MIB = 1024 * 1024;
const contents = new Uint8Array(MIB + 1).fill(7);

function of(index: number, to: PeerKey): MsgSnap {
  return { type: "MsgSnap", from: n1, to, term: 9, snapshot: snapshotAt(index, 8), round: 1 };
}

function stage(memoryBytesMax = 8 * MIB) {
  const clock = new ManualClock();
  const snapshots = new Snapshots({ memoryBytesMax }, digest);
  /** What the disk has. */
  const disk: { contents: SnapshotContents | null } = { contents: { meta: snapshotAt(5, 8), data: contents } };
  const state = { isRunning: true };
  const sent: { to: PeerKey; bytes: Uint8Array }[] = [];
  const gone: PeerKey[] = [];
  const isRunning = (): boolean => state.isRunning;
  const failed = (error: unknown): never => {
    throw error;
  };
  const slices = new Slices(clock, isRunning, failed);
  const storage = { readSnapshot: () => Promise.resolve(disk.contents) };
  const send = (to: PeerKey, bytes: Uint8Array): number => sent.push({ to, bytes });
  const wire = { start: () => undefined, send, stop: () => undefined };
  const isGone = (peer: PeerKey): number => gone.push(peer);
  const around = { clusterId: "c", digest, snapshots, slices, wire, isGone, storage, isRunning, failed };
  const sender = new SnapshotSender(around);
  snapshots.keep(snapshotAt(5, 8), contents);
  const passTurns = (): void => {
    while (clock.fireNext()) continue;
  };
  return { clock, snapshots, disk, state, sent, gone, sender, passTurns };
}

test("whoever needs the snapshot while it is sealed gets it when it is", () => {
  const { sender, sent, gone, passTurns } = stage();
  sender.send(of(5, n2));
  sender.send(of(5, n3));
  expect(sent, "not in this turn").toEqual([]);
  passTurns();
  expect(sent.map(({ to }) => to)).toEqual([n2, n3]);
  for (const { to, bytes } of sent) {
    expect(openEnvelope(bytes, "c", digest).decoded).toEqual({ ok: true, message: of(5, to) });
  }
  sender.send(of(5, n2));
  expect(sent, "sealed before: at once").toHaveLength(3);
  expect(gone).toEqual([]);
});

test("one that is replaced while it is sealed is not sent, and not under the name of the new one", () => {
  const { sender, snapshots, sent, gone, passTurns } = stage();
  sender.send(of(5, n2));
  snapshots.keep(snapshotAt(6, 8), contents.subarray(1));
  sender.send(of(6, n3));
  passTurns();
  expect(sent).toEqual([]);
  expect(gone, "the core decides again, for both").toEqual([n2, n3]);
  sender.send(of(6, n3));
  sender.send(of(5, n2));
  passTurns();
  expect(sent.map(({ to }) => to)).toEqual([n3]);
  expect(gone).toEqual([n2, n3, n2]);
});

test("a node that stops while it is sealed sends nothing", () => {
  const { sender, state, clock, sent, gone, passTurns } = stage();
  sender.send(of(5, n2));
  state.isRunning = false;
  passTurns();
  expect([sent, gone]).toEqual([[], []]);
  expect(clock.pending).toBe(0);
});

test("a large one is not kept in memory, and read again for whoever needs it", async () => {
  const { sender, snapshots, sent, gone, passTurns } = stage(MIB);
  expect([snapshots.inMemory, snapshots.newest?.bytes]).toEqual([null, contents.length]);
  sender.send(of(5, n2));
  sender.send(of(5, n3));
  for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  passTurns();
  expect(sent.map(({ to }) => to)).toEqual([n2, n3]);
  for (const { to, bytes } of sent) {
    expect(openEnvelope(bytes, "c", digest).decoded).toEqual({ ok: true, message: of(5, to) });
  }
  expect([snapshots.inMemory, gone]).toEqual([null, []]);
});

test("where the disk has another one, or none, the core decides again", async () => {
  const { sender, disk, sent, gone, passTurns } = stage(MIB);
  for (const found of [{ meta: snapshotAt(4, 8), data: contents }, null]) {
    disk.contents = found;
    sender.send(of(5, n2));
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    passTurns();
  }
  expect([sent, gone]).toEqual([[], [n2, n2]]);
});
