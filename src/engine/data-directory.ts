// Brings a data directory into the state in which a node may run on it, from whatever state it is in.
//
//   fresh, unready ──▶ prepare: stamp(founding | joining), files, stamp(ready)
//   intact         ──▶ adopt:   cut, sync, testify, clear away
//   damaged        ──▶ replace: stamp(replacing, new incarnation), set aside, then prepare as joining
//   any, by hand   ──▶ recovered state, stamp(recovering, new cluster), set aside, then prepare with that state
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
import { peerKey } from "../core/kit/ids.ts";
import { configurationBehind, emptyConfiguration, voterKeys } from "../core/raft/index.ts";
import type { Configuration, Entry, HardState, SnapshotMeta } from "../core/raft/types.ts";
import {
  decodeSnapshotFile,
  encodeSnapshotFile,
  encodeStampFile,
  readSegmentHeader,
  recover,
} from "../core/wal/index.ts";
import type { Intact, Recovery, Stamp, StampPhase } from "../core/wal/index.ts";
import type { Digest } from "../ports/digest.ts";
import type { Disk } from "../ports/disk.ts";
import { refused } from "./stamp-reader.ts";
import {
  asideName,
  readDirectory,
  RECOVERED_NAME,
  snapshotName,
  STAMP_NAME,
  type Directory,
  syncDirectory,
  syncFile,
  writeDurably,
} from "./storage-layout.ts";
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
  /** No other server is known that could bring a disk that is set aside up to date: damage is refused, and nothing is changed. */
  readonly isAlone?: boolean | undefined;
  /**
   * Asked before a log is cut whose disk is the only voter: what this directory proves to be gone from it, and what to do;
   * null: nothing. With other voters, what was applied here may come from a snapshot that the log does not name yet.
   */
  readonly witness?: ((log: FoundLog) => Promise<string | null>) | undefined;
  /** Told what was damaged, before it is set aside. */
  readonly onSetAside?: ((damage: string) => void) | undefined;
  readonly segmentBytesMax: number;
  /** How far ahead of its end the log reserves room; 0: not at all. */
  readonly reserveBytes: number;
}

export interface Founding {
  readonly incarnation: string;
  readonly configuration: Configuration;
}

export type FoundLog = Pick<Intact, "snapshot" | "entries">;

export type RecoveryOutcome = "fresh" | "intact" | "torn-tail-cut" | "damaged-set-aside" | "recovered";

/** The state after which a log begins. */
export interface Beginning {
  readonly meta: SnapshotMeta;
  readonly data: Uint8Array;
}

export interface ReadyDirectory {
  readonly wal: WalWriter;
  readonly incarnation: string;
  readonly hardState: HardState;
  readonly snapshot: Beginning | null;
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
      throw refused(verdict);
    case "fresh":
      return prepareEmpty(options, directory);
    case "unready":
      return resumePreparing(options, directory, verdict.phase, verdict.incarnation);
    case "intact":
      await refuseLoss(options, verdict);
      return adopt(options, directory, verdict);
    case "damaged": {
      const damage = `${verdict.where}: ${verdict.reason}`;
      if (options.isAlone === true) throw damagedAlone(damage);
      return replace(options, directory, options.newIncarnation(), damage);
    }
    default:
      return assertNever(verdict, "openDirectory");
  }
}

function resumePreparing(
  options: DirectoryOptions,
  directory: Directory,
  phase: Exclude<StampPhase, "ready">,
  incarnation: string,
): Promise<ReadyDirectory> {
  switch (phase) {
    case "founding":
      return prepareEmpty(options, directory);
    case "joining":
      return prepareJoining(options, directory, incarnation, "fresh");
    case "replacing":
      return replace(options, directory, incarnation, "the replacement of a damaged disk was interrupted");
    case "recovering":
      return finishRecovering(options, directory, incarnation);
    default:
      return assertNever(phase, "resumePreparing");
  }
}

// ---- fresh -----------------------------------------------------------------------------------------

/**
 * A founder starts after a snapshot at index 1 that every founder has, so that all of them begin with
 * equal logs and agree on who the voters are without exchanging a message.
 */
async function prepareEmpty(options: DirectoryOptions, directory: Directory): Promise<ReadyDirectory> {
  // What was set aside is proof of an earlier life, in which this founder may have voted: it is not founded again.
  const founding = directory.replacements === 0 ? options.bootstrap : null;
  if (founding === null) return prepareJoining(options, directory, options.newIncarnation(), "fresh");
  const { incarnation, configuration } = founding;
  await writeStamp(options, incarnation, "founding");
  const beginning = { meta: { index: 1, term: 1, configuration }, data: new Uint8Array(0) };
  return build(options, directory, incarnation, beginning, "fresh");
}

async function prepareJoining(
  options: DirectoryOptions,
  directory: Directory,
  incarnation: string,
  recovery: RecoveryOutcome,
): Promise<ReadyDirectory> {
  await writeStamp(options, incarnation, "joining");
  return build(options, directory, incarnation, null, recovery);
}

/** The stamp says already what is being built; what it is built from is at hand after any crash. */
async function build(
  options: DirectoryOptions,
  directory: Directory,
  incarnation: string,
  beginning: Beginning | null,
  recovery: RecoveryOutcome,
): Promise<ReadyDirectory> {
  const { disk, digest } = options;
  // Only an earlier attempt can have left anything: before the stamp there was nothing, or it was set aside.
  for (const { name } of directory.segments) await disk.remove(name, "wal-remove");
  for (const { name } of directory.snapshots) await disk.remove(name, "snapshot-remove");
  await removeTemporary(disk, directory);

  if (beginning !== null) {
    const { meta, data } = beginning;
    await writeDurably(disk, snapshotName(meta.index, meta.term), [encodeSnapshotFile(meta, data, digest)], "snapshot");
  }
  const hardState: HardState = {
    term: beginning?.meta.term ?? 0,
    vote: null,
    commit: beginning?.meta.index ?? 0,
  };
  const head = { hardState, snapshot: beginning?.meta ?? null };
  const wal = await WalWriter.begin(walEnvironment(options, incarnation), head);
  await writeStamp(options, incarnation, "ready");
  await removeRecovered(disk, directory);
  return { wal, incarnation, hardState, snapshot: beginning, entries: [], recovery, damage: null };
}

// ---- by an operator's hand -------------------------------------------------------------------------

/**
 * Gives this directory to the cluster and the disk that `options` names, with `beginning` as its whole state; what was
 * the log before is set aside. A crash leaves either the directory as it was, or one that opening finishes.
 */
export async function beginRecovered(
  options: DirectoryOptions,
  incarnation: string,
  beginning: Beginning,
): Promise<ReadyDirectory> {
  const { disk, digest } = options;
  const file = encodeSnapshotFile(beginning.meta, beginning.data, digest);
  await writeDurably(disk, RECOVERED_NAME, [file], "recovered");
  await writeStamp(options, incarnation, "recovering");
  return finishRecovering(options, await readDirectory(disk), incarnation);
}

async function finishRecovering(
  options: DirectoryOptions,
  directory: Directory,
  incarnation: string,
): Promise<ReadyDirectory> {
  const { disk, digest } = options;
  const read = directory.hasRecovered
    ? decodeSnapshotFile(await disk.read(RECOVERED_NAME, "recovered-read"), digest)
    : null;
  if (read?.kind !== "whole") {
    throw new TenureError(
      "DISK_DAMAGED",
      `A recovery was begun in this data directory, and its file "${RECOVERED_NAME}" is missing or rotten. ` +
        "Repeat the recovery on another node's directory, or restore a saved snapshot into an empty one.",
    );
  }
  // After a kill -9 the stamp may be seen and still not be durable: with the old one, these files would be missed.
  await syncDirectory(disk, "recovered-sync-directory");
  const attempted = directory.segments.filter(({ bytes }) => {
    const stamp = readSegmentHeader(bytes, digest).header?.stamp;
    return stamp?.clusterId === options.clusterId && stamp.incarnation === incarnation;
  });
  const formerSegments = directory.segments.filter((segment) => !attempted.includes(segment));
  const mark = snapshotName(read.meta.index, read.meta.term);
  const formerSnapshots = directory.snapshots.filter(({ name }) => name !== mark);
  await setAside(disk, "former", [...formerSegments, ...formerSnapshots], directory.replacements + 1);
  const rest: Directory = { ...directory, segments: attempted, snapshots: [] };
  return build(options, rest, incarnation, { meta: read.meta, data: read.data }, "recovered");
}

// ---- intact ----------------------------------------------------------------------------------------

/** A torn write and rot in the last batch look alike (recovery.ts): what was written only after its sync tells them apart. */
async function refuseLoss(options: DirectoryOptions, intact: Intact): Promise<void> {
  if (intact.cut === null || options.witness === undefined || !isOnlyVoter(options.nodeId, intact)) return;
  const gone = await options.witness(intact);
  if (gone === null) return;
  const why = `the end of the log is damaged (${intact.cut.name} at ${intact.cut.sizeBytes})`;
  throw new TenureError("DISK_DAMAGED", `In this data directory ${why}: ${gone}`);
}

function isOnlyVoter(nodeId: string, { incarnation, snapshot, entries }: Intact): boolean {
  const before = snapshot?.meta.configuration ?? emptyConfiguration();
  const voters = voterKeys(entries.reduce(configurationBehind, before));
  return voters.length === 1 && voters[0] === peerKey(nodeId, incarnation);
}

async function adopt(options: DirectoryOptions, directory: Directory, intact: Intact): Promise<ReadyDirectory> {
  const { disk } = options;
  const { incarnation, hardState, snapshot, snapshotName: marked, entries, segments, cut } = intact;
  const tail = segments.at(-1)!;
  const file = await disk.open(tail.name, "wal-open");
  if (cut !== null && cut.name === tail.name) await file.truncate(cut.sizeBytes, "wal-truncate");
  if (cut !== null && cut.name !== tail.name) await disk.remove(cut.name, "wal-remove");
  await syncFile(file, "wal-fdatasync");
  // Also for the removal: if that segment came back after new, unsynced bytes, those would look acknowledged.
  await syncDirectory(disk, "wal-sync-directory");

  const head = { hardState, snapshot: snapshot?.meta ?? null };
  const wal = await WalWriter.resume(walEnvironment(options, incarnation), head, segments, file);
  for (const { name, number } of directory.segments) {
    if (number < wal.oldestNumber) await disk.remove(name, "wal-remove");
  }
  for (const { name } of directory.snapshots) {
    if (name !== marked) await disk.remove(name, "snapshot-remove");
  }
  await removeTemporary(disk, directory);
  await removeRecovered(disk, directory);
  return {
    wal,
    incarnation,
    hardState,
    snapshot,
    entries,
    recovery: cut?.isTorn === true ? "torn-tail-cut" : "intact",
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
  options.onSetAside?.(damage);
  await writeStamp(options, incarnation, "replacing");
  const replacement = directory.replacements + 1;
  await setAside(options.disk, "damaged", [...directory.segments, ...directory.snapshots], replacement);
  const emptied: Directory = { ...directory, segments: [], snapshots: [], replacements: replacement };
  return { ...(await prepareJoining(options, emptied, incarnation, "damaged-set-aside")), damage };
}

/** Set aside, it would wait for ever for somebody to fetch everything from. */
function damagedAlone(damage: string): TenureError {
  const next =
    "Nothing was changed. If this was the only server: keep a copy of the directory, and restore a saved snapshot into an empty one (`tenure server restore`, docs/runbooks/cluster-restore.md). If other servers belong to this cluster: list one of them in `peers` and start again; this disk is then set aside, and everything is fetched from them";
  return new TenureError(
    "DISK_DAMAGED",
    `This data directory is damaged (${damage}), and no other server is configured that could have a copy. ${next}.`,
  );
}

async function setAside(
  disk: Disk,
  why: "damaged" | "former",
  files: readonly { readonly name: string }[],
  replacement: number,
): Promise<void> {
  for (const { name } of files) await disk.rename(name, asideName(why, name, replacement), `${why}-rename`);
  await syncDirectory(disk, `${why}-sync-directory`);
}

async function writeStamp(options: DirectoryOptions, incarnation: string, phase: StampPhase): Promise<void> {
  const bytes = encodeStampFile(stampOf(options, incarnation), phase, options.digest);
  await writeDurably(options.disk, STAMP_NAME, [bytes], "stamp");
}

/** What a recovery began with, or an unfinished attempt at one has left behind. */
async function removeRecovered(disk: Disk, directory: Directory): Promise<void> {
  if (directory.hasRecovered) await disk.remove(RECOVERED_NAME, "recovered-remove");
}

async function removeTemporary(disk: Disk, directory: Directory): Promise<void> {
  // The stamp's own was renamed by now.
  for (const name of directory.temporary) {
    if (name !== `tmp-${STAMP_NAME}`) await disk.remove(name, "tmp-remove");
  }
}

function stampOf({ clusterId, nodeId }: DirectoryOptions, incarnation: string): Stamp {
  return { clusterId, nodeId, incarnation };
}

function walEnvironment(options: DirectoryOptions, incarnation: string): WalEnvironment {
  const { disk, digest, segmentBytesMax, reserveBytes } = options;
  return { disk, digest, stamp: stampOf(options, incarnation), segmentBytesMax, reserveBytes };
}
