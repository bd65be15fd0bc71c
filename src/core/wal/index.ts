// The door of core/wal: what a data directory holds as bytes, and what those bytes are worth after a restart.

export { recover } from "./recovery.ts";
export type { Intact, LiveSegment, Recovery } from "./recovery.ts";
export type { SegmentFile } from "./log-files.ts";
export { unsupported } from "./verdict.ts";
export type { Refusal } from "./verdict.ts";
export { encodeBatch, encodeSegmentHeader, readRecords, readSegmentHeader, segmentSeed } from "./segment.ts";
export type { BatchPart, SegmentHeader, WalRecord } from "./segment.ts";
export {
  checkSentSnapshot,
  checkSnapshotFile,
  checksumOf,
  decodeSentSnapshot,
  decodeSnapshotFile,
  encodeSnapshotFile,
  snapshotFile,
  snapshotHead,
} from "./snapshot-file.ts";
export type { SnapshotRead } from "./snapshot-file.ts";
export type { Checksummed } from "./frame.ts";
export { decodeStampFile, encodeStampFile } from "./stamp.ts";
export type { Stamp, StampPhase } from "./stamp.ts";
