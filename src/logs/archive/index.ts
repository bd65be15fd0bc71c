// The door of logs/archive: the durable history of one node, and how it gets what it lacks.

export { Archive } from "./archive.ts";
export type { ArchiveOptions } from "./archive-options.ts";
export { type ExchangeOptions, exchangeSegments, lacksOf, ownLacks, segmentAnswers } from "./peers/peer-segments.ts";
export { SegmentFetcher, type SegmentSource } from "./peers/segment-fetcher.ts";
export { type ArchiveKind, EVENTS, RECEIPTS } from "./kinds.ts";
export { filesBehind } from "./replayed.ts";
export { Retention, type RetentionOptions } from "./retention.ts";
export type { Finding } from "./recovery.ts";
export type { VerifyStep } from "./verification.ts";
