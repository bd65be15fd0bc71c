// The door of the Raft core: what the engine, the simulator and the WAL may use.

export { decodeMessage, encodeMessage, type DecodedMessage } from "./codec.ts";
export { ELECTION_DEFAULTS, electionConfig, type ElectionConfig } from "./config.ts";
export { configurationBehind } from "./membership/configurations.ts";
export { applyConfChange, configurationOf, emptyConfiguration } from "./membership/membership.ts";
export { isJoint, isLearner, isMember, isVoter, members, voterKeys } from "./membership/quorum.ts";
export type { RaftOptions, RaftStatus } from "./options.ts";
export { Raft } from "./raft.ts";
export type { TraceName } from "./trace.ts";
export type * from "./types.ts";
