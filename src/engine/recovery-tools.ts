// What an operator does to a data directory while its server is stopped, when the cluster itself can't help any more.
//
// forceNewCluster   a quorum is gone for good: this node's log becomes the whole truth of a new cluster of one
// restoreSnapshot   a saved snapshot becomes the state of a new cluster of one, in an empty directory
//
// Both begin a cluster with another id, so that no node of the old one can join it or be led by it, and in a term
// 2^20 later, so that every epoch of the old one is over (design D1); indexes go on, because they are epochs too.
// After a crash the directory is as it was, and the command can be repeated; or the next start, or
// the command, finishes what was begun (data-directory.ts).

import { assert, assertNever } from "../core/kit/assert.ts";
import { TenureError } from "../core/kit/errors.ts";
import { peerKey } from "../core/kit/ids.ts";
import { INTEGER_MAX, WAL_SEGMENT_BYTES_MAX } from "../core/kit/limits.ts";
import { wholeOf } from "../core/kit/pieces.ts";
import { configurationOf } from "../core/raft/index.ts";
import type { SnapshotMeta } from "../core/raft/types.ts";
import { decodeSnapshotFile, recover, type Intact, type Recovery } from "../core/wal/index.ts";
import type { Digest } from "../ports/digest.ts";
import type { Disk } from "../ports/disk.ts";
import type { StateMachine } from "../ports/state-machine.ts";
import { beginRecovered, openDirectory, type DirectoryOptions, type FoundLog } from "./data-directory.ts";
import { readStampOf, refused, type FoundStamp } from "./stamp-reader.ts";
import { readDirectory } from "./storage-layout.ts";

/** Higher than any number of elections that the old cluster may hold before its last node is stopped. */
const TERMS_AHEAD = 2 ** 20;

interface Place {
  readonly disk: Disk;
  readonly digest: Digest;
  readonly nodeId: string;
  /** The state machine's snapshot, as the new cluster shall have it. `from`: the cluster that it is the state of; null: a file's. */
  readonly transform?: ((data: Uint8Array, from: string | null) => Uint8Array | Promise<Uint8Array>) | undefined;
}

export interface ForceOptions extends Place {
  readonly newClusterId: string;
  readonly newIncarnation: string;
  /** Fresh; folds this node's log into the state of the new cluster. */
  readonly stateMachine: StateMachine;
}

export interface RestoreOptions extends Place {
  readonly clusterId: string;
  readonly incarnation: string;
  /** As `snapshot save` wrote it. */
  readonly file: Uint8Array;
}

/** The cluster of one that now is in the directory. */
export interface NewCluster {
  readonly clusterId: string;
  readonly incarnation: string;
  readonly lastIndex: number;
  readonly term: number;
}

export interface ForcedCluster extends NewCluster {
  /** For the operator: what the new cluster may lack, and what it may have although it was never acknowledged. */
  readonly mayBeLost: string;
}

/** Throws, and has changed nothing, where the directory is empty, damaged, another node's or a later release's. */
export async function forceNewCluster(options: ForceOptions): Promise<ForcedCluster> {
  const { disk, digest, nodeId, newClusterId, newIncarnation } = options;
  const stamp = await readStampOf(disk, digest);
  if (stamp === null) throw nothingHere("it is empty");
  const directory = await readDirectory(disk);
  const verdict = recover({ clusterId: stamp.clusterId, nodeId, ...directory }, digest);
  if (verdict.kind === "unready" && verdict.phase === "recovering") return finishForcing(options, stamp);
  const intact = intactOrThrow(verdict);
  assert(newClusterId !== stamp.clusterId && newIncarnation !== stamp.incarnation, "a new cluster has new names");

  const lastIndex = intact.entries.at(-1)?.index ?? intact.snapshot?.meta.index ?? 0;
  if (lastIndex === 0) throw nothingHere("its log is empty: this node never heard from its cluster");
  const term = laterTerm(intact.hardState.term);
  foldLog(intact, options.stateMachine);
  const data = await transformed(options, wholeOf(await options.stateMachine.snapshot()), stamp.clusterId);
  const meta: SnapshotMeta = { index: lastIndex, term, configuration: aloneOf(nodeId, newIncarnation) };
  const target = directoryOptions(options, newClusterId, newIncarnation);
  const { wal } = await beginRecovered(target, newIncarnation, { meta, data });
  await wal.close();
  return {
    clusterId: newClusterId,
    incarnation: newIncarnation,
    lastIndex,
    term,
    mayBeLost: describeLoss(lastIndex, intact.hardState.commit),
  };
}

/** Throws, and has changed nothing, where the file is no whole snapshot or the directory is not empty. */
export async function restoreSnapshot(options: RestoreOptions): Promise<NewCluster> {
  const { disk, digest, nodeId, clusterId, incarnation } = options;
  const saved = decodeSnapshotFile(options.file, digest);
  if (saved.kind === "newer") {
    throw new TenureError(
      "FORMAT_UNSUPPORTED",
      `The snapshot has format version ${saved.version}, from a later release. Restore it with that release.`,
    );
  }
  if (saved.kind === "bad") {
    throw new TenureError("SNAPSHOT_INVALID", `The file is no whole snapshot: ${saved.why}. Use another copy of it.`);
  }
  const found = await readStampOf(disk, digest);
  if (found !== null) throw notEmpty(found);

  const { index } = saved.meta;
  const term = laterTerm(saved.meta.term);
  const data = await transformed(options, saved.data, null);
  const meta: SnapshotMeta = { index, term, configuration: aloneOf(nodeId, incarnation) };
  const { wal } = await beginRecovered(directoryOptions(options, clusterId, incarnation), incarnation, { meta, data });
  await wal.close();
  return { clusterId, incarnation, lastIndex: index, term };
}

// ---- the pieces ------------------------------------------------------------------------------------

/** An earlier attempt got as far as the stamp: its state and its names stand. */
async function finishForcing(options: ForceOptions, stamp: FoundStamp): Promise<ForcedCluster> {
  const { clusterId, incarnation } = stamp;
  const ready = await openDirectory(directoryOptions(options, clusterId, incarnation));
  await ready.wal.close();
  const { term, commit } = ready.hardState;
  return { clusterId, incarnation, lastIndex: commit, term, mayBeLost: describeLoss(commit, null) };
}

function intactOrThrow(verdict: Recovery): Intact {
  switch (verdict.kind) {
    case "intact":
      return verdict;
    case "refuse":
      throw refused(verdict);
    case "fresh":
    case "unready":
      throw nothingHere("its preparation was never finished, so nothing was ever acknowledged here");
    case "damaged":
      throw new TenureError(
        "DISK_DAMAGED",
        `This data directory is damaged (${verdict.where}: ${verdict.reason}), and its log may lack what was acknowledged. ` +
          "Nothing was changed. Force a new cluster on another node's directory, or restore a saved snapshot.",
      );
    default:
      return assertNever(verdict, "intactOrThrow");
  }
}

/** As the engine applies a log: what is not an entry of the state machine's passes it by. */
export function foldLog({ snapshot, entries }: FoundLog, machine: StateMachine): void {
  if (snapshot !== null) machine.restore(snapshot.data);
  for (const entry of entries) {
    if (entry.type === "EntryNormal" && entry.data.length > 0) machine.apply(entry);
  }
}

async function transformed({ transform }: Place, data: Uint8Array, from: string | null): Promise<Uint8Array> {
  return transform === undefined ? data : transform(data, from);
}

function laterTerm(term: number): number {
  assert(term <= INTEGER_MAX - TERMS_AHEAD, "terms are not used up", () => `${term}`);
  return term + TERMS_AHEAD;
}

function aloneOf(nodeId: string, incarnation: string): SnapshotMeta["configuration"] {
  return configurationOf([peerKey(nodeId, incarnation)]);
}

function directoryOptions({ disk, digest, nodeId }: Place, clusterId: string, incarnation: string): DirectoryOptions {
  const sizes = { segmentBytesMax: WAL_SEGMENT_BYTES_MAX, reserveBytes: 0 };
  return { disk, digest, clusterId, nodeId, newIncarnation: () => incarnation, bootstrap: null, ...sizes };
}

function describeLoss(lastIndex: number, commit: number | null): string {
  const unsure =
    commit === null || commit < lastIndex
      ? ` Entries ${commit === null ? "near its end" : `${commit + 1} to ${lastIndex}`} are kept although this node ` +
        "does not know that they were committed: a client may have been told that they failed, or nothing at all."
      : "";
  return (
    `The log of this node ends at index ${lastIndex}, and all of it is kept.${unsure} ` +
    `What other nodes acknowledged after index ${lastIndex} is lost, unless you force the new cluster on the one whose ` +
    "log is longest. Wipe the other nodes before they join: their logs are of the old cluster."
  );
}

function nothingHere(why: string): TenureError {
  return new TenureError(
    "CONFIG_INVALID",
    `There is nothing to recover in this data directory: ${why}. Use the directory of a node that was a voter.`,
  );
}

function notEmpty({ nodeId, clusterId, isReady }: FoundStamp): TenureError {
  const next = isReady
    ? "Restore into an empty directory."
    : "If an earlier restore was interrupted, start the server, which finishes it; or empty the directory and repeat it.";
  return new TenureError(
    "CONFIG_INVALID",
    `The data directory is not empty: it belongs to node ${nodeId} of cluster ${clusterId}. ${next}`,
  );
}
