// The door of the proof: who may sign a line, what a signed checkpoint says, whether a page continues a line, and what proves a fork.

export { fromBase64, toBase64 } from "./base64.ts";
export { type Evidence, evidenceOf, verifyEvidence } from "./evidence.ts";
export { compareHeads, settle } from "./fork.ts";
export { type CheckedEvent, checkPage, type Stub, type Verdict } from "./intake.ts";
export { PAGE_BYTES_MAX, PAGE_ITEM_BYTES_MAX, PAGE_ITEMS_MAX } from "./limits.ts";
export { controllerOf, lineIdOf } from "./line-id.ts";
export { decodeLineState, emptyLine, encodeLineState, rootOf } from "./line-state.ts";
export { checkNote, NOTHING_WITHHELD, type ProofTools, readNote, signCheckpoint } from "./note.ts";
export { itemBytes, pageProblem } from "./page.ts";
export { ringHashOf, ringKeyOf, ringProblem } from "./ring.ts";
export { readRecovered, type Recovered, recoveredPayload, successorOf } from "./successor.ts";
export { isWithheld, withheldHash } from "./withheld.ts";
