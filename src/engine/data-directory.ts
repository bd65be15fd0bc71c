// Brings a data directory into the state in which a node may run on it, from whatever state it is in.
//
//   fresh, unready ──▶ prepare: stamp(founding | joining), files, stamp(ready)
//   intact         ──▶ adopt:   cut, sync, testify, clear away
//   damaged        ──▶ replace: stamp(replacing, new incarnation), set aside, then prepare as joining
//
// Each arrow may be interrupted by a crash between any two disk calls and is then taken again from the
// start, or from the phase that the stamp names. What makes that safe:
// - The stamp changes as a whole, and first: the files of a damaged disk stop being this node's log at the
//   instant when the new incarnation is durable, not one by one while they are renamed (if only the
//   last, damaged segment were gone after a crash, the rest would look like an intact, older log).
// - Nothing is removed before what replaces it is durable, and what was read is synced before it is believed:
//   after a kill -9 the kernel still shows bytes and names that a power loss would take away.

import { assertNever } from "../core/kit/assert.ts";
import { TenureError } from "../core/kit/errors.ts";
import type { Configuration, Entry, HardState, SnapshotMeta } from "../core/raft/types.ts";
import { encodeSnapshotFile, encodeStampFile, recover } from "../core/wal/index.ts";
import type { Intact, Recovery, Stamp, StampPhase } from "../core/wal/index.ts";
import type { Digest } from "../ports/digest.ts";
import type { Disk } from "../ports/disk.ts";
import { syncDirectory, syncFile, writeDurably } from "./durable-file.ts";
import { asideName, readDirectory, snapshotName, STAMP_NAME, type Directory } from "./storage-layout.ts";
import { WalWriter, type WalEnvironment } from "./wal-writer.ts";

export interface DirectoryOptions {
  readonly disk: Disk;
  readonly digest: Digest;
  readonly clusterId: string;
  readonly nodeId: string;
  /** One to sixteen hexadecimal digits, random: it must never come twice (trap 13). */
  readonly newIncarnation: () => string;
  /**
   * Used only when the directory is empty: this node is one of the founders, with this incarnation. Give it
   * once, at the founding: a wiped disk that is founded again is the same voter without its memory.
   */
  readonly bootstrap: Founding | null;
  readonly segmentBytesMax: number;
}

export interface Founding {
  readonly incarnation: string;
  readonly configuration: Configuration;
}

export type RecoveryOutcome = "fresh" | "intact" | "torn-tail-cut" | "damaged-set-aside";

export interface ReadyDirectory {
  readonly wal: WalWriter;
  readonly incarnation: string;
  readonly hardState: HardState;
  readonly snapshot: { readonly meta: SnapshotMeta; readonly data: Uint8Array } | null;
  readonly entries: readonly Entry[];
  readonly recovery: RecoveryOutcome;
  /** What was damaged, and where; null unless it was set aside. */
  readonly damage: string | null;
}

export async function openDirectory(options: DirectoryOptions): Promise<ReadyDirectory> {
  const directory = await readDirectory(options.disk);
  const verdict: Recovery = recover(
    { clusterId: options.clusterId, nodeId: options.nodeId, ...directory },
    options.digest,
  );
  switch (verdict.kind) {
    case "refuse":
      throw new TenureError(verdict.code, `This data directory can't be used: ${verdict.reason}`);
    case "fresh":
      return prepareEmpty(options, directory);
    case "unready":
      if (verdict.phase === "founding") return prepareEmpty(options, directory);
      if (verdict.phase === "joining") return prepare(options, directory, verdict.incarnation, null, "fresh");
      return replace(options, directory, verdict.incarnation, "the replacement of a damaged disk was interrupted");
    case "intact":
      return adopt(options, directory, verdict);
    case "damaged":
      return replace(options, directory, options.newIncarnation(), `${verdict.where}: ${verdict.reason}`);
    default:
      return assertNever(verdict, "openDirectory");
  }
}

// ---- fresh -----------------------------------------------------------------------------------------

function prepareEmpty(options: DirectoryOptions, directory: Directory): Promise<ReadyDirectory> {
  // What was set aside is proof of an earlier life, in which this founder may have voted: it is not founded again.
  const founding = directory.replacements === 0 ? options.bootstrap : null;
  return prepare(options, directory, founding?.incarnation ?? options.newIncarnation(), founding, "fresh");
}

/**
 * A founder starts behind a snapshot at index 1 that every founder has, so that all of them begin with
 * equal logs and agree on who the voters are without exchanging a message.
 */
async function prepare(
  options: DirectoryOptions,
  directory: Directory,
  incarnation: string,
  founding: Founding | null,
  recovery: RecoveryOutcome,
): Promise<ReadyDirectory> {
  const { disk, digest } = options;
  const stamp: Stamp = { clusterId: options.clusterId, nodeId: options.nodeId, incarnation };
  await writeStamp(options, stamp, founding === null ? "joining" : "founding");
  // Only an earlier attempt can have left anything: before the stamp there was nothing, or it was set aside.
  for (const { name } of directory.segments) await disk.remove(name, "wal-remove");
  for (const { name } of directory.snapshots) await disk.remove(name, "snapshot-remove");
  await removeTemporary(disk, directory);

  const meta = founding === null ? null : { index: 1, term: 1, configuration: founding.configuration };
  const data = new Uint8Array(0);
  if (meta !== null) {
    await writeDurably(disk, snapshotName(meta.index, meta.term), encodeSnapshotFile(meta, data, digest), "snapshot");
  }
  const hardState: HardState = { term: meta?.term ?? 0, vote: null, commit: meta?.index ?? 0 };
  const wal = await WalWriter.begin(walEnvironment(options, stamp), { hardState, snapshot: meta });
  await writeStamp(options, stamp, "ready");
  return {
    wal,
    incarnation,
    hardState,
    snapshot: meta === null ? null : { meta, data },
    entries: [],
    recovery,
    damage: null,
  };
}

// ---- intact ----------------------------------------------------------------------------------------

async function adopt(options: DirectoryOptions, directory: Directory, intact: Intact): Promise<ReadyDirectory> {
  const { disk } = options;
  const { incarnation, hardState, snapshot, snapshotName: marked, entries, segments, cut } = intact;
  const tail = segments.at(-1)!;
  const file = await disk.open(tail.name, "wal-open");
  if (cut !== null && cut.name === tail.name) await file.truncate(cut.sizeBytes, "wal-truncate");
  if (cut !== null && cut.name !== tail.name) await disk.remove(cut.name, "wal-remove");
  await syncFile(file, "wal-fdatasync");
  // Also for the removal: if that segment came back behind new, unsynced bytes, those would look acknowledged.
  await syncDirectory(disk, "wal-sync-directory");

  const stamp: Stamp = { clusterId: options.clusterId, nodeId: options.nodeId, incarnation };
  const head = { hardState, snapshot: snapshot?.meta ?? null };
  const wal = await WalWriter.resume(walEnvironment(options, stamp), head, segments, file);
  for (const { name, number } of directory.segments) {
    if (number < wal.oldestNumber) await disk.remove(name, "wal-remove");
  }
  for (const { name } of directory.snapshots) {
    if (name !== marked) await disk.remove(name, "snapshot-remove");
  }
  await removeTemporary(disk, directory);
  return {
    wal,
    incarnation,
    hardState,
    snapshot,
    entries,
    recovery: cut === null ? "intact" : "torn-tail-cut",
    damage: null,
  };
}

// ---- damaged ---------------------------------------------------------------------------------------

/**
 * The disk becomes another peer, empty and no voter, and fetches everything from the others as any
 * new node does (design D5): there is no special mode in which a damaged node runs.
 */
async function replace(
  options: DirectoryOptions,
  directory: Directory,
  incarnation: string,
  damage: string,
): Promise<ReadyDirectory> {
  const { disk, clusterId, nodeId } = options;
  await writeStamp(options, { clusterId, nodeId, incarnation }, "replacing");
  const replacement = directory.replacements + 1;
  for (const { name } of [...directory.segments, ...directory.snapshots]) {
    await disk.rename(name, asideName(name, replacement), "damaged-rename");
  }
  await syncDirectory(disk, "damaged-sync-directory");
  const emptied: Directory = { ...directory, segments: [], snapshots: [], replacements: replacement };
  return { ...(await prepare(options, emptied, incarnation, null, "damaged-set-aside")), damage };
}

async function writeStamp(options: DirectoryOptions, stamp: Stamp, phase: StampPhase): Promise<void> {
  await writeDurably(options.disk, STAMP_NAME, encodeStampFile(stamp, phase, options.digest), "stamp");
}

async function removeTemporary(disk: Disk, directory: Directory): Promise<void> {
  // The stamp's own was renamed by now.
  for (const name of directory.temporary) {
    if (name !== `tmp-${STAMP_NAME}`) await disk.remove(name, "tmp-remove");
  }
}

function walEnvironment(options: DirectoryOptions, stamp: Stamp): WalEnvironment {
  const { disk, digest, segmentBytesMax } = options;
  return { disk, digest, stamp, segmentBytesMax };
}
