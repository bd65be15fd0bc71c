// The door of receipts: how events of other sites enter a site's own log, and which arrival numbers they have.

export { archived, countsOf, receiptChain } from "./chain.ts";
export { LINES_MAX, RECORD_BYTES_MAX, RECORD_GATHERED_BYTES_MAX, RECORD_PAGES_MAX } from "./limits.ts";
export { encodePage, type HeldItem, type HeldPage, pageOf } from "./page-bytes.ts";
export { decodeReceipt, newEvents, type Receipt, type SealedReceipt } from "./receipt.ts";
export {
  decodeRecord,
  encodeRecord,
  type LinePoint,
  recordedBytes,
  recordedPage,
  type RecordedPage,
} from "./record.ts";
export { type ReceiptsHead, ReceiptsState } from "./state.ts";
