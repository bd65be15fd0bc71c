// Decides what a data directory is worth after a restart: a pure function over the bytes of its files.
//
//   fresh     nothing was ever written here
//   unready   the preparation of the directory was interrupted; nothing was acknowledged (stamp.ts)
//   intact    this is what the node knew; `cut` says which bytes after it must go before anything is appended:
//             those of an unfinished write, or zeros that were reserved for writes to come
//   damaged   something acknowledged may be gone: the node must not vote with this disk again (design D5)
//   refuse    not our directory, or a later release's: change nothing
//
// A torn tail and rot look alike, and only one of them may be cut (trap 24). Before a sync completes, a
// power loss may keep any subset of the sectors written since the last one, so even a complete frame
// with a wrong checksum may be a torn write, with whole frames after it. What tells them apart is testimony: each
// batch header says how much of the segment was durable when it was written, and the existence of a
// segment says that the one before was durable as a whole. Bytes from the first bad frame on are cut if
// and only if they are in the last segment and no testimony covers that frame.
//
// Zeros from the first bad frame to the end of the file are the same rule: no testimony, so they are cut, and since
// nothing of any write is among them, nobody is notified of a torn one. See docs/decisions/0010-reserved-log.md.
//
// The valid frames of a batch that was cut in its middle are kept. They were never acknowledged, but they
// are a prefix of what the node had decided, in its order: the same state would have come from a shorter
// append, or from a crash after a smaller write. A vote in it was given and never told, which forbids
// another vote and no more; the commit index is clamped to the entries that are there.
//
// What the log can't decide: rot in exactly the last synced batch, with nothing written after it, looks
// like a write that was never synced, and is cut, unless somebody else knows better (`witness`, data-directory.ts).
// See docs/decisions/0002-wal-recovery.md; opening and closing a directory write a testimony for all that is in it, so
// this is about one batch and one crash.

import type { Digest } from "../../ports/digest.ts";
import type { Entry, HardState, SnapshotMeta } from "../raft/types.ts";
import { openLog, type Cut, type LogFiles, type SegmentFile } from "./log-files.ts";
import { Replay } from "./replay.ts";
import { readSegmentHeader } from "./segment.ts";
import { decodeSnapshotFile, type SnapshotRead } from "./snapshot-file.ts";
import { decodeStampFile, describeStamp, type Stamp, type StampPhase } from "./stamp.ts";
import { damaged, mismatch, unsupported, type Damaged, type Refusal } from "./verdict.ts";

export interface RecoveryInput {
  readonly clusterId: string;
  readonly nodeId: string;
  /** Null: there is no stamp file. */
  readonly stamp: Uint8Array | null;
  readonly segments: readonly SegmentFile[];
  readonly snapshots: readonly { readonly name: string; readonly bytes: Uint8Array }[];
}

/** A segment that belongs to the log. */
export interface LiveSegment {
  readonly name: string;
  readonly number: number;
  readonly sizeBytes: number;
  /** The highest index that was ever written to it; 0 where there is none. */
  readonly indexMax: number;
}

export interface Intact {
  readonly kind: "intact";
  readonly incarnation: string;
  readonly hardState: HardState;
  readonly snapshot: { readonly meta: SnapshotMeta; readonly data: Uint8Array } | null;
  /** The file that holds it. */
  readonly snapshotName: string | null;
  /** Contiguous, after the snapshot. */
  readonly entries: readonly Entry[];
  /** Oldest first, with their sizes after the cut; the last one is to be continued. */
  readonly segments: readonly LiveSegment[];
  readonly cut: Cut | null;
}

export type Recovery =
  | { readonly kind: "fresh" }
  | { readonly kind: "unready"; readonly phase: Exclude<StampPhase, "ready">; readonly incarnation: string }
  | Intact
  | Damaged
  | Refusal;

export function recover(input: RecoveryInput, digest: Digest): Recovery {
  const { clusterId, nodeId, segments, snapshots } = input;
  if (input.stamp === null && segments.length === 0 && snapshots.length === 0) return { kind: "fresh" };

  const owner = input.stamp === null ? null : decodeStampFile(input.stamp, digest);
  if (owner?.kind === "newer") return unsupported("stamp", owner.version);
  if (owner?.kind !== "stamp") {
    // Lost, not somebody else's? The segments say whose they are.
    const foreign = findForeign(segments, (stamp) => stamp.clusterId === clusterId && stamp.nodeId === nodeId, digest);
    return foreign ?? damaged(owner === null ? "it is missing" : owner.why, "stamp");
  }
  const { stamp, phase } = owner;
  if (stamp.clusterId !== clusterId || stamp.nodeId !== nodeId) return mismatch("stamp", describeStamp(stamp));
  if (phase !== "ready") return { kind: "unready", phase, incarnation: stamp.incarnation };
  // The disk is compared too: what another one was told and answered is not in this log.
  return findForeign(segments, (other) => isSameStamp(other, stamp), digest) ?? recoverLog(input, stamp, digest);
}

function findForeign(files: readonly SegmentFile[], isOurs: (stamp: Stamp) => boolean, digest: Digest): Refusal | null {
  for (const { name, bytes } of files) {
    const head = readSegmentHeader(bytes, digest);
    if (head.header === null && head.trouble.kind === "newer") return unsupported(name, head.trouble.version);
    if (head.header !== null && !isOurs(head.header.stamp)) return mismatch(name, describeStamp(head.header.stamp));
  }
  return null;
}

function recoverLog(input: RecoveryInput, stamp: Stamp, digest: Digest): Recovery {
  const snapshots = new Map(input.snapshots.map(({ name, bytes }) => [name, decodeSnapshotFile(bytes, digest)]));
  for (const [name, read] of snapshots) {
    if (read.kind === "newer") return unsupported(name, read.version);
  }
  const log = openLog(input.segments, stamp, digest);
  return log.kind === "log" ? fold(log, snapshots) : log;
}

function fold(log: LogFiles, snapshots: ReadonlyMap<string, SnapshotRead>): Intact | Damaged {
  const { tail, cut } = log;
  const mark = tail.header.snapshot;
  const found = mark === null ? null : findSnapshot(snapshots, mark);
  if (found === undefined) return damaged(`the snapshot at index ${mark?.index} is missing or rotten`, tail.file.name);

  const replay = new Replay(mark);
  const segments: LiveSegment[] = [];
  for (const { file, header, records } of log.segments) {
    let fault = replay.addHardState(header.hardState);
    let indexMax = 0;
    for (const record of records) {
      fault ??= replay.add(record);
      if (record.type !== "batch" && record.type !== "hard-state") indexMax = Math.max(indexMax, record.index);
    }
    if (fault !== null) return damaged(fault, file.name);
    const sizeBytes = cut?.name === file.name ? cut.sizeBytes : file.bytes.length;
    segments.push({ name: file.name, number: file.number, sizeBytes, indexMax });
  }
  const entries = replay.entries();
  if (typeof entries === "string") return damaged(entries, tail.file.name);
  const lastIndex = entries[entries.length - 1]?.index ?? mark?.index ?? 0;
  return {
    kind: "intact",
    incarnation: tail.header.stamp.incarnation,
    hardState: replay.hardState(lastIndex),
    snapshot: found?.snapshot ?? null,
    snapshotName: found?.name ?? null,
    entries,
    segments,
    cut,
  };
}

interface FoundSnapshot {
  readonly name: string;
  readonly snapshot: { readonly meta: SnapshotMeta; readonly data: Uint8Array };
}

function findSnapshot(snapshots: ReadonlyMap<string, SnapshotRead>, mark: SnapshotMeta): FoundSnapshot | undefined {
  for (const [name, read] of snapshots) {
    if (read.kind !== "whole" || read.meta.index !== mark.index || read.meta.term !== mark.term) continue;
    return { name, snapshot: { meta: read.meta, data: read.data } };
  }
  return undefined;
}

function isSameStamp(a: Stamp, b: Stamp): boolean {
  return a.clusterId === b.clusterId && a.nodeId === b.nodeId && a.incarnation === b.incarnation;
}
