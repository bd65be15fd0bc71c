// The door of the logs: where the records of one leader at a time are kept, in order.

export { MemoryLog, MemoryStore } from "./memory/memory-log.ts";
export { withFoldSnapshot } from "./raft/entry-codec.ts";
export { RaftLog, type RaftLogCounts, type RaftLogOptions } from "./raft/raft-log.ts";
export { type FeedBounds, KEPT_BYTES_MAX, KEPT_RECORDS_MAX } from "./record-feed.ts";
