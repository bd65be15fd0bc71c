// The door of the events: what a sealed event is, the chain it is in, the tree over it, and strict JSON.

export { canonicalJson } from "./canonical.ts";
export { chainBroken, type ChainHead, checkLink, EMPTY_CHAIN, isLifted, type SealedEvent, Sealer } from "./chain.ts";
export {
  type ChainEvent,
  decodeEvent,
  type EventDraft,
  eventHashOf,
  type EventKind,
  type EventPayload,
  type StoredEvent,
} from "./event.ts";
export { EventScanner } from "./event-scanner.ts";
export { bytesOfHash, hexOf } from "./hex.ts";
export { type Hash, leafHash, MerkleFrontier } from "./merkle.ts";
export {
  consistencyRanges,
  inclusionRanges,
  type LeafRange,
  verifyConsistency,
  verifyInclusion,
} from "./merkle-proof.ts";
export { Verifier } from "./verifier.ts";
