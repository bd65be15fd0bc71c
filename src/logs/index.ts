// The door of the logs: where the records of one leader at a time are kept, in order.

export {
  Archive,
  type ArchiveOptions,
  type ExchangeOptions,
  exchangeSegments,
  filesBehind,
  lacksOf,
  ownLacks,
  Retention,
  type SegmentFetcher,
} from "./archive/index.ts";
export { archivedMachine, withCapture } from "./archive/archived-machine.ts";
export { captureFrom } from "./archive/captures.ts";
export { type UsableCopies, usableCopies } from "./archive/peers/copies.ts";
export { segmentName } from "./archive/file-names.ts";
export { MemoryLog, MemoryStore } from "./memory/memory-log.ts";
export { PostgresInbox, PostgresLog, PostgresNodes } from "./postgres/index.ts";
export { withFoldSnapshot } from "./raft/entry-codec.ts";
export { RaftLog } from "./raft/raft-log.ts";
export { type FeedBounds } from "./record-feed.ts";
