// The door of the events: what a sealed event is, the chain it stands in, the tree over it, and strict JSON.

export { canonicalBytes, canonicalJson } from "./canonical.ts";
export {
  chainBroken,
  type ChainHead,
  checkLink,
  EMPTY_CHAIN,
  type LinkChecked,
  type SealedEvent,
  Sealer,
  type SealerOptions,
} from "./chain.ts";
export {
  type ChainEvent,
  decodeEvent,
  type EventDraft,
  eventHashOf,
  type EventPayload,
  type EventRead,
  type EventType,
  type StoredEvent,
} from "./event.ts";
export { JsonError, parseStrictJson } from "./strict-json.ts";
export { bytesOfHash, hexOf, isHash } from "./hex.ts";
export { type Hash, leafHash, MerkleFrontier } from "./merkle.ts";
export {
  type ConsistencyClaim,
  consistencyProof,
  consistencyRanges,
  type InclusionClaim,
  inclusionProof,
  inclusionRanges,
  type LeafRange,
  type LeafReader,
  rangeHash,
  verifyConsistency,
  verifyInclusion,
} from "./merkle-proof.ts";
export { Verifier, type VerifierOptions, type VerifyResult } from "./verifier.ts";
