// The door of the spread: who pushes which line to whom.

export type { Head, LinkId, PageOutcome, SentOutcome, SpreadEffect, SpreadInput } from "./messages.ts";
export { type LaneView, Spread, type SpreadOptions } from "./spread.ts";
