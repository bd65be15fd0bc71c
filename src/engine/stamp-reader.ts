// Whose a data directory is, read before this node knows which cluster it belongs to. Changes nothing.

import { TenureError } from "../core/kit/errors.ts";
import {
  decodeStampFile,
  readSegmentHeader,
  unsupported,
  type Refusal,
  type Stamp,
  type StampPhase,
} from "../core/wal/index.ts";
import type { Digest } from "../ports/digest.ts";
import type { Disk } from "../ports/disk.ts";
import { isSegmentName, isSnapshotName, STAMP_NAME } from "./storage-layout.ts";

export interface FoundStamp extends Stamp {
  /** How far its preparation came; `ready` where only the log says whose it is. */
  readonly phase: StampPhase;
  /** False: its preparation was interrupted, and nothing was acknowledged yet. */
  readonly isReady: boolean;
}

/**
 * Null for an empty directory. Throws FORMAT_UNSUPPORTED for a later release's, and DISK_DAMAGED where nothing
 * in it says whose it is. A lost or rotten stamp is looked up in the log, as recovery does, which then sets that disk
 * aside: the node must still know to which cluster it belonged.
 */
export async function readStampOf(disk: Disk, digest: Digest): Promise<FoundStamp | null> {
  const names = (await disk.list("directory-list")).toSorted();
  let why = "its stamp is missing";
  if (names.includes(STAMP_NAME)) {
    const read = decodeStampFile(await disk.read(STAMP_NAME, "stamp-read"), digest);
    if (read.kind === "stamp") return found(read.stamp, read.phase);
    if (read.kind === "newer") throw refused(unsupported(STAMP_NAME, read.version));
    why = `its stamp can't be read (${read.why})`;
  } else if (!names.some((name) => isSegmentName(name) || isSnapshotName(name))) {
    return null;
  }
  // From the newest on: an older segment may belong to the disk that was here before.
  for (const name of names.filter(isSegmentName).toReversed()) {
    const head = readSegmentHeader(await disk.read(name, "wal-read"), digest);
    if (head.header !== null) return found(head.header.stamp, "ready");
    if (head.trouble.kind === "newer") throw refused(unsupported(name, head.trouble.version));
  }
  throw new TenureError(
    "DISK_DAMAGED",
    `This data directory can't be used: ${why}, and nothing else in it says whose it is. ` +
      "Move it away as evidence and start with an empty one: the node then joins its cluster as a new disk.",
  );
}

function found(stamp: Stamp, phase: StampPhase): FoundStamp {
  return { ...stamp, phase, isReady: phase === "ready" };
}

export function refused({ code, reason }: Refusal): TenureError {
  return new TenureError(code, `This data directory can't be used: ${reason}`);
}
