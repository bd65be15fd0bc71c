// The door of core/archive: segments of events as bytes, what those bytes are worth, and lists of segments.

export { BEFORE_FIRST, isSameBytes, isSamePoint } from "./chain.ts";
export type { ArchivedEvent, Chain, ChainPoint, ChainWalk, CommittedEvent } from "./chain.ts";
export { SEGMENT_LIMITS } from "./limits.ts";
export type { SegmentLimits } from "./limits.ts";
export { Holdings } from "./holdings.ts";
export {
  captureInPieces,
  decodeCapture,
  decodeCatalog,
  encodeCapture,
  encodeCatalog,
  isSameEntry,
  segmentOf,
} from "./manifest.ts";
export type { Capture, Catalog, Manifest, SegmentEntry } from "./manifest.ts";
export { SegmentBuilder } from "./segment-builder.ts";
export { checkSegment } from "./segment-check.ts";
export type { SegmentVerdict } from "./segment-check.ts";
export type { SegmentCursor } from "./segment-cursor.ts";
export {
  decodeHistoryQuery,
  decodeLacks,
  decodeStart,
  encodeLacks,
  encodeLacksQuery,
  encodeSegmentQuery,
  encodeStart,
  encodeStartQuery,
  holdingOf,
  rangesOf,
} from "./segment-query.ts";
export type { EventRange, Lacks } from "./segment-query.ts";
export { soleCopies } from "./sole-copies.ts";
export { readHeader } from "./segment-format.ts";
export { openSealed } from "./sealed-segment.ts";
export type { SealedSegment } from "./sealed-segment.ts";
