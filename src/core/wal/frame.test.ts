import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { peerKey } from "../kit/ids.ts";
import { findMagic, FRAME_OVERHEAD_BYTES, FrameWriter, readFrame } from "./frame.ts";
import { decodeSnapshotFile, encodeSnapshotFile } from "./snapshot-file.ts";
import { decodeStampFile, encodeStampFile } from "./stamp.ts";

const PAYLOAD_BYTES_MAX = 1024;

function framed(texts: readonly string[], seed: number): Uint8Array {
  const frames = new FrameWriter();
  for (const text of texts) frames.begin("entry").text(text);
  return frames.finish(seed, digest);
}

describe("frames", () => {
  test("what was written is read, one frame behind the other", () => {
    const property = fc.property(fc.array(fc.string({ maxLength: 40 }), { minLength: 1 }), fc.nat(), (texts, seed) => {
      const bytes = framed(texts, seed);
      let at = 0;
      for (const text of texts) {
        const frame = readFrame(bytes, at, seed, PAYLOAD_BYTES_MAX, digest);
        if (frame.kind !== "frame") return expect.fail(frame.kind);
        expect(frame.type).toBe("entry");
        expect(new TextDecoder().decode(bytes.subarray(frame.payloadAt + 4, frame.endBytes))).toBe(text);
        at = frame.endBytes;
      }
      expect(at).toBe(bytes.length);
      return undefined;
    });
    fc.assert(property, { seed: 1, numRuns: 100 });
  });

  test("no changed bit, no missing byte and no other seed is believed", () => {
    const bytes = framed(["some text"], 7);
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const spoiled = bytes.slice();
      spoiled[bit >> 3]! ^= 1 << (bit & 7);
      expect(readFrame(spoiled, 0, 7, PAYLOAD_BYTES_MAX, digest).kind).toBe("bad");
    }
    for (let size = 0; size < bytes.length; size++) {
      expect(readFrame(bytes.subarray(0, size), 0, 7, PAYLOAD_BYTES_MAX, digest).kind).toBe("bad");
    }
    expect(readFrame(bytes, 0, 8, PAYLOAD_BYTES_MAX, digest).kind).toBe("bad");
    expect(readFrame(bytes, 0, 7, PAYLOAD_BYTES_MAX, digest).kind).toBe("frame");
  });

  test("a length past the bound is not followed, at the bound it is", () => {
    const bytes = framed(["12345678"], 0);
    const payloadBytes = bytes.length - FRAME_OVERHEAD_BYTES;
    expect(readFrame(bytes, 0, 0, payloadBytes, digest).kind).toBe("frame");
    expect(readFrame(bytes, 0, 0, payloadBytes - 1, digest).kind).toBe("bad");
  });

  test("a search finds every frame behind any bytes", () => {
    const property = fc.property(fc.uint8Array({ maxLength: 60 }), (noise) => {
      const bytes = Uint8Array.from([...noise, ...framed(["a"], 0), ...noise, ...framed(["b"], 0)]);
      const found: number[] = [];
      for (let at = findMagic(bytes, 0); at >= 0; at = findMagic(bytes, at + 1)) found.push(at);
      const second = noise.length * 2 + framed(["a"], 0).length;
      expect(found).toEqual(expect.arrayContaining([noise.length, second]));
    });
    fc.assert(property, { seed: 2, numRuns: 100 });
  });
});

describe("files of one frame", () => {
  const voters = [peerKey("n1", "a1")];
  const configuration = { voters, votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false };
  const meta = { index: 12, term: 3, configuration };
  const data = new TextEncoder().encode("state");
  const stamp = { clusterId: "c", nodeId: "n1", incarnation: "a1" };

  test("a snapshot comes back with its meta data and contents", () => {
    expect(decodeSnapshotFile(encodeSnapshotFile(meta, data, digest), digest)).toEqual({ kind: "whole", meta, data });
  });

  test("a stamp comes back with its phase", () => {
    for (const phase of ["founding", "joining", "replacing", "ready"] as const) {
      expect(decodeStampFile(encodeStampFile(stamp, phase, digest), digest)).toEqual({ kind: "stamp", stamp, phase });
    }
  });

  test("neither is believed with a byte too much, too little, or changed, or in the other's place", () => {
    const snapshot = encodeSnapshotFile(meta, data, digest);
    const stampFile = encodeStampFile(stamp, "ready", digest);
    for (const [bytes, decode] of [
      [snapshot, decodeSnapshotFile],
      [stampFile, decodeStampFile],
    ] as const) {
      const spoiled = [Uint8Array.from([...bytes, 0]), bytes.slice(0, -1), new Uint8Array(0)];
      for (let at = 0; at < bytes.length; at++) spoiled.push(bytes.map((byte, i) => (i === at ? byte ^ 0x40 : byte)));
      for (const other of spoiled) expect(decode(other, digest).kind).toBe("bad");
    }
    expect(decodeSnapshotFile(stampFile, digest).kind).toBe("bad");
    expect(decodeStampFile(snapshot, digest).kind).toBe("bad");
  });
});
