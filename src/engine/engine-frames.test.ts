import { beforeEach, describe, expect, test } from "vitest";
import { encodeMessage, type Message, type MsgHeartbeat, type MsgSnap } from "../core/raft/index.ts";
import type { PeerKey } from "../core/kit/ids.ts";
import { sealEnvelope } from "./envelope.ts";
import { CLUSTER, n1, n2, n3, Stage, type Actor } from "./test-engine.ts";
import { bytesOf, digest, snapshotAt, sentSnapshot } from "./test-storage.ts";

const drain = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const heartbeat: MsgHeartbeat = {
  type: "MsgHeartbeat",
  from: n2,
  to: n1,
  term: 9,
  commit: 1,
  announced: 1,
  echo: 0,
  round: 1,
};
const snap: MsgSnap = { type: "MsgSnap", from: n2, to: n1, term: 9, snapshot: snapshotAt(50, 8), round: 1 };
const contents = bytesOf(JSON.stringify(["fifty"]));
const file = sentSnapshot(snap.snapshot, contents);

function seal(message: Message, attachment: Uint8Array | null = null, clusterId = CLUSTER): Uint8Array {
  return sealEnvelope(message, clusterId, attachment, digest);
}

function flipped(bytes: Uint8Array, at: number): Uint8Array {
  const copy = bytes.slice();
  copy[at]! ^= 0x10;
  return copy;
}

/** An envelope whose checksum is right, around a message that is not. */
function sealedBytes(body: Uint8Array): Uint8Array {
  const sealed = new Uint8Array(8 + body.length);
  const view = new DataView(sealed.buffer);
  view.setUint32(4, body.length);
  sealed.set(body, 8);
  view.setUint32(0, digest.crc32(sealed.subarray(4)));
  return sealed;
}

let stage: Stage;
let actor: Actor;
beforeEach(async () => {
  stage = new Stage([n1, n2, n3], drain);
  actor = await stage.start(n1);
});

/** Everything that a message could change. */
function whole(): unknown {
  const { engine, disk, machine, events, fatal } = actor;
  const { pending, timersSet, nextMs } = stage.clock;
  return structuredClone({
    status: engine.status(),
    refusals: engine.raft.refusals,
    counts: { ...engine.counts, refusedFrames: 0 },
    calls: disk.inner.calls,
    applied: machine.applied,
    sent: stage.sent.length,
    timers: [pending, timersSet, nextMs],
    events,
    fatal,
  });
}

describe("a frame is refused, counted and changes nothing, when it", () => {
  test.each<[string, Uint8Array, PeerKey]>([
    ["is empty", new Uint8Array(0), n2],
    ["is one byte", Uint8Array.of(1), n2],
    ["is garbage", Uint8Array.from({ length: 64 }, (_, i) => (i * 37) & 255), n2],
    ["is zeros", new Uint8Array(64), n2],
    ["is cut", seal(heartbeat).slice(0, -1), n2],
    ["has a flipped bit", flipped(seal(heartbeat), 12), n2],
    ["holds an empty message", sealedBytes(new Uint8Array(0)), n2],
    ["holds half a message", sealedBytes(encodeMessage(heartbeat, CLUSTER).slice(0, 20)), n2],
    ["is of another cluster", seal(heartbeat, null, "other"), n2],
    ["comes over another peer's connection", seal(heartbeat), n3],
    ["has something behind a message without contents", seal(heartbeat, contents), n2],
    ["is a snapshot without contents", seal(snap), n2],
    ["is a snapshot with broken contents", seal(snap, flipped(file, file.length - 3)), n2],
    ["is a snapshot with half of its contents", seal(snap, file.slice(0, -5)), n2],
    ["is a snapshot with the contents of another index", seal({ ...snap, snapshot: snapshotAt(51, 8) }, file), n2],
    ["is a snapshot with the contents of another term", seal({ ...snap, snapshot: snapshotAt(50, 7) }, file), n2],
    [
      "is a snapshot with another configuration than its contents",
      seal(
        { ...snap, snapshot: { ...snap.snapshot, configuration: { ...snap.snapshot.configuration, voters: [n2] } } },
        file,
      ),
      n2,
    ],
  ])("%s", async (_, bytes, from) => {
    const before = whole();
    await stage.deliver(n1, from, bytes);
    expect(actor.engine.counts.refusedFrames).toBe(1);
    expect(whole()).toEqual(before);
  });
});

test("a whole heartbeat is heard, and a whole snapshot restored: the frames above lack what they say", async () => {
  await stage.deliver(n1, n2, seal(heartbeat));
  expect(actor.engine.status()).toMatchObject({ leader: n2, term: 9 });
  await stage.deliver(n1, n2, seal(snap, file));
  expect(actor.engine.counts).toMatchObject({ refusedFrames: 0, snapshotsRestored: 1 });
  expect(actor.machine.applied).toEqual(["fifty"]);
  expect(actor.engine.status()).toMatchObject({ commit: 50, applied: 50, lastIndex: 50 });
  expect(stage.sentBy(n1).at(-1)).toMatchObject({ type: "MsgAppResp", index: 50, reject: false });
});

test("a snapshot that comes while another waits for the disk is dropped, and taken later", async () => {
  actor.disk.hold("wal-fdatasync");
  await stage.say({ ...heartbeat, term: 10 });
  await stage.say({ ...snap, term: 10 }, file);
  const newer = { ...snap, term: 10, snapshot: snapshotAt(60, 8) };
  const newerFile = sentSnapshot(newer.snapshot, bytesOf(JSON.stringify(["sixty"])));
  await stage.say(newer, newerFile);
  expect(actor.engine.counts).toMatchObject({ droppedFrames: 1, snapshotsRestored: 1, refusedFrames: 0 });
  expect(actor.machine.applied).toEqual(["fifty"]);
  actor.disk.release("wal-fdatasync");
  await stage.drain();
  await stage.say(newer, newerFile);
  expect(actor.machine.applied).toEqual(["sixty"]);
  expect(stage.sentBy(n1).at(-1)).toMatchObject({ type: "MsgAppResp", index: 60 });
});
