import { crc32 } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { peerKey } from "../kit/ids.ts";
import type { Entry, HardState, SnapshotMeta } from "../raft/types.ts";
import { recover, type Recovery, type RecoveryInput } from "./recovery.ts";
import { encodeBatch, encodeSegmentHeader, segmentSeed, type BatchPart, type SegmentHeader } from "./segment.ts";
import { encodeSnapshotFile } from "./snapshot-file.ts";
import { encodeStampFile } from "./stamp.ts";

const stamp = { clusterId: "c", nodeId: "n1", incarnation: "a1" };
const vote = peerKey("n1", "a1");
const configuration = { voters: [vote], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false };
const meta: SnapshotMeta = { index: 5, term: 2, configuration };
const hardState: HardState = { term: 2, vote, commit: 5 };

function entry(index: number, term: number): Entry {
  return { index, term, type: "EntryNormal", data: Uint8Array.of(index) };
}

/** A directory of one segment after a snapshot at (5, 2); every batch knows all before it to be durable. */
function directory(batches: readonly BatchPart[][], header: Partial<SegmentHeader> = {}): RecoveryInput {
  const whole: SegmentHeader = {
    stamp,
    number: 3,
    oldestNumber: 3,
    previousBytes: 0,
    snapshot: meta,
    hardState,
    ...header,
  };
  let bytes = encodeSegmentHeader(whole, digest);
  const seed = segmentSeed(stamp, whole.number, digest);
  for (const parts of batches) bytes = Uint8Array.from([...bytes, ...encodeBatch(bytes.length, parts, seed, digest)]);
  return {
    clusterId: "c",
    nodeId: "n1",
    stamp: encodeStampFile(stamp, "ready", digest),
    segments: [{ name: "wal-3", number: 3, bytes }],
    snapshots: [{ name: "snapshot", bytes: encodeSnapshotFile(meta, new Uint8Array(0), digest) }],
  };
}

const part = (entries: readonly Entry[], state: HardState | null = null): BatchPart[] => [
  { hardState: state, entries },
];

function verdict(...batches: BatchPart[][]): Recovery {
  return recover(directory(batches), digest);
}

describe("replaying records", () => {
  test("entries that the snapshot covers are skipped, the ones behind it are kept", () => {
    const found = verdict(part([entry(4, 1), entry(5, 2), entry(6, 2), entry(7, 2)]));
    expect(found).toMatchObject({ kind: "intact", entries: [entry(6, 2), entry(7, 2)], cut: null });
  });

  test("an entry replaces the one at its index and all behind it, also below the first that is kept", () => {
    expect(
      verdict(part([entry(6, 1 + 1), entry(7, 2), entry(8, 2)]), part([entry(7, 3)], { ...hardState, term: 3 })),
    ).toMatchObject({
      kind: "intact",
      entries: [entry(6, 2), entry(7, 3)],
    });
    expect(verdict(part([entry(5, 1)]), part([entry(3, 1), entry(4, 2), entry(5, 2)]))).toMatchObject({
      kind: "intact",
      entries: [],
    });
  });

  test("gaps, falling terms, and terms that the hard state does not know are damage", () => {
    const cases: [string, BatchPart[]][] = [
      ["entry 7 where 6 is the next one", part([entry(7, 2)])],
      ["entry 8 where 7 is the next one", part([entry(6, 2), entry(8, 2)])],
      ["an entry of term 1 after one of 2", part([entry(6, 2), entry(7, 1)])],
      ["an entry of term 1 after a snapshot of term 2", part([entry(6, 1)])],
      ["an entry of term 3 in term 2", part([entry(6, 3)])],
      ["entry 5 of term 1 under a snapshot of term 2", part([entry(5, 1), entry(6, 2)])],
      ["term 1 after 2", part([], { ...hardState, term: 1 })],
    ];
    for (const [reason, parts] of cases)
      expect(verdict(parts)).toMatchObject({ kind: "damaged", reason, where: "wal-3" });
  });

  test("the commit index is at least the snapshot's and at most the last entry's", () => {
    expect(verdict(part([entry(6, 2)], { ...hardState, commit: 99 }))).toMatchObject({ hardState: { commit: 6 } });
    expect(verdict(part([entry(6, 2)], { ...hardState, commit: 0 }))).toMatchObject({ hardState: { commit: 5 } });
  });

  test("trap 31: an integer above 2^53-1 is damage, although its checksum holds", () => {
    const input = directory([part([entry(6, 2)])]);
    const [segment] = input.segments;
    const seed = segmentSeed(stamp, 3, digest);
    const bytes = segment!.bytes.slice();
    const frameAt = bytes.length - (14 + 22);
    bytes[frameAt + 14] = 0xff;
    new DataView(bytes.buffer).setUint32(frameAt + 4, crc32(bytes.subarray(frameAt + 8), seed));
    expect(recover({ ...input, segments: [{ ...segment!, bytes }] }, digest)).toMatchObject({
      kind: "damaged",
      reason: /wild/,
    });
  });
});

describe("zeros behind the last batch", () => {
  const batches = [part([entry(6, 2)]), part([entry(7, 2)])];
  const whole = directory(batches).segments[0]!;
  const padded = (zeros: number, spoil: (bytes: Uint8Array) => void = () => undefined): Recovery => {
    const bytes = new Uint8Array(whole.bytes.length + zeros);
    bytes.set(whole.bytes);
    spoil(bytes);
    return recover({ ...directory(batches), segments: [{ ...whole, bytes }] }, digest);
  };

  test("were reserved: the log ends in front of them, however few they are", () => {
    const sizeBytes = whole.bytes.length;
    for (const zeros of [1, 13, 14, 15, 512, 100_000]) {
      expect(padded(zeros)).toMatchObject({
        kind: "intact",
        entries: [entry(6, 2), entry(7, 2)],
        segments: [{ name: "wal-3", sizeBytes }],
        cut: { name: "wal-3", sizeBytes, isTorn: false },
      });
    }
  });

  test("with anything among them are a torn write", () => {
    for (const at of [0, 1, 20, 511]) {
      const verdict = padded(512, (bytes) => void (bytes[whole.bytes.length + at] = 0xf5));
      expect(verdict).toMatchObject({ kind: "intact", cut: { sizeBytes: whole.bytes.length, isTorn: true } });
    }
  });

  test("with a batch among them that knows of more were never the end", () => {
    const seed = segmentSeed(stamp, 3, digest);
    const verdict = padded(512, (bytes) => {
      const sizeBytes = whole.bytes.length;
      bytes.set(encodeBatch(sizeBytes + 90, part([entry(9, 2)]), seed, digest), sizeBytes + 100);
    });
    expect(verdict).toMatchObject({ kind: "damaged", where: `wal-3 at ${whole.bytes.length}` });
  });
});

describe("whose directory", () => {
  test("an empty one is fresh, an unready one is told by its phase", () => {
    const empty = { clusterId: "c", nodeId: "n1", stamp: null, segments: [], snapshots: [] };
    expect(recover(empty, digest)).toEqual({ kind: "fresh" });
    for (const phase of ["founding", "joining", "replacing"] as const) {
      const input = { ...directory([]), stamp: encodeStampFile(stamp, phase, digest) };
      expect(recover(input, digest)).toEqual({ kind: "unready", phase, incarnation: "a1" });
    }
  });

  test("trap 13: another cluster, node or disk is refused", () => {
    for (const other of [{ clusterId: "d" }, { nodeId: "n2" }, { incarnation: "a2" }]) {
      const input = directory([], { stamp: { ...stamp, ...other } });
      expect(recover(input, digest)).toMatchObject({ kind: "refuse", code: "STAMP_MISMATCH" });
    }
  });

  test("any bytes under any names are judged, never thrown at", () => {
    const anyBytes = fc.uint8Array({ maxLength: 80 });
    const whole = directory([part([entry(6, 2)]), part([entry(7, 2)])]);
    const anyFile = fc.oneof(anyBytes, fc.constant(whole.segments[0]!.bytes), fc.constant(whole.snapshots[0]!.bytes));
    const property = fc.property(
      fc.option(anyFile),
      fc.array(anyFile, { maxLength: 4 }),
      anyFile,
      (own, files, file) => {
        const segments = files.map((bytes, i) => ({ name: `wal-${i + 1}`, number: i + 1, bytes }));
        for (const stampBytes of [own, whole.stamp]) {
          recover({ ...whole, stamp: stampBytes, segments, snapshots: [{ name: "s", bytes: file }] }, digest);
        }
      },
    );
    fc.assert(property, { seed: 3, numRuns: 300 });
  });
});

test("format 1 on disk stays what it is", () => {
  const { segments, snapshots, stamp: stampFile } = directory([part([entry(6, 2)], hardState)]);
  expect(Buffer.from(stampFile!).toString("hex")).toMatchInlineSnapshot(
    `"f54e524673788a690001000000120000000163000000026e3100000002613103"`,
  );
  expect(Buffer.from(segments[0]!.bytes).toString("hex")).toMatchInlineSnapshot(
    `"f54e5246d34768800101000000620000000163000000026e31000000026131000000000000000300000000000000030000000000000000010000000000000005000000000000000201000000056e3140613100000000000000000000000201000000056e314061310000000000000005f54e5246140541230201000000080000000000000070f54e524671953e9e03010000001a000000000000000201000000056e314061310000000000000005f54e524652e6df9e04010000001600000000000000020000000000000006000000000106"`,
  );
  expect(Buffer.from(snapshots[0]!.bytes).toString("hex")).toMatchInlineSnapshot(
    `"f54e524639b271e005010000001e0000000000000005000000000000000201000000056e31406131000000000000002c"`,
  );
});
