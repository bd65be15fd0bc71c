// What an archive is opened with, and what it tells of itself.

import type { Holdings, SegmentLimits } from "../../core/archive/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Disk } from "../../ports/disk.ts";
import { ARCHIVE_UNSYNCED_BYTES_ALARM } from "../limits.ts";
import type { ArchiveKind } from "./kinds.ts";
import type { Quota } from "./quota.ts";
import type { Finding } from "./recovery.ts";
import type { WriteQueue } from "./write-queue.ts";

export interface ArchiveOptions {
  /** By default a site's own events. */
  readonly of?: ArchiveKind | undefined;
  /** A directory of its own, or one whose other files have other names (durable-file.ts). */
  readonly disk: Disk;
  readonly digest: Digest;
  readonly clock: Clock;
  /** A write or a sync failed: the process must end. */
  readonly failed: (error: unknown) => void;
  /** Damage that was found after the start: told when the segment is set aside, to be fetched again. */
  readonly found?: ((finding: Finding) => void) | undefined;
  /**
   * `asked`: what is appended is written when `durable` asks for it and not before, and a capture does not wait for that. For
   * a tool that must leave the directory as it is until another file has decided.
   */
  readonly syncs?: "soon" | "asked" | undefined;
  /** Null: no quota. */
  readonly quotaBytes?: number | null | undefined;
  /** For tests: where segments end is part of the format, and must be the same on all nodes. */
  readonly limits?: SegmentLimits | undefined;
}

export interface ArchiveStats extends Quota {
  readonly startSequence: number;
  readonly lastSequence: number;
  readonly durableThrough: number;
  readonly segments: number;
  readonly missingSegments: number;
  /** Of those: no member has them. */
  readonly lostSegments: number;
  readonly unsyncedBytes: number;
  /** The disk does not keep up with the log. */
  readonly isBehind: boolean;
}

export function isBehind({ unsyncedBytes }: Pick<WriteQueue, "unsyncedBytes">): boolean {
  return unsyncedBytes > ARCHIVE_UNSYNCED_BYTES_ALARM;
}

export function statsOf(
  holdings: Holdings,
  { unsyncedBytes, durableThrough }: WriteQueue,
  lastSequence: number,
  quota: Quota,
): ArchiveStats {
  return {
    ...quota,
    startSequence: holdings.start.sequence,
    lastSequence,
    durableThrough,
    segments: holdings.segments.length,
    missingSegments: holdings.missing().length,
    lostSegments: holdings.lost().length,
    unsyncedBytes,
    isBehind: isBehind({ unsyncedBytes }),
  };
}
