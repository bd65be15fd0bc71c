import { describe, expect, test } from "vitest";
import type { Message, MsgHeartbeat, MsgSnap } from "../core/raft/index.ts";
import { openEnvelope, openInSlices, sealBefore, sealEnvelope } from "./envelope.ts";
import { Snapshots } from "./snapshots.ts";
import { bytesOf, configuration, digest, entry, n1, n2, sentSnapshot } from "./test-storage.ts";

const heartbeat: MsgHeartbeat = {
  type: "MsgHeartbeat",
  from: n1,
  to: n2,
  term: 7,
  commit: 5,
  announced: 5,
  echo: 0,
  round: 3,
};
const append: Message = {
  type: "MsgApp",
  from: n1,
  to: n2,
  term: 7,
  index: 4,
  logTerm: 6,
  entries: [entry(5, 7), entry(6, 7, "")],
  commit: 5,
  round: 3,
};
const snap: MsgSnap = {
  type: "MsgSnap",
  from: n1,
  to: n2,
  term: 7,
  snapshot: { index: 9, term: 6, configuration },
  round: 3,
};

function open(bytes: Uint8Array): ReturnType<typeof openEnvelope> {
  return openEnvelope(bytes, "c", digest);
}

describe("an envelope", () => {
  test.each<[string, Message, Uint8Array | null]>([
    ["a heartbeat", heartbeat, null],
    ["entries", append, null],
    ["a snapshot", snap, bytesOf("contents")],
    ["a snapshot without contents", snap, null],
  ])("with %s opens as it was sealed", (_, message, attachment) => {
    const opened = open(sealEnvelope(message, "c", attachment, digest));
    expect(opened.decoded).toEqual({ ok: true, message });
    expect(opened.attachment).toEqual(attachment ?? new Uint8Array(0));
  });

  test("opens in the middle of a larger buffer, as a wire reads it", () => {
    const sealed = sealEnvelope(snap, "c", bytesOf("contents"), digest);
    const buffer = new Uint8Array(sealed.length + 20).fill(0xee);
    buffer.set(sealed, 13);
    const opened = open(buffer.subarray(13, 13 + sealed.length));
    expect(opened.decoded).toEqual({ ok: true, message: snap });
    expect(opened.attachment).toEqual(bytesOf("contents"));
  });

  test("is refused with any single bit flipped", () => {
    for (const sealed of [
      sealEnvelope(append, "c", null, digest),
      sealEnvelope(snap, "c", bytesOf("contents"), digest),
    ]) {
      for (let bit = 0; bit < sealed.length * 8; bit++) {
        const flipped = sealed.slice();
        flipped[bit >> 3]! ^= 1 << (bit & 7);
        expect(open(flipped).decoded.ok, `bit ${bit}`).toBe(false);
      }
    }
  });

  test("is refused when it is cut anywhere, or longer than it was", () => {
    const sealed = sealEnvelope(snap, "c", bytesOf("contents"), digest);
    for (let size = 0; size < sealed.length; size++) {
      expect(open(sealed.slice(0, size)).decoded.ok, `${size} bytes`).toBe(false);
    }
    expect(open(Uint8Array.from([...sealed, 0])).decoded.ok).toBe(false);
  });

  test("whose length points behind its end is refused, although its checksum is right", () => {
    const sealed = sealEnvelope(heartbeat, "c", null, digest);
    const view = new DataView(sealed.buffer);
    for (const length of [sealed.length - 7, 2 ** 32 - 1]) {
      view.setUint32(4, length);
      view.setUint32(0, digest.crc32(sealed.subarray(4)));
      expect(open(sealed).decoded).toEqual({ ok: false, reason: "truncated" });
    }
  });

  test("of another cluster is refused", () => {
    expect(openEnvelope(sealEnvelope(heartbeat, "d", null, digest), "c", digest).decoded).toMatchObject({ ok: false });
  });

  test("with something behind a message that has no contents is refused", () => {
    expect(open(sealEnvelope(heartbeat, "c", bytesOf("x"), digest)).decoded).toEqual({ ok: false, reason: "trailing" });
  });

  test("with a snapshot in two parts is, byte by byte, the one in one piece", () => {
    const data = bytesOf("contents".repeat(40));
    const snapshots = new Snapshots({}, digest);
    snapshots.keep(snap.snapshot, data);
    const sealing = snapshots.seal(snapshots.inMemory!).next();
    expect(sealing.done, "a small one is sealed at once").toBe(true);
    const parts = [sealBefore(sealing.value!, snap, "c", digest), data];
    const whole = sealEnvelope(snap, "c", sentSnapshot(snap.snapshot, data), digest);
    expect(Uint8Array.from(parts.flatMap((part) => [...part]))).toEqual(whole);
  });

  test("opens slice by slice as at once, whole or with any byte flipped", () => {
    const sealed = sealEnvelope(snap, "c", bytesOf("contents"), digest);
    expect(openInSlices(sealed, "c", digest).next().value).toEqual(open(sealed));
    for (let at = 0; at < sealed.length; at++) {
      const flipped = sealed.slice();
      flipped[at]! ^= 1;
      expect(openInSlices(flipped, "c", digest).next().value).toMatchObject({ decoded: { ok: false } });
    }
    expect(openInSlices(sealed.subarray(0, 3), "c", digest).next().value).toMatchObject({ decoded: { ok: false } });
  });
});
