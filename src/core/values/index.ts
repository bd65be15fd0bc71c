// The door of the values: commands become events, events become state.

export { decideValue, NO_LOCKS, type ValueCommand, type ValueDecision, type ValuesView } from "./decide.ts";
export { ValuesFold } from "./fold.ts";
export { ValuesHead } from "./head.ts";
export { checkValueName, checkValueTerms, valueData } from "./limits.ts";
export { readValueEvent, writeValueEvent } from "./value-codec.ts";
export { type ValueEvent, valueBytes, type ValueState } from "./value-state.ts";
