// The door of the logs: where the records of one leader at a time are kept, in order.

export {
  Archive,
  type ArchiveKind,
  type ArchiveOptions,
  EVENTS,
  type ExchangeOptions,
  exchangeSegments,
  filesBehind,
  lacksOf,
  ownLacks,
  RECEIPTS,
  Retention,
  type RetentionOptions,
  type SegmentFetcher,
} from "./archive/index.ts";
export { archivedMachine, type Captured, withCapture } from "./archive/archived-machine.ts";
export { captureFrom } from "./archive/captures.ts";
export { type UsableCopies, usableCopies } from "./archive/peers/copies.ts";
export { MemoryLog, MemoryStore } from "./memory/memory-log.ts";
export { PostgresInbox, PostgresLog, PostgresNodes } from "./postgres/index.ts";
export { withFoldSnapshot } from "./raft/entry-codec.ts";
export { RaftLog } from "./raft/raft-log.ts";
export { type FeedBounds } from "./record-feed.ts";
