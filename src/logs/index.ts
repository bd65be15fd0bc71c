// The door of the logs: where the records of one leader at a time are kept, in order.

export {
  Archive,
  type ArchiveOptions,
  exchangeSegments,
  filesBehind,
  lacksOf,
  type MissingHistory,
  ownLacks,
  Retention,
  type SegmentFetcher,
} from "./archive/index.ts";
export { archivedMachine, withCapture } from "./archive/archived-machine.ts";
export { captureFrom } from "./archive/captures.ts";
export { type UsableCopies, usableCopies } from "./archive/peers/copies.ts";
export { segmentName } from "./archive/file-names.ts";
export { MemoryLog, MemoryStore } from "./memory/memory-log.ts";
export {
  PostgresInbox,
  type PostgresInboxOptions,
  PostgresLog,
  type PostgresLogOptions,
  PostgresNodes,
  type SnapshotPolicy,
  type Submission,
} from "./postgres/index.ts";
export { withFoldSnapshot } from "./raft/entry-codec.ts";
export { RaftLog, type RaftLogCounts, type RaftLogOptions } from "./raft/raft-log.ts";
export { type FeedBounds, KEPT_BYTES_MAX, KEPT_RECORDS_MAX } from "./record-feed.ts";
