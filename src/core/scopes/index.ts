// The door of the scopes: commands become events, events become state.

export { decide, type ScopeCommand, type ScopeDecision } from "./decide.ts";
export { decodeEvent, encodeEvent, type Metadata, readMetadata, type ScopeEvent, writeMetadata } from "./events.ts";
export { ScopesFold, type ScopesReader } from "./fold.ts";
export { ScopesHead } from "./head.ts";
export { checkAcquire, checkHold, checkScope, GENERATION_MAX, SCOPE_SESSION_BYTES_MAX } from "./limits.ts";
export { epochAt, EPOCHS_PER_GENERATION, type HoldState, viewOf } from "./scope-state.ts";
export { type NewLine, SCOPES_SNAPSHOT_MAGIC, withNewScopesLine } from "./snapshot.ts";
