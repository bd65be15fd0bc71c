// The door of the coordinators' leader lease.

export { Candidacy, placeOf, type PreVote, preVote } from "./candidacy.ts";
export { foundingOf, type SeedWord } from "./founding.ts";
export { type OverBecause, QuorumLeader, type RegistryChange } from "./leader.ts";
export { MembershipList, type MembershipLease, normalisedEndpoint } from "./members.ts";
export type * from "./model.ts";
export { hasMajority } from "./quorum.ts";
export { decodeLeases, decodeLedger, encodeLeases, encodeLedger, type KeptLedger } from "./records.ts";
export { withBackend, withoutBackend } from "./registry.ts";
export {
  comparePositions,
  EMPTY_LEDGER,
  founded,
  generationOf,
  isVoter,
  majorityOf,
  nextGeneration,
  positionOf,
  recovered,
} from "./roster.ts";
export { Sightings } from "./sightings.ts";
export { Voter } from "./voter.ts";
